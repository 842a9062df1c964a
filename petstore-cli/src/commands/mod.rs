//! The commands. The doc comments of their arguments are the help texts.

/// The end of a command's `--help`: its examples, and notes.
macro_rules! examples {
    ($($example:literal),+ $(; $($note:literal),+)?) => {
        concat!(
            "\u{1b}[1mExamples:\u{1b}[0m",
            $("\n  ", $example,)+
            $($("\n\n", $note,)+)?
        )
    };
}

pub(crate) mod api;
pub(crate) mod args;
pub(crate) mod auth;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
mod dry_run;
mod import;
pub(crate) mod limits;
pub(crate) mod man;
pub(crate) mod mistakes;
pub(crate) mod pets;
pub(crate) mod store;
