//! A request and its response: a compact record, and its public form with masked keys.

mod key;
mod masking;
mod record;
mod shown;

pub use self::{key::KeyLabel, record::Admission, shown::Exchange};
pub(crate) use self::{
    masking::{Masker, is_credential},
    record::{Arrival, Caller, Captured, Fields, KeyFlaw, Moment, Rate, Record},
};
