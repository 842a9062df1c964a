//! What a response, or a lost request, says about limits.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};

use super::clock::{LocalTime, ServiceTime};
use crate::http::headers;
use crate::rate_limit::view::{BlockReason, Quota, QuotaWindow};

/// A later reset is implausible: quotas are per minute and day, or at most per month.
const MAX_WINDOW: Duration = Duration::from_secs(32 * 24 * 3600);

/// The quota that a response describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    pub(crate) reset: ServiceTime,
}

impl Reading {
    /// Reads the quota that a response describes, if its reset is plausible.
    fn read(headers: &HeaderMap, service_now: SystemTime) -> Option<Self> {
        let window = QuotaWindow::read_at(headers, service_now)?;
        let left = window.reset.duration_since(service_now).unwrap_or_default();
        if left > MAX_WINDOW {
            return None;
        }
        Some(Self {
            limit: window.limit,
            remaining: window.remaining,
            reset: window.reset.into(),
        })
    }

    /// Returns the reading, with its reset no later than `latest`.
    pub(crate) fn with_reset_by(self, latest: ServiceTime) -> Self {
        Self {
            reset: self.reset.min(latest),
            ..self
        }
    }

    /// Returns which quota it is, by the time to its reset.
    pub(crate) fn quota(&self, service_now: ServiceTime) -> Quota {
        Quota::by_reset(self.reset.since(service_now), self.reset.system())
    }
}

/// The circumstances of a reading: when its response came, and which own requests it may include.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    /// When the request was sent, and when its response came.
    pub(crate) sent: LocalTime,
    pub(crate) received: LocalTime,
    /// The earliest time that the service's clock may have shown when the response came.
    pub(crate) service_now: ServiceTime,
    /// How many own requests were answered and use the quota: none if it was a 429.
    pub(crate) counted: u32,
    /// How many other own requests are outstanding.
    pub(crate) outstanding: u64,
}

/// A block, after a 429 or by a used-up quota: no request may be sent before an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Block {
    pub(crate) until: LocalTime,
    /// The end that the service named, which may differ from `until`.
    pub(crate) named: ServiceTime,
    pub(crate) reason: BlockReason,
}

impl Block {
    /// Returns the block on a clock that is `by` microseconds ahead.
    pub(crate) fn moved(self, by: i64) -> Self {
        Self {
            until: self.until.moved(by),
            ..self
        }
    }
}

/// The parts of a response's head that matter for limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    pub(crate) date: Option<ServiceTime>,
    pub(crate) reading: Option<Reading>,
    /// The wait that a 429 asks for.
    pub(crate) retry_after: Option<Duration>,
}

/// The outcome of a sent request, or of several with the same kind of response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestOutcome {
    /// When the last of these requests was sent, and when it ended.
    sent: LocalTime,
    ended: LocalTime,
    is_probe: bool,
    /// The number of reservations that end with it; 0 if its lease had already ended.
    requests: u32,
    /// `None` if no response came.
    head: Option<ResponseHead>,
}

impl ResponseHead {
    /// Returns whether the service has certainly looked up the request's key. Before that, it may
    /// answer 401, 408, 414, 431 or 5xx, with the quota of requests without a key.
    pub(crate) fn is_after_lookup(&self) -> bool {
        self.status < 500 && !matches!(self.status, 401 | 408 | 414 | 431)
    }

    /// Reads a response's head. `believed` is the estimated time of the service, for a response
    /// without `Date`.
    pub(crate) fn read(status: StatusCode, headers: &HeaderMap, believed: ServiceTime) -> Self {
        let date = headers::date(headers);
        let service_now = date.unwrap_or_else(|| believed.system());
        let retry_after = match status {
            StatusCode::TOO_MANY_REQUESTS => headers::retry_after(headers, service_now),
            _ => None,
        };
        Self {
            status: status.as_u16(),
            date: date.map(ServiceTime::from),
            reading: Reading::read(headers, service_now),
            retry_after,
        }
    }
}

impl RequestOutcome {
    /// Creates the outcome of a request that ended without a usable response.
    pub(crate) fn lost(sent: LocalTime, ended: LocalTime, is_probe: bool) -> Self {
        Self {
            sent,
            ended,
            is_probe,
            requests: 1,
            head: None,
        }
    }

    /// Creates the outcome of an answered request. `requests` is 0 if its lease had already ended.
    pub(crate) fn answered(
        sent: LocalTime,
        ended: LocalTime,
        is_probe: bool,
        requests: u32,
        head: ResponseHead,
    ) -> Self {
        Self {
            sent,
            ended,
            is_probe,
            requests,
            head: Some(head),
        }
    }

    pub(crate) fn sent(&self) -> LocalTime {
        self.sent
    }

    pub(crate) fn ended(&self) -> LocalTime {
        self.ended
    }

    pub(crate) fn is_probe(&self) -> bool {
        self.is_probe
    }

    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    pub(crate) fn head(&self) -> Option<&ResponseHead> {
        self.head.as_ref()
    }

    /// Returns the quota that the response described.
    pub(crate) fn reading(&self) -> Option<Reading> {
        self.head?.reading
    }

    /// Returns the outcome on a clock that is `by` microseconds ahead.
    pub(crate) fn moved(&self, by: i64) -> Self {
        Self {
            sent: self.sent.moved(by),
            ended: self.ended.moved(by),
            ..*self
        }
    }
}

#[cfg(test)]
impl Answer {
    /// Creates the answer to the only request, which was sent and answered at once.
    pub(crate) const fn at(at: LocalTime, service_now: ServiceTime) -> Self {
        Self {
            sent: at,
            received: at,
            service_now,
            counted: 1,
            outstanding: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_that_is_more_than_a_month_off_is_no_figure() {
        let month = 32 * 24 * 3_600;
        for (reset, is_figure) in [(month, true), (month + 1, false)] {
            let mut headers = HeaderMap::new();
            headers.insert("x-ratelimit-limit", 60.into());
            headers.insert("x-ratelimit-remaining", 59.into());
            headers.insert("x-ratelimit-reset", (1_800_000_000 + reset).into());
            let now = ServiceTime(1_800_000_000_000_000);
            let head = ResponseHead::read(StatusCode::OK, &headers, now);
            assert_eq!(head.reading.is_some(), is_figure, "{reset}");
        }
    }
}
