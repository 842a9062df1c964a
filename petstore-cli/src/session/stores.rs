//! The store of shared rate limits that the settings name.

use petstore_client::ClientBuilder;
use petstore_client::rate_limit::FileStore;
#[cfg(feature = "redis")]
use petstore_client::rate_limit::RedisStore;

use super::places::Places;
use crate::env::System;
use crate::error::{CliError, Result};
use crate::settings::{Settings, StoreAddress};

/// Lets a client share its rate limits through the store that the settings name. Its first request
/// opens the store.
pub(super) fn share_limits(
    builder: ClientBuilder,
    settings: &Settings,
    system: &System,
) -> Result<ClientBuilder> {
    match settings.values().limits_store() {
        StoreAddress::Off => Ok(builder),
        StoreAddress::File => match Places::find(system.dirs()).folder() {
            Some(folder) => Ok(builder.shared_limits(FileStore::new(folder))),
            None => Ok(builder),
        },
        StoreAddress::Redis(url) => {
            #[cfg(feature = "redis")]
            return Ok(builder.shared_limits(redis(&url, settings)?));
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
