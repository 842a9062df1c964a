//! The identifiers alone, for `xargs` and loops.

use std::io::Write;

use super::column::{Column, cells};
use super::format::{Format, Records};
use crate::error::CliError;
use crate::safe;

pub(super) struct Id;

impl Format for Id {
    fn write(&mut self, records: &Records<'_>, out: &mut dyn Write) -> Result<(), CliError> {
        let id = Column::new("id");
        for row in records.rows {
            if row.is_object() && id.of(row).is_none() {
                return Err(CliError::usage("the result has no field `id` to write")
                    .hint("choose another format with `-o`, or make the field with `--jq`"));
            }
            for cell in cells(row, std::slice::from_ref(&id)) {
                writeln!(out, "{}", safe::line(&cell))?;
            }
        }
        Ok(())
    }
}
