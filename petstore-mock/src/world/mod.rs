//! What one request touches: the clock, the accounts of the keys, and the store, each behind one short
//! lock. It knows nothing of HTTP; what its verdicts mean there is left to `extract` and `error`.

mod account;
mod accounts;
mod snapshot;
mod usage;
mod value;
mod wait;

pub(crate) use self::{
    account::Verdict,
    accounts::{FirstKey, is_sendable},
    value::World,
};
pub use self::{
    accounts::KeyError,
    snapshot::Snapshot,
    usage::{KeyUsage, QuotaUsage},
};
