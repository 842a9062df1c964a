//! The journal: the last exchanges, in bounded memory, and the questions that tests ask about them.
//! It passes each exchange to the report.

mod connection;
mod observed;
mod recording;
mod ring;
mod verify;

pub(crate) use crate::exchange::{Arrival, Caller};

pub use self::verify::Times;
pub(crate) use self::{
    connection::OpenConnection,
    observed::Observed,
    recording::Recording,
    ring::{DEFAULT, Journal},
    verify::{verify, wait_for},
};
