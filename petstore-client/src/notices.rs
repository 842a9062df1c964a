//! Tells what a program may want to show: a deprecated operation, once however often it is
//! called, and each wait that a rate limit asks for.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use crate::clock::http_date;
use crate::deprecation::Deprecation;
use crate::error::Quota;

/// Raw requests name operations as they like: remember this many, and be silent on the rest.
const MOST: usize = 1_000;

/// Hears of each deprecated operation, once for each client.
pub(crate) type DeprecationHook = Arc<dyn Fn(&str, &Deprecation) + Send + Sync>;
/// Hears of each wait.
pub(crate) type WaitHook = Arc<dyn Fn(&Wait<'_>) + Send + Sync>;

/// A wait that begins: a rate limit holds a call back.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Wait<'w> {
    /// The operation that waits, by the specification's name or as method and path.
    pub operation: &'w str,
    /// Which limit asks for it.
    pub quota: Quota,
    /// How long it will be, as far as is known now.
    pub length: Duration,
    /// When it ends, on the service's clock.
    pub until: SystemTime,
}

#[derive(Default)]
pub(crate) struct Notices {
    told: Mutex<HashSet<String>>,
    on_deprecation: Option<DeprecationHook>,
    on_wait: Option<WaitHook>,
}

impl Notices {
    pub(crate) fn new(on_deprecation: Option<DeprecationHook>, on_wait: Option<WaitHook>) -> Self {
        Self { told: Mutex::default(), on_deprecation, on_wait }
    }

    pub(crate) fn waits(&self, wait: &Wait<'_>) {
        tracing::debug!(quota = %wait.quota, length = ?wait.length, "held back by a rate limit");
        if let Some(hook) = &self.on_wait {
            hook(wait);
        }
    }

    pub(crate) fn tell(&self, operation: &str, deprecation: &Deprecation) {
        if !self.is_first(operation) {
            return;
        }
        tracing::warn!(
            operation,
            sunset = deprecation.sunset().map(http_date),
            successor = deprecation.successor(),
            "this operation is deprecated"
        );
        if let Some(hook) = &self.on_deprecation {
            hook(operation, deprecation);
        }
    }

    fn is_first(&self, operation: &str) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        !told.contains(operation) && told.len() < MOST && told.insert(operation.to_owned())
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").field("told", &self.told).finish_non_exhaustive()
    }
}
