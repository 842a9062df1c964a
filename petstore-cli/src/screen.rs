//! The width, colours and symbols of a terminal, and text layout.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};
use console::measure_text_width as columns;
use serde::Serialize;

use crate::env::System;

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();
pub(crate) const BLUE: Style = AnsiColor::Blue.on_default();
pub(crate) const MAGENTA: Style = AnsiColor::Magenta.on_default();

/// When to use colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR or TERM=dumb says otherwise
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// Returns whether a stream gets colour. What decides, in order of precedence: the choice;
    /// `NO_COLOR`; `CLICOLOR_FORCE`; `CLICOLOR=0` and `TERM=dumb`; whether the stream is a
    /// terminal.
    fn applies(self, system: &System, is_terminal: bool) -> bool {
        match self {
            Self::Always => return true,
            Self::Never => return false,
            Self::Auto => {}
        }
        if system.var("NO_COLOR").is_some() {
            return false;
        }
        match system.var("CLICOLOR_FORCE") {
            None | Some("0") => {}
            Some(_) => return true,
        }
        if system.var("CLICOLOR") == Some("0") {
            return false;
        }
        is_terminal && system.var("TERM") != Some("dumb")
    }
}

/// Returns whether the terminal of this system shows more than ASCII.
fn has_symbols(system: &System) -> bool {
    if let Some("dumb" | "linux") = system.var("TERM") {
        return false;
    }
    for name in ["LC_ALL", "LC_CTYPE", "LANG"] {
        if let Some(locale) = system.var(name) {
            let locale = locale.to_ascii_lowercase();
            return locale.replace('-', "").contains("utf8");
        }
    }
    false
}

/// The display of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    is_terminal: bool,
    /// The width of the terminal. A file has no limit.
    width: Option<usize>,
    color: bool,
    unicode: bool,
}

impl Screen {
    pub(crate) fn new(system: &System, color: Color, is_terminal: bool) -> Self {
        let width = match is_terminal {
            true => system.columns(),
            false => None,
        };
        Self {
            is_terminal,
            width,
            color: color.applies(system, is_terminal),
            unicode: has_symbols(system),
        }
    }

    /// A file.
    pub(crate) fn file() -> Self {
        Self {
            is_terminal: false,
            width: None,
            color: false,
            unicode: true,
        }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Returns the width of the terminal. A file has no limit.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    pub(crate) fn has_color(&self) -> bool {
        self.color
    }

    pub(crate) fn has_unicode(&self) -> bool {
        self.unicode
    }

    /// Returns text with a style, if enabled.
    pub(crate) fn paint(&self, style: Style, text: impl Display) -> String {
        if self.color {
            format!("{style}{text}{style:#}")
        } else {
            text.to_string()
        }
    }

    /// Returns a symbol, or its replacement if the locale is not UTF-8.
    pub(crate) fn symbol(&self, symbol: &'static str) -> &'static str {
        match symbol {
            symbol if self.unicode => symbol,
            "✓" => "ok",
            "✗" => "FAIL",
            "!" => "WARN",
            "–" => "-",
            "…" => "...",
            symbol => symbol,
        }
    }

    /// Wraps text at words. Indents lines after the first. Does not break what is in backquotes: a
    /// part of a command could do something else.
    pub(crate) fn wrap(&self, text: &str, indent: usize) -> String {
        let Some(width) = self.width else {
            return text.to_owned();
        };
        let room = width.saturating_sub(indent).max(20);
        let mut out = String::with_capacity(text.len());
        for (number, line) in text.lines().enumerate() {
            if number > 0 {
                out.push('\n');
            }
            let mut used = 0;
            // A backquote may be part of a file name in a command.
            let is_unclear = line.matches('`').count() % 2 == 1 || line.contains('\'');
            let mut is_quoted = false;
            let ends_word = |c| {
                if c == '`' {
                    is_quoted = !is_quoted || is_unclear;
                }
                c == ' ' && !is_quoted
            };
            for word in line.split_inclusive(ends_word) {
                if used > 0 && used + columns(word.trim_end()) > room {
                    out.truncate(out.trim_end().len());
                    out.push('\n');
                    out.extend(std::iter::repeat_n(' ', indent));
                    used = 0;
                }
                out += word;
                used += columns(word);
            }
        }
        out
    }

    /// Truncates text to a width, with `…`.
    pub(crate) fn cut(&self, text: &str, room: usize) -> String {
        console::truncate_str(text, room, self.symbol("…")).into_owned()
    }

    /// Formats names and values, one pair per line.
    pub(crate) fn pairs<N: AsRef<str>>(&self, pairs: &[(N, String)]) -> String {
        let names = pairs.iter().map(|(name, _)| columns(name.as_ref()));
        let width = names.max().unwrap_or(0) + 2;
        let line = |(name, value): &(N, String)| {
            let name = name.as_ref();
            let padding = " ".repeat(width - columns(name));
            format!("{name}{padding}{}\n", self.wrap(value, width))
        };
        pairs.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Screen {
        /// Creates the display of a terminal with symbols and without colours.
        pub(crate) fn plain(width: Option<usize>) -> Self {
            Self {
                is_terminal: true,
                width,
                color: false,
                unicode: true,
            }
        }
    }

    fn screen(width: usize, unicode: bool) -> Screen {
        Screen {
            unicode,
            ..Screen::plain(Some(width))
        }
    }

    #[test]
    fn cuts_by_the_columns_that_a_text_takes() {
        let screen = screen(80, true);
        assert_eq!(screen.cut("abcdef", 6), "abcdef");
        assert_eq!(screen.cut("abcdefg", 6), "abcde…");
        assert_eq!(screen.cut("犬犬犬犬", 6), "犬犬…");
    }

    #[test]
    fn wraps_at_words_and_indents() {
        let text = "one two three four five six";
        assert_eq!(
            screen(27, true).wrap(text, 7),
            "one two three four\n       five six"
        );
        assert_eq!(
            Screen {
                width: None,
                ..screen(0, true)
            }
            .wrap(text, 7),
            text
        );
    }

    #[test]
    fn never_breaks_a_command() {
        let screen = screen(30, true);
        for (text, wrapped) in [
            (
                "run `petstore pets import a.csv --journal b` to go on with it",
                "run\n`petstore pets import a.csv --journal b`\nto go on with it",
            ),
            (
                "`petstore pets import 'a `b.csv' --journal b` goes on with it",
                "`petstore pets import 'a `b.csv' --journal b` goes on with it",
            ),
        ] {
            assert_eq!(screen.wrap(text, 0), wrapped);
        }
    }
}
