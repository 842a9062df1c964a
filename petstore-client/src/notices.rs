//! Tells what a program may want to show: a deprecated operation, once however often it is
//! called, each wait that a rate limit asks for, and each refusal.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use http::StatusCode;

use crate::clock::http_date;
use crate::deprecation::Deprecation;
use crate::error::Quota;

/// Raw requests name operations as they like: remember this many, and be silent on the rest.
const MOST: usize = 1_000;

/// Hears of each deprecated operation, once for each client.
pub(crate) type DeprecationHook = Arc<dyn Fn(&str, &Deprecation) + Send + Sync>;
/// Hears of each wait.
pub(crate) type WaitHook = Arc<dyn Fn(&Wait<'_>) + Send + Sync>;

/// Hears of each refusal.
pub(crate) type RefusalHook = Arc<dyn Fn(&Refusal<'_>) + Send + Sync>;

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

/// A refusal that came: 429, or 503 with `Retry-After` (specification, section 8). It holds back
/// all calls with the key until its end.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Refusal<'r> {
    /// The operation that was refused, by the specification's name or as method and path.
    pub operation: &'r str,
    /// 429 or 503.
    pub status: StatusCode,
    /// Which limit it is about, as far as can be told.
    pub quota: Quota,
    /// How long requests are held back for it.
    pub wait: Duration,
    /// Until when, on the service's clock.
    pub until: SystemTime,
    /// The how-manieth attempt of the call it was the answer to, from 1.
    pub attempt: u32,
}

/// The functions that a program sets.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) on_deprecation: Option<DeprecationHook>,
    pub(crate) on_wait: Option<WaitHook>,
    pub(crate) on_refusal: Option<RefusalHook>,
}

pub(crate) struct Notices {
    hooks: Hooks,
    told: Mutex<HashSet<String>>,
}

impl Notices {
    pub(crate) fn new(hooks: Hooks) -> Self {
        Self { hooks, told: Mutex::default() }
    }

    pub(crate) fn refused(&self, refusal: &Refusal<'_>) {
        let Refusal { quota, wait, .. } = refusal;
        tracing::debug!(status = refusal.status.as_u16(), %quota, ?wait, "refused by a rate limit");
        if let Some(hook) = &self.hooks.on_refusal {
            hook(refusal);
        }
    }

    pub(crate) fn waits(&self, wait: &Wait<'_>) {
        tracing::debug!(quota = %wait.quota, length = ?wait.length, "held back by a rate limit");
        if let Some(hook) = &self.hooks.on_wait {
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
        if let Some(hook) = &self.hooks.on_deprecation {
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
