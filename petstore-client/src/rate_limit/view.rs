//! The public view of a key's rate limits.

use std::fmt;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName};
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::wire::headers::{self, instant, numbers};

static LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
static REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
static RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// A reset that is further away does not belong to a minute's quota. It is more than a minute
/// because servers round.
const MAX_MINUTE: Duration = Duration::from_secs(90);
/// A reset that is further away belongs to a day's quota.
const MIN_DAY: Duration = Duration::from_secs(2 * 3_600);
/// A block of at least this many seconds is shown in hours.
const SHOWN_IN_HOURS: u64 = 2 * 3_600;

/// A quota (specification, section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Quota {
    /// Requests per minute.
    Minute,
    /// Requests per day.
    Day,
    /// The service does not say which quota.
    Unknown,
}

impl Quota {
    /// The quotas with a period, that of the shortest first. [`Unknown`](Self::Unknown) has none.
    ///
    /// ```
    /// use petstore_client::limits::Quota;
    ///
    /// let seconds = Quota::ALL.iter().filter_map(|quota| quota.period());
    /// assert!(seconds.map(|period| period.as_secs()).eq([60, 86_400]));
    /// ```
    pub const ALL: &'static [Self] = &[Self::Minute, Self::Day];

    /// Returns the period, unless the quota is unknown.
    #[must_use]
    pub const fn period(self) -> Option<Duration> {
        match self {
            Self::Minute => Some(Duration::from_secs(60)),
            Self::Day => Some(Duration::from_secs(86_400)),
            Self::Unknown => None,
        }
    }

    /// Returns the quota with the longer period.
    pub(super) fn longer(self, other: Self) -> Self {
        if other.period() > self.period() {
            other
        } else {
            self
        }
    }

    /// Determines the quota by its reset and the time until then, because the service does not name
    /// it. In its last hour, a day's quota is known by its reset, which is at midnight (UTC).
    pub(super) fn by_reset(left: Duration, reset: SystemTime) -> Self {
        let since = reset.duration_since(SystemTime::UNIX_EPOCH);
        let seconds = (since.unwrap_or_default() + Duration::from_millis(500)).as_secs();
        if left <= MAX_MINUTE {
            Self::Minute
        } else if left > MIN_DAY || seconds.is_multiple_of(86_400) {
            Self::Day
        } else {
            Self::Unknown
        }
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

/// The current window of a quota, as the service describes it (specification, section 8).
///
/// ```
/// use petstore_client::limits::QuotaWindow;
///
/// # async fn show(client: petstore_client::Client) -> petstore_client::Result<()> {
/// let meta = client.pets().list().with_meta().await?.meta;
/// if let Some(window) = QuotaWindow::of(meta.headers()) {
///     println!("{} of {} left until {:?}", window.remaining, window.limit, window.reset);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct QuotaWindow {
    /// The quota, derived from the time to its reset.
    pub quota: Quota,
    /// `X-RateLimit-Limit`: the requests that the window allows.
    pub limit: u64,
    /// `X-RateLimit-Remaining`: the requests left. In [`RateLimits`], requests in flight count as
    /// used.
    pub remaining: u64,
    /// `X-RateLimit-Reset`: when the next window begins, on the service's clock.
    pub reset: SystemTime,
}

impl QuotaWindow {
    /// Reads the window that a response's headers describe, if the three of them are valid.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        Self::read_at(headers, headers::date(headers).unwrap_or_else(clock::wall))
    }

    /// Reads the window that a response describes at the service's time.
    pub(crate) fn read_at(headers: &HeaderMap, service_now: SystemTime) -> Option<Self> {
        let limit = numbers(headers, &LIMIT).min()?;
        // A quota of 0 would block every call. Some services write it for "no limit".
        if limit == 0 {
            return None;
        }
        let remaining = numbers(headers, &REMAINING).min()?.min(limit);
        let reset = numbers(headers, &RESET)
            .filter_map(|number| instant(number, service_now))
            .max()?;
        let left = reset.duration_since(service_now).unwrap_or_default();
        let quota = Quota::by_reset(left, reset);
        Some(Self {
            quota,
            limit,
            remaining,
            reset,
        })
    }
}

/// The quotas of a key, for services that do not show all of them (specification, section 8).
///
/// ```
/// use petstore_client::limits::Plan;
///
/// assert_ne!(Plan::FREE, Plan::custom().per_minute(60));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[must_use]
pub struct Plan {
    per_minute: Option<u64>,
    per_day: Option<u64>,
}

impl Plan {
    /// 60 requests a minute, 1,000 a day.
    pub const FREE: Self = Self::custom().per_minute(60).per_day(1_000);
    /// 300 requests a minute, 10,000 a day.
    pub const PRO: Self = Self::custom().per_minute(300).per_day(10_000);
    /// 1,000 requests a minute, 100,000 a day.
    pub const BUSINESS: Self = Self::custom().per_minute(1_000).per_day(100_000);

