//! The journal: the last exchanges, in bounded memory. It passes each exchange to the report.

mod recording;
mod ring;
mod tee;

pub(crate) use crate::exchange::{Arrival, Caller};

pub use self::ring::JournalUsage;
pub(crate) use self::{
    recording::{AddedPet, Recording},
    ring::{DEFAULT, Journal},
    tee::Observed,
};
