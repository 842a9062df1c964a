//! What a response says about limits, and how a request ended.

use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};

use super::instant::{DAY, MINUTE, SECOND, ServiceTime, duration, micros};
use crate::rate_limit::view::{BlockReason, Blocked, Quota, QuotaWindow};
use crate::wire::headers;

/// A later reset is implausible: quotas are per minute and day, or at most per month.
const MAX_WINDOW: i64 = 32 * DAY;
/// The longest wait that is believed ([`headers::MAX_WAIT`]). Then a probe is sent.
pub(crate) const MAX_BLOCK: i64 = DAY + 60 * MINUTE;

/// The quota that a response describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reading {
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    pub(crate) reset: ServiceTime,
}

/// The parts of a response's head that matter for limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    /// The time on the service's clock, if the response says so.
    pub(crate) date: Option<ServiceTime>,
    /// The time on this machine's wall clock.
    pub(crate) wall: ServiceTime,
    pub(crate) reading: Option<Reading>,
    /// The wait that a 429 asks for, in microseconds.
    pub(crate) retry_after: Option<i64>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// How long before the report the request was sent, in microseconds.
    pub(crate) sent_ago: i64,
    /// How long before the report it ended.
    pub(crate) ended_ago: i64,
    pub(crate) is_probe: bool,
    /// `None` if no response came. The service may have counted the request.
    pub(crate) head: Option<ResponseHead>,
}

impl Reading {
    fn read(headers: &HeaderMap, service_now: SystemTime) -> Option<Self> {
        let window = QuotaWindow::read_at(headers, service_now)?;
        let reset = ServiceTime::from(window.reset);
        let is_plausible = reset.after(service_now.into()) <= MAX_WINDOW;
        is_plausible.then_some(Self {
            limit: window.limit,
            remaining: window.remaining,
            reset,
        })
    }

    /// Classifies the quota by the time to its reset.
    pub(crate) fn quota(&self, service_now: ServiceTime) -> Quota {
        Quota::by_reset(duration(self.reset.after(service_now)), self.reset.system())
    }
}

impl ResponseHead {
    pub(crate) fn read(status: StatusCode, headers: &HeaderMap, wall: SystemTime) -> Self {
        let date = headers::date(headers);
        let service_now = date.unwrap_or(wall);
        let retry_after = match status {
            StatusCode::TOO_MANY_REQUESTS => headers::retry_after(headers, service_now),
            _ => None,
        };
        Self {
            status: status.as_u16(),
            date: date.map(ServiceTime::from),
            wall: wall.into(),
            reading: Reading::read(headers, service_now),
            retry_after: retry_after.map(micros),
        }
    }

    pub(crate) fn is_refusal(&self) -> bool {
        self.status == 429
    }

    /// Returns whether the service has certainly looked up the request's key. Before that, it may answer
    /// with the quota of requests without a key.
    pub(crate) fn is_after_lookup(&self) -> bool {
        self.status < 500 && !matches!(self.status, 401 | 408 | 414 | 425 | 431)
    }

    /// Returns how long a 429 blocks the key, and why. `used_up` is the used-up quota that it describes, if any.
    pub(crate) fn block(
        &self,
        used_up: Option<Reading>,
        service_now: ServiceTime,
    ) -> (i64, BlockReason) {
        /// The block of a 429 without `Retry-After` that describes no used-up quota.
        const DEFAULT: i64 = MINUTE;
        /// How much the wait may differ from the time to the reset, because services round both.
        const ROUNDING: u64 = 2 * SECOND.unsigned_abs();

        let to_reset = used_up.map(|reading| reading.reset.after(service_now));
        let asked = self.retry_after.or(to_reset).unwrap_or(DEFAULT);
        // The wait is for this quota only if it ends with the reset.
        let reason = match (used_up, to_reset) {
            (Some(reading), Some(to_reset)) if to_reset.abs_diff(asked) <= ROUNDING => {
                BlockReason::Quota(reading.quota(service_now))
            }
            _ => BlockReason::Unknown,
        };
        (asked.clamp(SECOND, MAX_BLOCK), reason)
    }

    /// Returns the block that a 429 begins, for its caller.
    pub(crate) fn blocked(&self) -> Option<Blocked> {
        if !self.is_refusal() {
            return None;
        }
        let service_now = self.date.unwrap_or(self.wall);
        let used_up = self.reading.filter(|reading| reading.remaining == 0);
        let (length, reason) = self.block(used_up, service_now);
        Some(Blocked {
            reason,
            until: service_now.plus(length).system(),
            remaining: duration(length),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_reset_that_is_more_than_a_month_off_is_no_reading() {
        let month = 32 * 24 * 3_600;
        for (reset, is_reading) in [(month, true), (month + 1, false)] {
            let mut headers = HeaderMap::new();
            headers.insert("x-ratelimit-limit", 60.into());
            headers.insert("x-ratelimit-remaining", 59.into());
            headers.insert("x-ratelimit-reset", (1_800_000_000 + reset).into());
            let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
            let head = ResponseHead::read(StatusCode::OK, &headers, wall);
            assert_eq!(head.reading.is_some(), is_reading, "{reset}");
        }
    }
}
