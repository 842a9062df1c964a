//! The store of shared rate limits that the settings name.

use std::sync::Arc;

use petstore_client::ClientBuilder;
#[cfg(feature = "redis")]
use petstore_client::rate_limit::RedisStore;
use petstore_client::rate_limit::{FileStore, LimitStore as _, StoreError};

use super::places::Places;
use crate::env::System;
use crate::error::{CliError, Kind, Result};
use crate::settings::{Settings, StoreAddress};

/// A store of shared rate limits. Clones share it.
#[derive(Clone)]
pub(super) enum LimitsStore {
    Off,
    File(Arc<FileStore>),
    #[cfg(feature = "redis")]
    Redis(Arc<RedisStore>),
}

impl LimitsStore {
    /// Returns the store that the settings name. Its first use opens it.
    pub(super) fn new(settings: &Settings, system: &System) -> Result<Self> {
        match settings.values().limits_store() {
            StoreAddress::Off => Ok(Self::Off),
            StoreAddress::File => match Places::find(system.dirs()).folder() {
                Some(folder) => Ok(Self::File(Arc::new(FileStore::new(folder)))),
                None => Ok(Self::Off),
            },
            StoreAddress::Redis(url) => {
                #[cfg(feature = "redis")]
                return Ok(Self::Redis(Arc::new(redis(&url, settings)?)));
                #[cfg(not(feature = "redis"))]
                Err(without_redis(&url))
            }
        }
    }

    /// Lets a client share its rate limits.
    pub(super) fn share(&self, builder: ClientBuilder) -> ClientBuilder {
        match self {
            Self::Off => builder,
            Self::File(store) => builder.shared_limits(Arc::clone(store)),
            #[cfg(feature = "redis")]
            Self::Redis(store) => builder.shared_limits(Arc::clone(store)),
        }
    }

    /// Removes the stored rate limits of all keys.
    pub(super) async fn forget_all(&self) -> Result<()> {
        let forgotten = match self {
            Self::Off => Ok(()),
            Self::File(store) => store.forget(None).await,
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.forget(None).await,
        };
        forgotten.map_err(|problem: StoreError| CliError::new(Kind::Internal, problem.to_string()))
    }

    /// Removes the files that only this process needs.
    pub(super) fn close(&self) {
        match self {
            Self::Off => {}
            Self::File(store) => store.close(),
            #[cfg(feature = "redis")]
            Self::Redis(_) => {}
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
