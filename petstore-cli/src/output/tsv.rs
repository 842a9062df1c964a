//! Tab-separated values without a header, for programs. A tab, a line break, a backslash and
//! every harmful character in a value are escaped, so that a line is a record.

use std::io::{self, Write};

use super::format::Format;
use super::records::Records;
use crate::safe;

pub(crate) struct Tsv;

impl Format for Tsv {
    fn write(&self, records: &Records, out: &mut dyn Write) -> io::Result<()> {
        for row in records.rows() {
            for (column, cell) in row.iter().enumerate() {
                if column > 0 {
                    out.write_all(b"\t")?;
                }
                out.write_all(safe::line(cell).as_bytes())?;
            }
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}
