//! Aligned columns with a header, for people. On a terminal, the table fits the width: it shortens
//! cells first, and then hides columns.

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use crate::screen::{BOLD, DIM, Screen};

/// The separator of columns.
const GAP: usize = 2;
/// The width of `  +2`, the number of hidden columns.
const MARK: usize = 4;

/// A column's header, and how it shrinks if the table is too wide.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    title: String,
    is_amount: bool,
    /// The width to which cells may be truncated.
    least: Option<usize>,
    /// The column with the highest number is hidden first. One with 0 is never hidden.
    dropped: usize,
}

impl Head {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            ..Self::default()
        }
    }

    /// Aligns the column to the right.
    pub(crate) fn amount(self) -> Self {
        Self {
            is_amount: true,
            ..self
        }
    }

    /// Allows truncating cells to a width.
    pub(crate) fn shrinks(self, least: usize) -> Self {
        Self {
            least: Some(least),
            ..self
        }
    }

    /// Allows hiding the column. Higher numbers go first.
    pub(crate) fn dropped(self, order: usize) -> Self {
        Self {
            dropped: order,
            ..self
        }
    }
}

/// A cell: its text and its style.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    /// `None` appears as a dash.
    text: Option<String>,
    style: Style,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }

    /// A cell without a value.
    pub(crate) fn none() -> Self {
        Self {
            style: DIM,
            ..Self::default()
        }
    }

    pub(crate) fn styled(self, style: Style) -> Self {
        Self { style, ..self }
    }

    fn text<'c>(&'c self, screen: &Screen) -> &'c str {
        self.text.as_deref().unwrap_or(screen.symbol("–"))
    }

    pub(crate) fn paint(&self, screen: &Screen) -> String {
        screen.paint(self.style, self.text(screen))
    }
}

/// Rows below a header.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    head: Vec<Head>,
    rows: Vec<Vec<Cell>>,
}

/// A shown column.
#[derive(Clone)]
struct Column {
    at: usize,
    head: Head,
    width: usize,
}

impl Table {
    pub(crate) fn new(head: Vec<Head>, rows: Vec<Vec<Cell>>) -> Self {
        Self { head, rows }
    }

    pub(crate) fn render(&self, screen: &Screen) -> String {
        let columns = &self.fit(screen);
        let mut out = String::new();
        if !self.head.is_empty() {
            let titles = self
                .head
                .iter()
                .map(|head| Cell::new(&*head.title))
                .collect::<Vec<_>>();
            let hidden = self.hidden(columns);
            let mark = if hidden > 0 {
                format!("  +{hidden}")
            } else {
                String::new()
            };
            out += &screen.paint(BOLD, line(&titles, columns, screen) + &mark);
            out.push('\n');
        }
        for row in &self.rows {
            out += &line(row, columns, screen);
            out.push('\n');
        }
        out
    }

    /// Returns the number of hidden columns that have a title.
    fn hidden(&self, columns: &[Column]) -> usize {
        let shown = columns.iter().map(|column| &column.head);
        let titled = |head: &&Head| !head.title.is_empty();
        self.head.iter().filter(titled).count() - shown.filter(titled).count()
    }

    /// Finds the columns and widths that fit.
    fn fit(&self, screen: &Screen) -> Vec<Column> {
        let count = self
            .rows
            .iter()
            .map(Vec::len)
            .chain([self.head.len()])
            .max()
            .unwrap_or(0);
        let column = |at: usize| {
            // Arrays have no header.
            let cut = Head {
                least: Some(12),
                ..Head::default()
            };
            let head = self.head.get(at).cloned().unwrap_or(cut);
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            let widths = cells.map(|cell| cell.text(screen).width());
            Column {
                at,
                width: widths.max().unwrap_or(0).max(head.title.width()),
                head,
            }
        };
        let mut columns: Vec<_> = (0..count).map(column).collect();
        let Some(room) = screen.width() else {
            return columns;
        };
        loop {
            let mark = match self.hidden(&columns) {
                0 => 0,
                _ => MARK,
            };
            let mut cut = columns.clone();
            let first = columns.iter().map(|column| column.head.dropped).max();
            if shrink(&mut cut, room.saturating_sub(mark)) || first.is_none_or(|order| order == 0) {
                return cut;
            }
            columns.retain(|column| Some(column.head.dropped) != first);
        }
    }
}

fn line(cells: &[Cell], columns: &[Column], screen: &Screen) -> String {
    let mut line = String::new();
    let mut indent = 0;
    for Column { at, head, width } in columns {
        let Some(cell) = cells.get(*at) else { continue };
        let text = cell.text(screen);
        let text = match columns.last() {
            _ if head.least.is_some() => screen.cut(text, *width),
            Some(last) if last.at == *at => screen.wrap(text, indent),
            _ => text.to_owned(),
        };
        indent += width + GAP;
        let space = " ".repeat(width.saturating_sub(text.width()));
        let text = if text.is_empty() {
            text
        } else {
            screen.paint(cell.style, text)
        };
        line += &if head.is_amount {
            space + &text
        } else {
            text + &space
        };
        line += &" ".repeat(GAP);
    }
    line.trim_end().to_owned()
}

/// Truncates the widest cells until the columns fit. Returns whether they do.
fn shrink(columns: &mut [Column], room: usize) -> bool {
    while total(columns) > room {
        let may_be_cut = columns
            .iter_mut()
            .filter(|column| column.head.least.is_some_and(|least| column.width > least));
        let Some(widest) = may_be_cut.max_by_key(|column| column.width) else {
            return false;
        };
        widest.width -= 1;
    }
    true
}

fn total(columns: &[Column]) -> usize {
    columns
        .iter()
        .map(|column| column.width + GAP)
        .sum::<usize>()
        .saturating_sub(GAP)
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
        let table = Table::new(head, vec![row.to_vec()]);
        let screen = Screen::plain(Some(width));
        table.render(&screen)
    }

    #[test]
    fn cells_take_a_shorter_form_before_whole_columns_go() {
        assert!(rendered(80).contains("of Thornhill  1            available"));
        assert!(
            rendered(50).contains("Bramble the Third…  1 "),
            "{}",
            rendered(50)
        );
        let narrow = "ID      NAME              STATUS  +1\n100001  Bramble the Thi…  available\n";
        assert_eq!(rendered(40).lines().count(), narrow.lines().count());
        assert!(
            rendered(40).starts_with("ID      NAME "),
            "{}",
            rendered(40)
        );
        assert!(
            rendered(40).lines().all(|line| line.width() <= 40),
            "{}",
            rendered(40)
        );
        assert!(rendered(24).starts_with("ID      NAME") && rendered(24).contains("+2"));
    }

    #[test]
    fn a_narrow_table_wraps_its_last_column() {
        let head = vec![
            Head::new("LEFT"),
            Head::new("").dropped(1),
            Head::new("RESETS"),
        ];
        let row = ["57", "████████████████████", "in 17 h 16 min (Mon 01:00)"].map(Cell::new);
        let table = Table::new(head, vec![row.to_vec()]);
        let screen = Screen::plain(Some(26));
        let narrow = "LEFT  RESETS\n57    in 17 h 16 min (Mon\n      01:00)\n";
        assert_eq!(table.render(&screen), narrow);
    }
}
