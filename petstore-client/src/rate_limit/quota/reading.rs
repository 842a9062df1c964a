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

    /// Returns the reading with a reset that is not after an instant.
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

/// A block: no request may be sent before an instant.
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
    pub(crate) retry_after: Option<Duration>,
}

/// The outcome of a sent request, or of several with the same kind of response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
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
    /// Reads a response's head. `believed` is the estimated time of the service, for a response
    /// without `Date`.
    pub(crate) fn read(status: StatusCode, headers: &HeaderMap, believed: ServiceTime) -> Self {
        let date = headers::date(headers);
        let service_now = date.unwrap_or_else(|| believed.system());
        Self {
            status: status.as_u16(),
            date: date.map(ServiceTime::from),
            reading: Reading::read(headers, service_now),
            retry_after: headers::retry_after(headers, service_now),
        }
    }
}

impl Outcome {
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

    pub(crate) fn moved(&self, by: i64) -> Self {
        Self {
            sent: self.sent.moved(by),
            ended: self.ended.moved(by),
            ..*self
        }
    }

    /// Returns when the request was sent and when its response came, if the response described a
    /// quota.
    pub(crate) fn described(&self) -> Option<(LocalTime, LocalTime)> {
        let head = self.head?;
        head.reading.map(|_| (self.sent, self.ended))
    }

    /// Returns whether two outcomes differ only in what is left of the same window.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let window = self.plain_window();
        window.is_some() && window == other.plain_window()
    }

    /// Returns the limit and the reset that a success describes, unless the request was a probe.
    fn plain_window(&self) -> Option<(u64, ServiceTime)> {
        let head = self.head?;
        if head.status >= 300 || self.is_probe {
            return None;
        }
        let reading = head.reading?;
        Some((reading.limit, reading.reset))
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        let requests = self.requests + other.requests;
        let reading = |outcome: &Self| outcome.head.and_then(|head| head.reading);
        let remaining = reading(self)
            .iter()
            .chain(&reading(other))
            .map(|f| f.remaining)
            .min();
        if other.sent >= self.sent {
            *self = *other;
        }
        self.requests = requests;
        if let Some(head) = &mut self.head
            && let Some(reading) = &mut head.reading
        {
            reading.remaining = remaining.unwrap_or(reading.remaining);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(limit: u64, remaining: u64, reset: i64) -> Option<Reading> {
        Some(Reading {
            limit,
            remaining,
            reset: ServiceTime(reset),
        })
    }

    fn outcome(sent: i64, status: u16, reading: Option<Reading>) -> Outcome {
        let head = ResponseHead {
            status,
            date: None,
            reading,
            retry_after: None,
        };
        let sent = LocalTime(sent);
        Outcome {
            sent,
            ended: sent,
            is_probe: false,
            requests: 2,
            head: Some(head),
        }
    }

    #[test]
    fn successes_of_one_window_are_reported_together() {
        let one = outcome(5, 200, reading(60, 7, 100));
        for (other, is_like) in [
            (outcome(6, 299, reading(60, 9, 100)), true),
            (outcome(6, 300, reading(60, 9, 100)), false),
            (outcome(6, 200, reading(61, 7, 100)), false),
            (outcome(6, 200, reading(60, 7, 101)), false),
            (outcome(6, 200, None), false),
            (
                Outcome {
                    is_probe: true,
                    ..one
                },
                false,
            ),
            (Outcome { head: None, ..one }, false),
        ] {
            assert_eq!(one.is_like(&other), is_like, "{other:?}");
        }
        let none = outcome(5, 200, None);
        assert!(!none.is_like(&none), "without a reading there is no window");
        for (sent, last, remaining) in [(4, 5, 3), (5, 5, 3), (6, 6, 3)] {
            let mut merged = one;
            let status = 201;
            merged.merge(&outcome(sent, status, reading(60, remaining, 100)));
            let head = merged.head.unwrap();
            assert_eq!(head.reading, reading(60, remaining, 100));
            assert_eq!((merged.requests, merged.sent), (4, LocalTime(last)));
            assert_eq!(head.status == status, sent >= 5, "{sent}");
        }
    }

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
