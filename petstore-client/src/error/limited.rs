//! A call that was refused, or held back, by a rate limit.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::clock::http_date;

/// Which limit held a call back, as far as the service lets it be told (specification, section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Quota {
    /// The requests per minute.
    Minute,
    /// The requests per day.
    Day,
    /// The temporary ban of the key.
    Banned,
    /// The service did not say enough to tell.
    Unknown,
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Minute => "the minute's quota",
            Self::Day => "the day's quota",
            Self::Banned => "a temporary ban of the key",
            Self::Unknown => "a rate limit",
        })
    }
}

/// A wait that is longer than the caller allows, or a last attempt that was refused.
#[derive(Debug, Clone)]
pub(crate) struct RateLimited {
    /// When the service will take requests again, on its own clock.
    pub(crate) until: SystemTime,
    /// How long that is from when the error arose.
    pub(crate) wait: Duration,
    pub(crate) quota: Quota,
    /// The wait that the caller's limits still allowed, where that is what ended the call.
    pub(crate) allowed: Option<Duration>,
}

impl fmt::Display for RateLimited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.wait.as_secs() + u64::from(self.wait.subsec_nanos() > 0);
        write!(
            f,
            "{} holds requests back until {} (another {seconds} s)",
            self.quota,
            http_date(self.until)
        )?;
        match self.allowed {
            Some(allowed) => write!(
                f,
                ", which is longer than this call may still wait ({} s); \
                 call again then, or allow a longer `max_wait` and `timeout`",
                (allowed.as_secs_f64() * 10.0).round() / 10.0
            ),
            None => f.write_str("; call again then, or allow more attempts"),
        }
    }
}
