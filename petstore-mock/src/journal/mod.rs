//! The journal: the last exchanges, in bounded memory, and the questions that tests ask about them.
//! It passes each exchange to the report.

mod connection;
mod recording;
mod ring;
mod tee;
mod verify;

pub(crate) use crate::exchange::{Arrival, Caller};

pub use self::verify::Times;
pub(crate) use self::{
    connection::OpenConnection,
    recording::{AddedPet, Recording},
    ring::{DEFAULT, Journal},
    tee::Observed,
    verify::{verify, wait_for},
};
