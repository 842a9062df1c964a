//! The state of the service: the store, the data file, and the keys with their quotas and bans.
//! Independent of HTTP.

mod app_state;
mod ban;
pub(crate) mod data_file;
mod keys;
mod quota;
mod seed;
mod settings;
mod store;
mod stores;

pub(crate) use self::{
    app_state::AppState,
    keys::{Account, NewKey, Verdict, is_sendable, some_senders},
    quota::Period,
    settings::{DEFAULT_KEYS, Settings},
    store::{Change, Store},
};
pub use self::{
    ban::BanPolicy,
    data_file::DataError,
    keys::{KeyError, KeyUsage},
    quota::{QuotaUsage, RateHeaders, Window},
    seed::{Seed, SeedError},
    store::ChangeError,
    stores::Snapshot,
};
