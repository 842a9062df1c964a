//! Adds many pets, each once: reads and checks all rows before the first is sent, keeps a journal of
//! what became of each, and goes on where it was stopped, however that was.

mod check;
mod estimate;
mod journal;
mod outcome;
mod pace;
mod progress;
mod read;
mod rejects;
mod row;
mod send;

pub(crate) use journal::{Event, Fate, Header, Journal, JournalError, Ledger, open};
pub(crate) use pace::Bounds;
pub(crate) use read::{Table, read};
pub(crate) use rejects::rejects;
pub(crate) use row::Complaint;
pub(crate) use send::{Ended, Sending};
