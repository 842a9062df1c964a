//! What a caller makes of the service's limits: settings, not facts.

use std::time::Duration;

/// How a caller uses a quota.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Policy {
    /// The most requests to have under way; without it, a tenth of the limit, 32 to 256.
    pub(crate) max_in_flight: Option<u32>,
    /// The part of each quota that is the caller's, above 0 and up to 1.
    pub(crate) share: f64,
    /// The requests per minute and per day of the caller's plan, where it is known.
    pub(crate) plan: Option<(u64, u64)>,
    /// Whether requests are spread over the window.
    pub(crate) pacing: bool,
    /// Whether quotas hold requests back at all; refusals always do.
    pub(crate) gated: bool,
    /// How long a request may be under way.
    pub(crate) lease: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_in_flight: None,
            share: 1.0,
            plan: None,
            pacing: false,
            gated: true,
            lease: Duration::from_secs(30),
        }
    }
}

impl Policy {
    /// Returns how many requests may be under way under a limit.
    pub(crate) fn in_flight_limit(&self, limit: u64) -> u32 {
        let fitting = u32::try_from((limit / 10).clamp(32, 256)).unwrap_or(256);
        self.max_in_flight.unwrap_or(fitting).max(1)
    }
}
