//! Aligned columns with a header, for people. On a terminal the table fits its width: cells take a
//! shorter form first, then whole columns go.

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use crate::screen::{BOLD, DIM, PLAIN, Screen};

/// Between two columns.
const GAP: usize = 2;

/// A column's header, and what happens to the column when the table is too wide.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    title: String,
    is_amount: bool,
    /// The width to which cells may be cut.
    least: Option<usize>,
    /// The column with the highest number goes first; one with 0 never goes.
    dropped: usize,
}

impl Head {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Aligns the column to the right.
    pub(crate) fn amount(self) -> Self {
        Self { is_amount: true, ..self }
    }

    /// Lets cells be cut to a width.
    pub(crate) fn shrinks(self, least: usize) -> Self {
        Self { least: Some(least), ..self }
    }

    /// Lets the column be dropped; a higher number goes first.
    pub(crate) fn dropped(self, order: usize) -> Self {
        Self { dropped: order, ..self }
    }
}

/// A cell: its text, a shorter form of it if there is one, and its style.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    short: Option<String>,
    style: Style,
    is_none: bool,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), short: None, style: PLAIN, is_none: false }
    }

    /// A cell without a value.
    pub(crate) fn none() -> Self {
        Self { is_none: true, ..Self::new("").styled(DIM) }
    }

    pub(crate) fn styled(self, style: Style) -> Self {
        Self { style, ..self }
    }

    pub(crate) fn or_short(self, short: impl Into<String>) -> Self {
        Self { short: Some(short.into()), ..self }
    }

    fn text<'c>(&'c self, screen: &Screen, short: bool) -> &'c str {
        match &self.short {
            Some(text) if short => text,
            _ if self.is_none => screen.symbol("–"),
            _ => &self.text,
        }
    }

    pub(crate) fn paint(&self, screen: &Screen) -> String {
        screen.paint(self.style, self.text(screen, false))
    }
}

/// Rows below a header.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    pub(crate) head: Vec<Head>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// What is shown of a table.
struct Layout {
    /// The columns that are left, with their widths.
    columns: Vec<(usize, usize)>,
    short: bool,
}

impl Table {
    pub(crate) fn render(&self, screen: &Screen) -> String {
        let Layout { columns, short } = self.fit(screen);
        let hidden = self.width() - columns.len();
        let mut out = String::new();
        if !self.head.is_empty() {
            let titles = |at: usize| self.head.get(at).map_or("", |head| &head.title);
            let mut line = self.line(screen, &columns, |at| (titles(at), PLAIN));
            if hidden > 0 {
                line += &format!("  +{hidden}");
            }
            out += &screen.paint(BOLD, line);
            out.push('\n');
        }
        for row in &self.rows {
            let cell = |at: usize| match row.get(at) {
                Some(cell) => (cell.text(screen, short), cell.style),
                None => ("", PLAIN),
            };
            out += &self.line(screen, &columns, cell);
            out.push('\n');
        }
        out
    }

    fn width(&self) -> usize {
        self.rows.iter().map(Vec::len).chain([self.head.len()]).max().unwrap_or(0)
    }

    fn line<'c>(
        &self,
        screen: &Screen,
        columns: &[(usize, usize)],
        cell: impl Fn(usize) -> (&'c str, Style),
    ) -> String {
        let mut line = String::new();
        for (place, &(at, width)) in columns.iter().enumerate() {
            let (text, style) = cell(at);
            let text = screen.cut(text, width);
            let space = " ".repeat(width.saturating_sub(text.width()));
            let is_last = place + 1 == columns.len();
            let text = if text.is_empty() { text } else { screen.paint(style, text) };
            line += &match self.head.get(at).is_some_and(|head| head.is_amount) {
                true => space + &text,
                false if is_last => text,
                false => text + &space,
            };
            if !is_last {
                line.push_str(&" ".repeat(GAP));
            }
        }
        line.truncate(line.trim_end().len());
        line
    }

    /// Finds the columns and widths that fit.
    fn fit(&self, screen: &Screen) -> Layout {
        let all = |short| {
            let widest = |at: usize| {
                let cells = self.rows.iter().filter_map(|row| row.get(at));
                let cells = cells.map(|cell| cell.text(screen, short).width());
                let title = self.head.get(at).map_or(0, |head| head.title.width());
                (at, cells.max().unwrap_or(0).max(title))
            };
            (0..self.width()).map(widest).collect::<Vec<_>>()
        };
        let columns = all(false);
        let Some(room) = screen.width else { return Layout { columns, short: false } };
        if total(&columns) <= room {
            return Layout { columns, short: false };
        }
        let mut columns = all(true);
        loop {
            let mark = if columns.len() < self.width() { 4 } else { 0 };
            if let Some(columns) = self.shrunk(&columns, room.saturating_sub(mark)) {
                return Layout { columns, short: true };
            }
            let order = |at: usize| self.head.get(at).map_or(0, |head| head.dropped);
            let first = columns.iter().map(|(at, _)| order(*at)).max().unwrap_or(0);
            if first == 0 {
                return Layout { columns, short: true };
            }
            columns.retain(|(at, _)| order(*at) != first);
        }
    }

    /// Cuts the widest cells that may be cut until the columns fit; `None` where they can't.
    fn shrunk(&self, columns: &[(usize, usize)], room: usize) -> Option<Vec<(usize, usize)>> {
        let mut columns = columns.to_vec();
        while total(&columns) > room {
            let least = |at: usize| self.head.get(at).map_or(Some(12), |head| head.least);
            let cut =
                columns.iter_mut().filter(|(at, width)| least(*at).is_some_and(|l| *width > l));
            cut.max_by_key(|(_, width)| *width)?.1 -= 1;
        }
        Some(columns)
    }
}

fn total(columns: &[(usize, usize)]) -> usize {
    columns.iter().map(|(_, width)| width + GAP).sum::<usize>().saturating_sub(GAP)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(width: usize) -> String {
        let head = vec![
            Head::new("ID"),
            Head::new("NAME").shrinks(12),
            Head::new("CATEGORY ID").dropped(2),
            Head::new("STATUS").dropped(1),
        ];
        let row = ["100001", "Bramble the Third of Thornhill", "1", "available"].map(Cell::new);
        let table = Table { head, rows: vec![row.to_vec()] };
        let screen = Screen { is_terminal: true, width: Some(width), color: false, unicode: true };
        table.render(&screen)
    }

    #[test]
    fn cells_take_a_shorter_form_before_whole_columns_go() {
        assert!(rendered(80).contains("of Thornhill  1            available"));
        assert!(rendered(50).contains("Bramble the Third…  1 "), "{}", rendered(50));
        let narrow = "ID      NAME              STATUS  +1\n100001  Bramble the Thi…  available\n";
        assert_eq!(rendered(40).lines().count(), narrow.lines().count());
        assert!(rendered(40).starts_with("ID      NAME "), "{}", rendered(40));
        assert!(rendered(40).lines().all(|line| line.width() <= 40), "{}", rendered(40));
        assert!(rendered(24).starts_with("ID      NAME") && rendered(24).contains("+2"));
    }
}
