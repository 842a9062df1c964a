//! Tab-separated values without a header, for programs. A tab, a line break, a backslash and
//! every harmful character in a value are escaped, so that a line is a record.

use std::io::Write;

use super::column::cells;
use super::format::{Format, Records};
use crate::error::CliError;
use crate::safe;

pub(super) struct Tsv;

impl Format for Tsv {
    fn write(&mut self, records: &Records<'_>, out: &mut dyn Write) -> Result<(), CliError> {
        for row in records.rows {
            for (at, cell) in cells(row, records.columns).iter().enumerate() {
                if at > 0 {
                    out.write_all(b"\t")?;
                }
                out.write_all(safe::line(cell).as_bytes())?;
            }
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}
