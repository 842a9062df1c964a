//! Aligned columns with a header, for people.

use std::io::{self, Write};

use comfy_table::presets::NOTHING;

use super::format::Format;
use super::records::Records;
use crate::safe;

pub(crate) struct Table;

impl Format for Table {
    fn write(&self, records: &Records, out: &mut dyn Write) -> io::Result<()> {
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING);
        let titles = records.columns().iter().map(|name| safe::line(&title(name)).into_owned());
        table.set_header(titles);
        for row in records.rows() {
            table.add_row(row.iter().map(|cell| safe::line(cell).into_owned()));
        }
        for line in table.lines() {
            // Cells are padded on both sides.
            let line = line.strip_prefix(' ').unwrap_or(&line);
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Turns `categoryId` into `CATEGORY ID`.
fn title(name: &str) -> String {
    let mut title = String::with_capacity(name.len() + 2);
    for c in name.chars() {
        if c.is_ascii_uppercase() && !title.is_empty() {
            title.push(' ');
        }
        title.extend(c.to_uppercase());
    }
    title
}
