//! What became of each row, kept in a file beside the input: a line before a row is sent, and a line
//! after, so that no row is sent twice, however the program ends.

mod entry;
mod file;
mod ledger;

pub(crate) use entry::{Event, Header};
pub(crate) use file::{Journal, JournalError, open};
pub(crate) use ledger::{Fate, Ledger};
