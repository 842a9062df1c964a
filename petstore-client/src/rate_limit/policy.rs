//! How a client uses a key's quotas.

use std::sync::atomic::{AtomicU64, Ordering};

use super::quota::terms::Terms;

/// How a client uses a key's quotas. Clients with the same policy share a limiter.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Policy {
    terms: Terms,
    max_in_flight: Option<MaxInFlight>,
}

impl Policy {
    pub(crate) fn terms(&self) -> Terms {
        self.terms
    }

    pub(crate) fn terms_mut(&mut self) -> &mut Terms {
        &mut self.terms
    }

    /// Returns the most requests that a client may have in flight, if it has such a limit.
    pub(crate) fn max_in_flight(&self) -> Option<u32> {
        self.max_in_flight.map(|limit| limit.most)
    }

    /// Limits the requests in flight of a new client.
    pub(crate) fn limit_in_flight(&mut self, most: u32) {
        self.max_in_flight = Some(MaxInFlight::new(most));
    }
}

/// The maximum number of requests that one client may have in flight. It does not limit other clients with
/// the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MaxInFlight {
    client: u64,
    most: u32,
}

impl MaxInFlight {
    /// Creates the limit of a new client.
    fn new(most: u32) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self {
            client: LAST.fetch_add(1, Ordering::Relaxed),
            most,
        }
    }
}
