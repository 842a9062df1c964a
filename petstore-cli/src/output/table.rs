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
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    /// `None` is shown as a dash.
    text: Option<String>,
    short: Option<String>,
    style: Style,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// A cell without a value.
    pub(crate) fn none() -> Self {
        Self { style: DIM, ..Self::default() }
    }

    pub(crate) fn styled(self, style: Style) -> Self {
        Self { style, ..self }
    }

    pub(crate) fn or_short(self, short: impl Into<String>) -> Self {
        Self { short: Some(short.into()), ..self }
    }

    fn text<'c>(&'c self, screen: &Screen, is_short: bool) -> &'c str {
        let short = self.short.as_deref().filter(|_| is_short);
        short.or(self.text.as_deref()).unwrap_or(screen.symbol("–"))
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

/// A column that is shown.
#[derive(Clone)]
struct Column<'t> {
    at: usize,
    head: &'t Head,
    width: usize,
}

impl Table {
    pub(crate) fn render<'t>(&'t self, screen: &'t Screen) -> String {
        let (columns, is_short) = self.fit(screen);
        let line = |cell: &dyn Fn(usize) -> (&'t str, Style)| {
            let mut line = String::new();
            for Column { at, head, width } in &columns {
                let (text, style) = cell(*at);
                let text = screen.cut(text, *width);
                let space = " ".repeat(width - text.width());
                let text = if text.is_empty() { text } else { screen.paint(style, text) };
                line += &if head.is_amount { space + &text } else { text + &space };
                line += &" ".repeat(GAP);
            }
            line.trim_end().to_owned()
        };
        let mut out = String::new();
        if !self.head.is_empty() {
            let hidden = self.head.len() - columns.len();
            let title = |at: usize| self.head.get(at).map_or("", |head| &head.title);
            let titles = line(&|at| (title(at), PLAIN));
            let mark = if hidden > 0 { format!("  +{hidden}") } else { String::new() };
            out += &screen.paint(BOLD, titles + &mark);
            out.push('\n');
        }
        for row in &self.rows {
            let cell = |at: usize| {
                row.get(at).map_or(("", PLAIN), |cell| (cell.text(screen, is_short), cell.style))
            };
            out += &line(&cell);
            out.push('\n');
        }
        out
    }

    /// Finds the columns and widths that fit, and whether cells take their shorter form.
    fn fit(&self, screen: &Screen) -> (Vec<Column<'_>>, bool) {
        const NO_HEAD: &Head =
            &Head { title: String::new(), is_amount: false, least: Some(12), dropped: 0 };

        let room = screen.width.unwrap_or(usize::MAX);
        let count = self.rows.iter().map(Vec::len).chain([self.head.len()]).max().unwrap_or(0);
        let all = |is_short| {
            let column = |at: usize| {
                let head = self.head.get(at).unwrap_or(NO_HEAD);
                let cells = self.rows.iter().filter_map(|row| row.get(at));
                let widths = cells.map(|cell| cell.text(screen, is_short).width());
                Column { at, head, width: widths.chain([head.title.width()]).max().unwrap_or(0) }
            };
            (0..count).map(column).collect::<Vec<_>>()
        };
        let columns = all(false);
        if total(&columns) <= room {
            return (columns, false);
        }
        let mut columns = all(true);
        loop {
            let mark = if columns.len() < count { 4 } else { 0 };
            let mut cut = columns.clone();
            if shrink(&mut cut, room.saturating_sub(mark)) {
                return (cut, true);
            }
            let first = columns.iter().map(|column| column.head.dropped).max().unwrap_or(0);
            if first == 0 {
                return (cut, true);
            }
            columns.retain(|column| column.head.dropped != first);
        }
    }
}

/// Cuts the widest cells that may be cut until the columns fit; returns whether they do.
fn shrink(columns: &mut [Column<'_>], room: usize) -> bool {
    while total(columns) > room {
        let may_be_cut = columns
            .iter_mut()
            .filter(|column| column.head.least.is_some_and(|least| column.width > least));
        let Some(widest) = may_be_cut.max_by_key(|column| column.width) else { return false };
        widest.width -= 1;
    }
    true
}

fn total(columns: &[Column<'_>]) -> usize {
    columns.iter().map(|column| column.width + GAP).sum::<usize>().saturating_sub(GAP)
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