    /// Creates a plan without quotas.
    pub const fn custom() -> Self {
        Self {
            per_minute: None,
            per_day: None,
        }
    }

    /// Sets the requests per minute, at least 1.
    pub const fn per_minute(mut self, requests: u64) -> Self {
        self.per_minute = Some(requests);
        self
    }

    pub(crate) fn minute_limit(self) -> Option<u64> {
        self.per_minute
    }

    pub(crate) fn day_limit(self) -> Option<u64> {
        self.per_day
    }

    /// Sets the requests per day, at least 1.
    pub const fn per_day(mut self, requests: u64) -> Self {
        self.per_day = Some(requests);
        self
    }
}

/// Why a key is blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockReason {
    /// A quota is exhausted.
    Quota(Quota),
    /// The key is banned temporarily.
    Ban,
    /// A 429 without a reason.
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

/// A block: no request with the key may be sent until an instant.
///
/// ```
/// use petstore_client::Error;
/// use petstore_client::limits::BlockReason;
///
/// /// Returns what to show to a user whose call failed.
/// fn advice(error: &Error) -> Option<String> {
///     let blocked = error.blocked()?;
///     let seconds = blocked.remaining.as_secs() + 1;
///     Some(match blocked.reason {
///         BlockReason::Ban => format!("the key is banned for {seconds} s"),
///         _ => format!("try again in {seconds} s"),
///     })
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Blocked {
    /// The reason.
    pub reason: BlockReason,
    /// The end, on the service's clock: at most 25 hours away. Then the client asks again.
    pub until: SystemTime,
    /// The time until this end when this value was created. It does not depend on a correct clock.
    pub remaining: Duration,
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.remaining.as_secs() + u64::from(self.remaining.subsec_nanos() > 0);
        let until = clock::http_date(self.until);
        write!(f, "{} blocks requests until {until} ", self.reason)?;
        if seconds < SHOWN_IN_HOURS {
            write!(f, "(another {seconds} s)")
        } else {
            write!(f, "(another {} h)", seconds.div_ceil(3_600))
        }
    }
}

/// Why a call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitReason {
    /// The key is blocked. [`RateLimits::blocked`] says why and until when.
    Blocked,
    /// A probe is in flight: a single request whose response says how many may follow. It is the
    /// first request with a key, after a 429, and after the reset of an exhausted quota.
    Probe,
    /// Requests in flight or unresolved requests may use up the rest of a quota.
    Reserved,
    /// The maximum number of requests is in flight
    /// ([`max_in_flight`](crate::limits::Limits::max_in_flight)).
    Concurrency,
    /// The rest belongs to other processes that share the key and wait, too.
    OtherProcesses,
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Blocked => "a rate limit",
            Self::Probe => "a first response that says how many requests may follow",
            Self::Reserved => "requests in flight that may use up what is left",
            Self::Concurrency => "the maximum number of requests in flight",
            Self::OtherProcesses => "other processes that share the key",
        })
    }
}

/// The priority of waiting calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum Priority {
    /// Goes before calls with low priority.
    #[default]
    Normal,
    /// Goes after all others. For imports and caches, for example.
    Low,
}

/// A snapshot of a key's rate limits, from [`KeyLimits::snapshot`](crate::operations::KeyLimits::snapshot).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimits {
    /// The current windows that the service has described. Each response describes one quota, so
    /// some may be unknown.
    pub windows: Vec<QuotaWindow>,
    /// Windows that have ended, if no response has described the next one yet. They are shown with
    /// all requests left. Other clients may have used some of these already.
    pub ended: Vec<QuotaWindow>,
    /// The estimated time of the service, on its clock; `None` before the first call with a key.
    pub service_time: Option<SystemTime>,
    /// The block of all requests, if any: after a 429, or until an exhausted quota resets.
    pub blocked: Option<Blocked>,
    /// Why a new call would wait, if it would.
    pub wait_reason: Option<WaitReason>,
    /// The number of requests in flight.
    pub in_flight: u32,
    /// The number of requests that ended without a usable response. Each counts as used until a
    /// later response shows whether the service counted it.
    pub unresolved: u32,
    /// The number of waiting calls.
    pub waiting: usize,
    /// The number of 429s that all who share these limits have got since they were last forgotten.
    pub throttled: u64,
    /// The time since the last response that described a quota, to this process or to another
    /// process that shares the limits; `None` if there was none.
    pub age: Option<Duration>,
    /// The store through which processes share the limits, if any.
    pub shared: Option<Shared>,
}

/// The state of a shared store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shared {
    /// The location of the store.
    pub location: String,
    /// The number of holders that use the key now: one for each process, or for each set of rate limit settings
    /// within a process. 0 before the first answer of the store.
    pub holders: u32,
    /// Why the store cannot be used, if so. The process then continues with what it knows. It assumes that
    /// other processes use the key, so it has few requests in flight, and leaves some of each window unused.
    pub problem: Option<String>,
}
