//! Tells of a deprecated operation once, however often it is called.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::clock::http_date;
use crate::deprecation::Deprecation;

/// Raw requests name operations as they like: remember this many, and be silent on the rest.
const MOST: usize = 1_000;

/// Hears of each deprecated operation, once for each client.
pub(crate) type Hook = Arc<dyn Fn(&str, &Deprecation) + Send + Sync>;

#[derive(Default)]
pub(crate) struct Notices {
    told: Mutex<HashSet<String>>,
    hook: Option<Hook>,
}

impl Notices {
    pub(crate) fn new(hook: Option<Hook>) -> Self {
        let told = Mutex::default();
        Self { told, hook }
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
        if let Some(hook) = &self.hook {
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
