//! The journal: the last exchanges, in bounded memory. It passes each exchange to the report.

mod connection;
mod recording;
mod ring;
mod tee;

pub(crate) use crate::exchange::{Arrival, Caller};

pub use self::ring::JournalUsage;
pub(crate) use self::{
    connection::OpenConnection,
    recording::{AddedPet, Recording},
    ring::{DEFAULT, Journal},
    tee::Observed,
};
