//! One request and its answer: as it is kept, which costs a request next to nothing, and as it is
//! shown, with the keys masked. Keeping many of them is left to `journal`.

mod captured;
mod fields;
mod key;
mod masking;
mod record;
mod shown;

pub(crate) use self::{
    captured::Captured,
    fields::Fields,
    masking::Masker,
    record::{InFlight, KeyFlaw, Moment, Record},
};
pub use self::{key::KeyLabel, record::Admission, shown::Exchange};
