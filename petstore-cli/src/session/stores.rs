//! The store of shared rate limits that the settings name.

#[cfg(feature = "redis")]
use petstore_client::limits::RedisStore;
use petstore_client::limits::{FileStore, Limits};

use super::places::Places;
use crate::env::System;
use crate::error::{CliError, Result};
use crate::settings::{Settings, StoreAddress};

/// Returns rate limits that are shared through the store that the settings name. The client's first
/// request opens the store.
pub(super) fn shared_limits(settings: &Settings, system: &System) -> Result<Limits> {
    match settings.values().limits_store() {
        StoreAddress::Off => Ok(Limits::new()),
        StoreAddress::File => match Places::find(system.dirs()).folder() {
            Some(folder) => Ok(Limits::new().store(FileStore::new(folder))),
            None => Ok(Limits::new()),
        },
        StoreAddress::Redis(url) => {
            #[cfg(feature = "redis")]
            return Ok(Limits::new().store(redis(&url, settings)?));
            #[cfg(not(feature = "redis"))]
            Err(without_redis(&url))
        }
    }
}

#[cfg(feature = "redis")]
fn redis(url: &str, settings: &Settings) -> Result<RedisStore> {
    RedisStore::new(url).map_err(|problem| {
        let source = settings.source("limits_store");
        let problem = format!("the limits store is invalid: {problem}{source}");
        let hint = "give an address such as redis://HOST:6379";
        CliError::config(problem).hint(hint)
    })
}

/// Hardly reached: the setting itself refuses such an address.
#[cfg(not(feature = "redis"))]
fn without_redis(_: &str) -> CliError {
    CliError::config("`--limits-store` needs a build with Redis")
}
