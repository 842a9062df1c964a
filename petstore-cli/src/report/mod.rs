//! What the program says on standard error, besides results: notes, warnings, errors, hints, what
//! calls went through, and how long one still waits.

mod countdown;
mod fault;
mod printer;
mod trace;

pub(crate) use printer::{ErrorFormat, Report, Style};
