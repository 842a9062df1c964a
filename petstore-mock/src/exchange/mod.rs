//! One request and its answer: as it is recorded, at little cost, and as it is shown, with the keys
//! masked.

mod key;
mod masking;
mod record;
mod shown;

pub use self::{key::KeyLabel, record::Admission, shown::Exchange};
pub(crate) use self::{
    masking::Masker,
    record::{Arrival, Caller, Captured, Fields, InFlight, KeyFlaw, Moment, Record},
};
