//! The journal: the last exchanges, in bounded memory, and the questions that tests ask about them.
//! It passes each exchange to the report.

mod connection;
mod pattern;
mod recording;
mod ring;
mod tee;
mod verify;

pub(crate) use crate::exchange::{Arrival, Caller};

#[cfg(test)]
pub(crate) use self::pattern::differences;
pub(crate) use self::{
    connection::OpenConnection,
    recording::{AddedPet, Recording},
    ring::{DEFAULT, Journal},
    tee::Observed,
    verify::{check_order, check_times},
};
pub use self::{
    pattern::Pattern,
    ring::JournalUsage,
    verify::{Expectation, Times},
};
