//! Aligned columns with a header, for people. On a terminal, the table fits the width: it shortens
//! cells first, and then hides columns.

use anstyle::Style;
use console::measure_text_width as columns_of;

use crate::screen::{BOLD, DIM, Screen};

/// The separator of columns.
const GAP: usize = 2;
/// The width of `  +2`, the number of hidden columns.
const MARK: usize = 4;

/// A column's header, and how it shrinks if the table is too wide.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    title: String,
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

    /// Allows truncating cells to a width.
    pub(crate) fn shrinks(mut self, least: usize) -> Self {
        self.least = Some(least);
        self
    }

    /// Allows hiding the column. Higher numbers go first.
    pub(crate) fn dropped(mut self, order: usize) -> Self {
        self.dropped = order;
        self
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

/// A shown column.
#[derive(Clone)]
struct Column {
    at: usize,
    head: Head,
    width: usize,
}

/// Formats rows below a header.
pub(super) fn render(head: &[Head], rows: &[Vec<Cell>], screen: &Screen) -> String {
    let all = columns(head, rows, screen);
    let shown = fit(&all, screen);
    let mut out = String::new();
    if !head.is_empty() {
        let titles: Vec<_> = head.iter().map(|head| Cell::new(&*head.title)).collect();
        let mark = match all.len() - shown.len() {
            0 => String::new(),
            hidden => format!("  +{hidden}"),
        };
        out += &screen.paint(BOLD, line(&titles, &shown, screen) + &mark);
        out.push('\n');
    }
    for row in rows {
        out += &line(row, &shown, screen);
        out.push('\n');
    }
    out
}

/// Returns all columns. Those of arrays have no header.
fn columns(head: &[Head], rows: &[Vec<Cell>], screen: &Screen) -> Vec<Column> {
    let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
    let column = |at: usize| {
        let cut = Head::default().shrinks(12);
        let head = head.get(at).cloned().unwrap_or(cut);
        let cells = rows.iter().filter_map(|row| row.get(at));
        let widths = cells.map(|cell| columns_of(cell.text(screen)));
        Column {
            at,
            width: widths.max().unwrap_or(0).max(columns_of(&head.title)),
            head,
        }
    };
    (0..longest.max(head.len())).map(column).collect()
}

/// Finds the columns and widths that fit.
fn fit(all: &[Column], screen: &Screen) -> Vec<Column> {
    let mut columns = all.to_vec();
    let Some(room) = screen.width() else {
        return columns;
    };
    loop {
        let mark = match columns.len() < all.len() {
            true => MARK,
            false => 0,
        };
        let mut cut = columns.clone();
        let first = columns.iter().map(|column| column.head.dropped).max();
        if shrink(&mut cut, room.saturating_sub(mark)) || first.is_none_or(|order| order == 0) {
            return cut;
        }
        columns.retain(|column| Some(column.head.dropped) != first);
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
        let space = " ".repeat(width.saturating_sub(columns_of(&text)));
        let text = match text.is_empty() {
            true => text,
            false => screen.paint(cell.style, text),
        };
        line += &(text + &space);
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
    let widths = columns.iter().map(|column| column.width + GAP);
    widths.sum::<usize>().saturating_sub(GAP)
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
        render(&head, &[row.to_vec()], &Screen::plain(Some(width)))
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
            rendered(40).lines().all(|line| columns_of(line) <= 40),
            "{}",
            rendered(40)
        );
        assert!(rendered(24).starts_with("ID      NAME") && rendered(24).contains("+2"));
    }

    #[test]
    fn a_narrow_table_wraps_its_last_column() {
        let head = ["LEFT", "RESETS"].map(Head::new);
        let row = ["57", "in 17 h 16 min (Mon 01:00)"].map(Cell::new);
        let screen = Screen::plain(Some(26));
        let narrow = "LEFT  RESETS\n57    in 17 h 16 min (Mon\n      01:00)\n";
        assert_eq!(render(&head, &[row.to_vec()], &screen), narrow);
    }
}
