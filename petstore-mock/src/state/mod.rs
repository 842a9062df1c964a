//! The state of the service: the store, the data file, and the keys with their quotas and bans.
//! Independent of HTTP.

mod allowance;
mod app_state;
mod ban;
pub(crate) mod data_file;
mod keys;
mod quota;
mod seed;
mod settings;
mod snapshot;
mod store;
mod stores;

pub(crate) use self::{
    allowance::Exhausted,
    app_state::AppState,
    keys::{Account, InitialKey, Verdict, is_sendable},
    settings::{DEFAULT_KEYS, Settings},
    store::{Change, Store},
};
pub use self::{
    allowance::{ParseRateHeadersError, RateHeaders},
    ban::BanPolicy,
    data_file::DataError,
    keys::{KeyError, KeyUsage, QuotaUsage},
    quota::{ParseWindowError, Window},
    seed::{Seed, SeedError},
    snapshot::Snapshot,
    store::ChangeError,
};
