//! What is known of a key's rate limits, as programs and people see it.

use std::fmt;
use std::time::{Duration, SystemTime};

use http::HeaderMap;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::http::headers;

/// A reset that is further off than this is not the minute's: servers round.
const MAX_MINUTE: Duration = Duration::from_secs(90);

/// Which quota (specification, section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Quota {
    /// Requests per minute.
    Minute,
    /// Requests per day.
    Day,
    /// The service does not say which.
    Unknown,
}

impl Quota {
    /// Tells the quota by the time to its reset: the service does not name it.
    pub(super) fn by_reset(left: Duration) -> Self {
        if left <= MAX_MINUTE { Self::Minute } else { Self::Day }
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Minute => "the minute's quota",
            Self::Day => "the day's quota",
            Self::Unknown => "a rate limit",
        })
    }
}

/// One window of a quota, as the service described it (specification, section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuotaWindow {
    /// Which quota it is, told by how far off its reset is.
    pub quota: Quota,
    /// `X-RateLimit-Limit`: requests that the window allows.
    pub limit: u64,
    /// `X-RateLimit-Remaining`: requests left. In [`RateLimits`], requests in flight are counted
    /// as used.
    pub remaining: u64,
    /// `X-RateLimit-Reset`: when the next window begins, on the service's clock.
    pub reset: SystemTime,
}

impl QuotaWindow {
    /// Reads the window that a response describes, where its three headers make sense.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Self> {
        let now = headers::date(headers).unwrap_or_else(clock::wall);
        let headers::RateHeaders { limit, remaining, reset } = headers::rate_headers(headers, now)?;
        let quota = Quota::by_reset(reset.duration_since(now).unwrap_or_default());
        Some(Self { quota, limit, remaining, reset })
    }
}

/// The plan of a key: its quotas, for services that do not show them all (specification,
/// section 8).
///
/// ```
/// use petstore_client::rate_limit::Plan;
///
/// assert_ne!(Plan::FREE, Plan::custom().per_minute(60));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Plan {
    pub(crate) per_minute: Option<u64>,
    pub(crate) per_day: Option<u64>,
}

impl Plan {
    /// 60 requests a minute, 1,000 a day.
    pub const FREE: Self = Self::custom().per_minute(60).per_day(1_000);
    /// 300 requests a minute, 10,000 a day.
    pub const PRO: Self = Self::custom().per_minute(300).per_day(10_000);
    /// 1,000 requests a minute, 100,000 a day.
    pub const BUSINESS: Self = Self::custom().per_minute(1_000).per_day(100_000);

    /// Creates a plan without quotas, to be filled in.
    pub const fn custom() -> Self {
        Self { per_minute: None, per_day: None }
    }

    /// Sets the requests per minute; at least 1.
    pub const fn per_minute(mut self, requests: u64) -> Self {
        self.per_minute = Some(requests);
        self
    }

    /// Sets the requests per day; at least 1.
    pub const fn per_day(mut self, requests: u64) -> Self {
        self.per_day = Some(requests);
        self
    }
}

/// Why all requests with a key have to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockReason {
    /// A quota is used up.
    Quota(Quota),
    /// The key is banned for a while.
    Ban,
    /// A 429 names neither.
    Unknown,
}

impl fmt::Display for BlockReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quota(quota) => quota.fmt(f),
            Self::Ban => f.pad("a temporary ban of the key"),
            Self::Unknown => f.pad("a rate limit"),
        }
    }
}

/// No request with the key may be sent until an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blocked {
    /// Why.
    pub reason: BlockReason,
    /// Until when, on the service's clock.
    pub until: SystemTime,
    /// How long that was when this value was made. It does not depend on any clock being right.
    pub remaining: Duration,
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.remaining.as_secs() + u64::from(self.remaining.subsec_nanos() > 0);
        let until = clock::http_date(self.until);
        write!(f, "{} blocks requests until {until} (another {seconds} s)", self.reason)
    }
}

/// Why a call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitReason {
    /// The key is blocked: [`RateLimits::blocked`] says why, and until when.
    Blocked,
    /// One request is in flight whose response tells how many may follow: the first with a key,
    /// the first after a 429, and the first after the reset of a quota that was used up.
    Probe,
    /// Requests in flight, or unresolved ones, may use up what is left of a quota.
    Reserved,
    /// As many requests are in flight as allowed
    /// ([`max_in_flight`](crate::ClientBuilder::max_in_flight)).
    Concurrency,
    /// Other members that share the key have, or may ask for, what is left.
    Members,
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Blocked => "a rate limit",
            Self::Probe => "a first response that tells how many requests may follow",
            Self::Reserved => "requests in flight that may use up what is left",
            Self::Concurrency => "the most requests that may be in flight at once",
            Self::Members => "other processes that share the key",
        })
    }
}

/// Which of two waiting calls goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum Priority {
    /// Before calls of low priority.
    #[default]
    Normal,
    /// After all others: imports, caches.
    Low,
}

/// What is known of a key's rate limits at one moment, from
/// [`Client::rate_limits`](crate::Client::rate_limits).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimits {
    /// The open windows that the service has described. It describes one quota with each response,
    /// so not all that are in force need be known.
    pub windows: Vec<QuotaWindow>,
    /// The service's time, as far as it is known; `None` before the first call with a key.
    pub service_time: Option<SystemTime>,
    /// What blocks all requests now: a 429, or a quota that is used up.
    pub blocked: Option<Blocked>,
    /// Why a call that came now would wait, if it would.
    pub wait_reason: Option<WaitReason>,
    /// Requests in flight.
    pub in_flight: u32,
    /// Requests that ended without a usable response. Each counts as used until a later response
    /// shows whether it was.
    pub unresolved: u32,
    /// Calls that wait.
    pub waiting: usize,
    /// 429 responses since the process first used the key.
    pub throttled: u64,
    /// How long ago the last response came that described a quota, to this process or to another
    /// that shares the limits. `None`: none has.
    pub age: Option<Duration>,
    /// The store by which processes share the limits, where they do.
    pub shared: Option<SharedStatus>,
}

/// The state of a store by which processes share limits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedStatus {
    /// Where it is.
    pub location: String,
    /// The processes that use the key now, this one included; 0 before the first update.
    pub members: u32,
    /// Why it cannot be used, if it cannot: then this process goes on alone.
    pub problem: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_without_a_date_is_read_by_the_wall_clock() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("limit", 60), ("remaining", 59), ("reset", 30)] {
            let name = http::HeaderName::try_from(format!("x-ratelimit-{name}")).unwrap();
            headers.insert(name, value.into());
        }
        let window = QuotaWindow::read(&headers).unwrap();
        assert_eq!((window.quota, window.limit, window.remaining), (Quota::Minute, 60, 59));
        headers.insert("x-ratelimit-reset", 40_000.into());
        assert_eq!(QuotaWindow::read(&headers).unwrap().quota, Quota::Day);
    }

    #[test]
    fn a_block_says_why_until_when_and_for_how_long() {
        let blocked = Blocked {
            reason: BlockReason::Quota(Quota::Minute),
            until: SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000),
            remaining: Duration::from_millis(29_001),
        };
        let expected = "the minute's quota blocks requests until Fri, 15 Jan 2027 08:00:00 GMT \
                        (another 30 s)";
        assert_eq!(blocked.to_string(), expected);
    }
}
