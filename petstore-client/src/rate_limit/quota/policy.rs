//! How a client uses a key's quotas.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::rate_limit::view::Plan;

/// How a client uses a key's quotas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Policy {
    /// The maximum number of requests of the client in flight. With `None`, the limit follows the
    /// quotas.
    pub(crate) max_in_flight: Option<MaxInFlight>,
    /// The part of each quota that the client may use: above 0, up to 1.
    pub(crate) quota_part: f64,
    pub(crate) plan: Option<Plan>,
    /// Whether quotas limit requests. A 429 always does.
    pub(crate) rate_limiting: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_in_flight: None,
            quota_part: 1.0,
            plan: None,
            rate_limiting: true,
        }
    }
}

impl Policy {
    /// Returns the client's part of a limit, at least one request.
    pub(crate) fn part_of(&self, limit: u64) -> u64 {
        if self.has_whole_quota() {
            limit
        } else {
            part(limit, self.quota_part).max(1)
        }
    }

    pub(crate) fn has_whole_quota(&self) -> bool {
        self.quota_part >= 1.0
    }

    /// Returns the client's identity, if it limits its requests in flight.
    pub(crate) fn limited_client(&self) -> Option<ClientId> {
        self.max_in_flight.map(|limit| limit.client)
    }
}

/// The maximum number of requests that one client may have in flight. It does not limit other
/// clients with the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MaxInFlight {
    client: ClientId,
    most: u32,
}

impl MaxInFlight {
    /// Creates the limit of a new client.
    pub(crate) fn new(most: u32) -> Self {
        Self {
            client: ClientId::new(),
            most,
        }
    }

    pub(crate) fn most(self) -> u64 {
        self.most.into()
    }
}

/// Identifies a client in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClientId(u64);

impl ClientId {
    pub(crate) fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// Returns a fraction of a number, rounded down.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "rounds a part of a limit down; `as` saturates"
)]
pub(crate) fn part(of: u64, fraction: f64) -> u64 {
    (of as f64 * fraction) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_limit_is_rounded_down_to_one_at_least() {
        let exact = (1 << 53) + 1;
        for (quota_part, limit, part) in [(1.0, exact, exact), (0.5, 5, 2), (0.5, 1, 1)] {
            let policy = Policy {
                quota_part,
                ..Policy::default()
            };
            assert_eq!(policy.part_of(limit), part, "{quota_part} of {limit}");
        }
    }
}
