//! One request and its answer: as it is kept, which costs a request next to nothing, and as it is
//! shown, with the keys masked. Keeping many of them is left to `journal`.

mod key;
mod masking;
mod record;
mod shown;

pub use self::{key::KeyLabel, record::Admission, shown::Exchange};
pub(crate) use self::{
    masking::Masker,
    record::{Captured, Fields, InFlight, KeyFlaw, Moment, Record},
};
