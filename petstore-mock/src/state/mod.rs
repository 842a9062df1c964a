//! The state of the service: the store, the data file, and the keys with their quotas and bans.
//! Independent of HTTP.

mod allowance;
mod app_state;
mod ban;
mod block_on;
mod key_stores;
mod keys;
pub(crate) mod persistence;
mod pet_list;
mod quota;
mod seed;
mod settings;
mod snapshot;
mod store;

pub(crate) use self::{
    allowance::Exhausted,
    app_state::AppState,
    block_on::block_on,
    keys::{Account, InitialKey, Verdict, is_sendable},
    pet_list::StoredPet,
    settings::{DEFAULT_KEYS, Settings},
    store::{Change, Store},
};
pub use self::{
    allowance::{ParseRateHeadersError, RateHeaders},
    ban::BanPolicy,
    keys::{KeyError, KeyUsage, QuotaUsage},
    persistence::DataError,
    quota::{ParseWindowError, Window},
    seed::{Seed, SeedError},
    snapshot::Snapshot,
    store::ChangeError,
};
