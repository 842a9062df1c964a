//! The state of the service: the store and the file that keeps it, the keys and what each has used, and
//! what holds all of it together. It contains no HTTP.

mod app_state;
mod block_on;
mod keys;
#[cfg(feature = "data")]
mod persistence;
mod pet_list;
mod seed;
mod settings;
mod snapshot;
mod store;

/// What stands for the data file where the feature `data` is off: nothing that could be opened.
#[cfg(not(feature = "data"))]
mod persistence {
    pub(crate) type Data = std::convert::Infallible;
}

#[cfg(feature = "data")]
pub use self::persistence::DataError;
pub(crate) use self::{
    app_state::AppState,
    keys::{FirstKey, Verdict, is_sendable},
    pet_list::StoredPet,
    settings::{DEFAULT_KEYS, Settings, Token},
    store::{Change, Store},
};
pub use self::{
    keys::{KeyError, KeyUsage, QuotaUsage},
    seed::{Seed, SeedError, SeedPet},
    snapshot::Snapshot,
    store::ChangeError,
};
