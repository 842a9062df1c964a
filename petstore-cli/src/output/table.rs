//! Aligned columns with a header, for people. On a terminal the table fits its width: the widest
//! columns are cut, identifiers never.

use std::io::Write;

use unicode_width::UnicodeWidthStr as _;

use super::column::{Column, cells};
use super::format::{Format, Kind, Records};
use super::writer::Look;
use crate::error::CliError;
use crate::{safe, style};

/// Between two columns.
const GAP: usize = 2;
/// No column is made narrower.
const NARROWEST: usize = 6;

pub(super) struct Table {
    width: Option<usize>,
    color: bool,
}

impl Table {
    pub(super) fn new(look: &Look) -> Self {
        let width = look.width.filter(|_| look.is_terminal).map(usize::from);
        Self { width, color: look.color }
    }
}

impl Format for Table {
    fn kind(&self) -> Kind {
        Kind::Whole
    }

    fn write(&mut self, records: &Records<'_>, out: &mut dyn Write) -> Result<(), CliError> {
        let head: Vec<_> = records.columns.iter().map(|column| title(column.name())).collect();
        let body = records.rows.iter().map(|row| {
            let cells = cells(row, records.columns);
            cells.iter().map(|cell| safe::line(cell).into_owned()).collect()
        });
        let mut lines: Vec<Vec<String>> = Vec::new();
        lines.extend((!head.is_empty()).then_some(head));
        lines.extend(body);
        let mut widths = widest(&lines);
        if let Some(room) = self.width {
            fit(&mut widths, room, records.columns);
        }
        for (at, cells) in lines.iter().enumerate() {
            let line = line(cells, &widths);
            let is_head = at == 0 && !records.columns.is_empty();
            writeln!(out, "{}", style::paint(style::HEAD, line, self.color && is_head))?;
        }
        Ok(())
    }
}

fn widest(lines: &[Vec<String>]) -> Vec<usize> {
    let mut widths = Vec::new();
    for cells in lines {
        widths.resize(widths.len().max(cells.len()), 0);
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.width());
        }
    }
    widths
}

/// Makes the widest columns narrower until the table fits, or nothing is left to cut.
fn fit(widths: &mut [usize], room: usize, columns: &[Column]) {
    let gaps = GAP * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > room {
        let may_be_cut = |at: usize| columns.get(at).is_none_or(|column| !column.is_id());
        let cut = widths.iter_mut().enumerate().filter(|(at, _)| may_be_cut(*at));
        match cut.map(|(_, width)| width).max() {
            Some(width) if *width > NARROWEST => *width -= 1,
            _ => return,
        }
    }
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (at, (cell, &width)) in cells.iter().zip(widths).enumerate() {
        let shown = cut(cell, width);
        line += &shown;
        if at + 1 < cells.len() {
            line.extend(std::iter::repeat_n(' ', width.saturating_sub(shown.width()) + GAP));
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// Returns as much of a text as has room; `…` stands for the rest.
pub(crate) fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if kept.width() >= room {
            kept.pop();
            break;
        }
    }
    kept + "…"
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
    safe::line(&title).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_by_the_columns_that_a_text_takes() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
        assert_eq!(cut("犬犬犬犬", 6), "犬犬…");
        assert_eq!(cut("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
    }

    #[test]
    fn never_cuts_an_identifier() {
        let columns = ["id", "name", "categoryId"].map(Column::new);
        let mut widths = vec![20, 30, 20];
        fit(&mut widths, 60, &columns);
        assert_eq!(widths, [20, 16, 20]);
        fit(&mut widths, 10, &columns);
        assert_eq!(widths, [20, NARROWEST, 20]);
    }
}
