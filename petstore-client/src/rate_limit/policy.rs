//! How a client uses a key's quotas.

use std::sync::atomic::{AtomicU64, Ordering};

use super::quota::terms::Terms;

/// How a client uses a key's quotas. Clients with the same policy share a limiter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Policy {
    terms: Terms,
    /// The client that sets its own limit of requests in flight; 0 for clients with the default limit.
    client: u64,
    max_in_flight: u32,
}

impl Policy {
    pub(crate) fn terms(&self) -> Terms {
        self.terms
    }

    pub(crate) fn terms_mut(&mut self) -> &mut Terms {
        &mut self.terms
    }

    pub(crate) fn max_in_flight(&self) -> u32 {
        self.max_in_flight
    }

    /// Limits the requests in flight of a new client.
    pub(crate) fn limit_in_flight(&mut self, most: u32) {
        static LAST: AtomicU64 = AtomicU64::new(0);
        self.client = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        self.max_in_flight = most;
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            terms: Terms::default(),
            client: 0,
            // Programs may often open 1,024 files.
            max_in_flight: 512,
        }
    }
}
