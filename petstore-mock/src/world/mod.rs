//! What one request touches: the clock, the accounts of the keys, and the store, each behind one short
//! lock. It knows nothing of HTTP; what its verdicts mean there is left to `extract` and `error`.

mod keys;
mod snapshot;
mod value;
mod wait;

pub(crate) use self::{
    keys::{FirstKey, Verdict, is_sendable},
    value::World,
};
pub use self::{
    keys::{KeyError, KeyUsage, QuotaUsage},
    snapshot::Snapshot,
};
