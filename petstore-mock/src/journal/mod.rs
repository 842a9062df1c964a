//! The journal: what was asked of the server lately and what it answered, in bounded memory. What may
//! be shown of it is left to `exchange`, what it says about the client to `report`.

mod recording;
mod ring;
mod tee;

pub(crate) use self::{
    recording::{AddedPet, Arrival, Caller, Recording},
    ring::{DEFAULT, Journal},
    tee::Observed,
};
