//! The store of shared rate limits that the settings name.

use petstore_client::ClientBuilder;
#[cfg(feature = "redis")]
use petstore_client::rate_limit::RedisStore;
use petstore_client::rate_limit::{FileStore, LimitStore as _, StoreError};

use crate::env::System;
use crate::error::{CliError, Kind};
use crate::settings::{Settings, StoreAddress};

/// Lets a client share its rate limits.
pub(super) fn share(
    builder: ClientBuilder,
    settings: &Settings,
    system: &System,
) -> Result<ClientBuilder, CliError> {
    match settings.values().limits_store() {
        StoreAddress::Off => Ok(builder),
        StoreAddress::File => match file(system) {
            Some(store) => Ok(builder.shared_limits(store)),
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

/// Removes the stored rate limits of all keys.
pub(super) async fn forget_all(settings: &Settings, system: &System) -> Result<(), CliError> {
    let failed = |problem: StoreError| CliError::new(Kind::Internal, problem.to_string());
    match settings.values().limits_store() {
        StoreAddress::Off => Ok(()),
        StoreAddress::File => match file(system) {
            Some(store) => store.forget(None).await.map_err(failed),
            None => Ok(()),
        },
        StoreAddress::Redis(url) => {
            #[cfg(feature = "redis")]
            return redis(&url, settings)?.forget(None).await.map_err(failed);
            #[cfg(not(feature = "redis"))]
            Err(without_redis(&url))
        }
    }
}

fn file(system: &System) -> Option<FileStore> {
    let folder = system.dirs().state.as_ref()?;
    Some(FileStore::new(folder.join("limits")))
}

#[cfg(feature = "redis")]
fn redis(url: &str, settings: &Settings) -> Result<RedisStore, CliError> {
    RedisStore::new(url).map_err(|problem| {
        let source = settings.source("limits_store");
        let problem = format!("the limits store is invalid: {problem}{source}");
        let hint = "give an address such as redis://HOST:6379";
        CliError::new(Kind::Config, problem).hint(hint)
    })
}

/// The setting refuses such an address.
#[cfg(not(feature = "redis"))]
fn without_redis(_: &str) -> CliError {
    CliError::new(Kind::Config, "`--limits-store` needs a build with Redis")
}
