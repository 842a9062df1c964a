//! The journal: the last requests and their answers, in bounded memory, each of which is passed to the
//! report.

mod recording;
mod ring;
mod tee;

pub(crate) use crate::exchange::{Arrival, Caller};

pub(crate) use self::{
    recording::{AddedPet, Recording},
    ring::{DEFAULT, Journal},
    tee::Observed,
};
