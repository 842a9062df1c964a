//! Comma-separated values with a header (RFC 4180).
//!
//! In a file or a pipe each value is just what it was, quoted where it must be, so that it can be
//! read back. On a terminal, what could act on it is escaped.

use std::borrow::Cow;
use std::io::{self, Write};

use super::column::{Column, cells};
use super::format::{Format, Records};
use crate::error::CliError;
use crate::safe;

pub(super) struct Csv {
    /// Whether a person looks at it.
    pub(super) harmless: bool,
}

impl Format for Csv {
    fn write(&mut self, records: &Records<'_>, out: &mut dyn Write) -> Result<(), CliError> {
        let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(out);
        let mut write = |cells: &mut dyn Iterator<Item = Cow<'_, str>>| {
            let shown = cells.map(|cell| {
                if self.harmless { safe::lines(&cell).into_owned() } else { cell.into_owned() }
            });
            writer.write_record(shown).map_err(io::Error::from)
        };
        if records.first && !records.columns.is_empty() {
            write(&mut records.columns.iter().map(Column::name).map(Cow::Borrowed))?;
        }
        for row in records.rows {
            write(&mut cells(row, records.columns).into_iter())?;
        }
        Ok(writer.flush()?)
    }
}
