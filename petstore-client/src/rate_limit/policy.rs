//! How a client uses a key's quotas.

use std::sync::atomic::{AtomicU64, Ordering};

use super::quota::ledger::grant::Terms;

/// How a client uses a key's quotas. Clients with the same policy share a limiter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Policy {
    pub(crate) terms: Terms,
    pub(crate) max_in_flight: Option<MaxInFlight>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            terms: Terms {
                is_limited: true,
                share: 1.0,
                plan: None,
            },
            max_in_flight: None,
        }
    }
}

/// The maximum number of requests that one client may have in flight. It does not limit other clients with
/// the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MaxInFlight {
    client: u64,
    most: u32,
}

impl MaxInFlight {
    /// Creates the limit of a new client.
    pub(crate) fn new(most: u32) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self {
            client: LAST.fetch_add(1, Ordering::Relaxed),
            most,
        }
    }

    pub(crate) fn most(self) -> u32 {
        self.most
    }
}
