//! Colour: whether it is wanted, and the few styles there are.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};

use crate::env::Env;

/// Labels of what went wrong.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// Labels of what may go wrong.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// Labels of what helps.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();
/// The heads of tables.
pub(crate) const HEAD: Style = Style::new().bold();
/// The names in JSON.
pub(crate) const NAME: Style = AnsiColor::Blue.on_default();

/// When colour is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
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
    /// Returns whether a stream gets colour: the choice over `NO_COLOR` over `CLICOLOR_FORCE`
    /// over `CLICOLOR=0` and `TERM=dumb` over whether it is a terminal.
    pub(crate) fn applies(self, env: &Env, is_terminal: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if env.var("NO_COLOR").is_some() => false,
            Self::Auto if env.var("CLICOLOR_FORCE").is_some_and(|force| force != "0") => true,
            Self::Auto => {
                let plain = env.var("TERM") == Some("dumb") || env.var("CLICOLOR") == Some("0");
                is_terminal && !plain
            }
        }
    }
}

/// Returns text in a style, or plain.
pub(crate) fn paint(style: Style, text: impl Display, on: bool) -> String {
    if on { format!("{style}{text}{style:#}") } else { text.to_string() }
}
