//! Parses help texts, and lays them out for a terminal or as manual pages. The form of a line says
//! which part of a text it is.

use clap_mangen::roff::{Roff, bold, roman};

use crate::screen::{BOLD, CYAN, Screen};

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Empty,
    /// At most three words and a colon, without indentation.
    Heading(String),
    /// Lines without indentation. A line that ends in a full stop is the last one.
    Paragraph(String),
    /// A label and, in another column, its text.
    Row {
        label: String,
        column: usize,
        text: String,
    },
    /// Indented lines, such as commands.
    Lines(Vec<String>),
}

/// Reads the parts of a text.
pub(crate) fn parse(text: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for line in text.lines() {
        let words = line.trim_start();
        let indent = line.len() - words.len();
        match parts.last_mut() {
            Some(Part::Row { column, text, .. }) if indent >= *column && !words.is_empty() => {
                text.push(' ');
                text.push_str(words);
            }
            Some(Part::Paragraph(text)) if is_open(text) && indent == 0 && !words.is_empty() => {
                text.push(' ');
                text.push_str(words);
            }
            Some(Part::Lines(lines)) if indent > 0 && row(line).is_none() => {
                lines.push(line.to_owned());
            }
            _ => parts.push(part(line)),
        }
    }
    parts
}

/// Returns whether the next line belongs to the same paragraph.
fn is_open(paragraph: &str) -> bool {
    !paragraph.ends_with(['.', ':'])
}

/// Returns the part that begins with a line.
fn part(line: &str) -> Part {
    if line.trim().is_empty() {
        return Part::Empty;
    }
    if let Some(row) = row(line) {
        return row;
    }
    if line.starts_with(' ') {
        return Part::Lines(vec![line.to_owned()]);
    }
    match line.strip_suffix(':') {
        Some(title) if title.split(' ').count() <= 3 => Part::Heading(title.to_owned()),
        _ => Part::Paragraph(line.to_owned()),
    }
}

/// Reads a row: a label and two spaces, an item of a list, or the usage.
fn row(line: &str) -> Option<Part> {
    const USAGE: &str = "Usage:";

    let indent = line.len() - line.trim_start().len();
    let label = if line.starts_with(USAGE) {
        USAGE
    } else if line[indent..].starts_with("- ") {
        &line[..=indent]
    } else {
        &line[..indent + line[indent..].find("  ")?]
    };
    let text = line[label.len()..].trim_start();
    Some(Part::Row {
        label: label.to_owned(),
        column: line.len() - text.len(),
        text: text.to_owned(),
    })
}

/// Lays a text out for a screen, in at most 80 columns.
pub(crate) fn page(text: &str, screen: &Screen) -> String {
    let screen = screen.page();
    let mut page = String::new();
    for part in parse(text.trim_end()) {
        match part {
            Part::Empty => {}
            Part::Heading(title) => page += &screen.paint(BOLD, format!("{title}:")),
            Part::Paragraph(text) => page += &screen.wrap(&text, 0),
            Part::Row {
                label,
                column,
                text,
            } => page += &lay_out_row(&label, column, &text, &screen),
            Part::Lines(lines) => page += &lay_out_lines(&lines, &screen),
        }
        page.push('\n');
    }
    page
}

/// Puts the text of a row into its column, or below the label if the column is too narrow.
fn lay_out_row(label: &str, column: usize, text: &str, screen: &Screen) -> String {
    let indent = label.len() - label.trim_start().len();
    let width = screen.width().unwrap_or(usize::MAX);
    let column = match column {
        column if column <= width / 2 => column,
        _ => indent + 4,
    };
    let gap = match label.len() < column {
        true => " ".repeat(column - label.len()),
        false => format!("\n{}", " ".repeat(column)),
    };
    let rest = screen.wrap(text, column);
    format!("{}{gap}{rest}", with_styles(label, screen))
}

/// Makes options stand out.
fn with_styles(label: &str, screen: &Screen) -> String {
    let mut styled = Vec::new();
    for word in label.split(' ') {
        styled.push(match word {
            "Usage:" => screen.paint(BOLD, word),
            "-" => word.to_owned(),
            _ if word.starts_with('-') => screen.paint(CYAN, word),
            _ => word.to_owned(),
        });
    }
    styled.join(" ")
}

fn lay_out_lines(lines: &[String], screen: &Screen) -> String {
    let mut laid_out = Vec::new();
    for line in lines {
        let words = line.trim_start();
        let indent = line.len() - words.len();
        laid_out.push(" ".repeat(indent) + &screen.wrap(words, indent + 2));
    }
    laid_out.join("\n")
}

/// Writes a text as a section of a manual page.
pub(crate) fn manual(title: &str, text: &str, page: &mut Roff) {
    let parts = parse(text.trim_matches('\n'));
    if parts.is_empty() {
        return;
    }
    page.control("SH", [title]);
    let mut is_first = true;
    for part in parts {
        match part {
            Part::Empty => continue,
            Part::Heading(title) => {
                page.control("SS", [title.as_str()]);
                is_first = true;
                continue;
            }
            Part::Paragraph(text) => {
                if !is_first {
                    page.control("PP", []);
                }
                page.text([roman(text)]);
            }
            Part::Row { label, text, .. } => {
                page.control("TP", []);
                page.text([bold(label.trim_start())]);
                page.text([roman(text)]);
            }
            Part::Lines(lines) => {
                page.control("RS", ["2"]).control("nf", []);
                for line in lines {
                    page.text([roman(line.trim_start())]);
                }
                page.control("fi", []).control("RE", []);
            }
        }
        is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Usage: petstore x [options]\n\nData:\n  list  List pets, one on each\n        \
                        line\n      --file FILE  read a file\n  petstore x > y\n\nTwo lines that\n\
                        belong together.\nAnother one.\n  - an item\n    of a list\n";

    fn page_of(width: usize) -> String {
        page(TEXT, &Screen::plain(Some(width)))
    }

    #[test]
    fn joins_the_lines_of_rows_and_paragraphs() {
        let wide = page_of(80);
        assert_eq!(
            wide,
            "Usage: petstore x [options]\n\nData:\n  list  List pets, one on each line\n      \
             --file FILE  read a file\n  petstore x > y\n\nTwo lines that belong together.\nAnother \
             one.\n  - an item of a list\n"
        );
        // Laying the result out again changes nothing, and no line is wider than 80 columns.
        assert_eq!(page(&wide, &Screen::plain(Some(160))), wide);
    }

    #[test]
    fn puts_a_text_below_its_label_if_the_column_is_narrow() {
        let narrow = page_of(30);
        assert!(
            narrow.contains("\n      --file FILE\n          read a file\n"),
            "{narrow}"
        );
        assert!(
            narrow.contains("\n  list  List pets, one on each\n        line\n"),
            "{narrow}"
        );
        assert!(
            narrow.contains("\nTwo lines that belong\ntogether.\n"),
            "{narrow}"
        );
    }

    #[test]
    fn a_manual_page_has_its_own_layout() {
        let mut roff = Roff::new();
        manual("NOTES", TEXT, &mut roff);
        let text = roff.render();
        assert!(text.contains(".SH NOTES\n.TP\n"), "{text}");
        assert!(text.contains(".SS Data\n.TP\n\\fBlist\\fR\n"), "{text}");
        assert!(text.contains(".nf\npetstore x > y\n.fi\n"), "{text}");
        assert!(
            text.contains(".PP\nTwo lines that belong together.\n"),
            "{text}"
        );
    }
}
