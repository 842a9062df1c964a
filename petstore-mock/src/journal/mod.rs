//! The journal: the last exchanges, in bounded memory, and the questions that tests ask about them.
//! It passes each exchange to the report.

mod recording;
mod ring;
mod verify;

pub use self::verify::Times;
pub(crate) use self::{
    recording::{Observed, Recording},
    ring::{DEFAULT, Journal},
    verify::{verify, wait_for},
};
