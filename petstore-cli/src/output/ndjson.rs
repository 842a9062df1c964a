//! A JSON document on each line, so that a reader can begin before the writer has ended.

use std::io::Write;

use super::format::{Format, Records};
use super::json::compact;
use crate::error::CliError;

pub(super) struct Ndjson {
    pub(super) color: bool,
}

impl Format for Ndjson {
    fn write(&mut self, records: &Records<'_>, out: &mut dyn Write) -> Result<(), CliError> {
        for row in records.rows {
            compact(row, self.color, out)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}
