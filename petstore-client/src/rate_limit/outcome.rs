//! The outcomes of requests that matter for limits.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};

use super::clock::{LocalTime, ServiceTime};
use super::snapshot::BlockReason;
use super::window::Figure;
use crate::http::headers;

/// A later reset is implausible: quotas are per minute and day, or at most per month.
const MAX_WINDOW: Duration = Duration::from_secs(32 * 24 * 3600);

/// A block: no request may be sent before an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Block {
    pub(crate) until: LocalTime,
    /// The end according to the service, which may be before `until`.
    pub(crate) named: ServiceTime,
    pub(crate) reason: BlockReason,
}

impl Block {
    /// Returns the block on a clock that is `by` microseconds ahead.
    pub(super) fn moved(self, by: i64) -> Self {
        Self { until: self.until.moved(by), ..self }
    }
}

/// The parts of a response's head that matter for limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    pub(crate) date: Option<ServiceTime>,
    pub(crate) figure: Option<Figure>,
    pub(crate) retry_after: Option<Duration>,
}

/// The outcome of a sent request, or of several with the same kind of response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    /// When the last of them was sent, and when it ended.
    pub(super) sent: LocalTime,
    pub(super) ended: LocalTime,
    pub(super) probe: bool,
    /// The number of reservations that it ends; 0 if its lease had already ended.
    pub(super) requests: u32,
    /// `None` if no response came.
    pub(super) head: Option<ResponseHead>,
}

impl ResponseHead {
    /// Reads a response's head. `believed` is the estimated service time, used if there is no
    /// `Date`.
    pub(super) fn read(status: StatusCode, headers: &HeaderMap, believed: ServiceTime) -> Self {
        let date = headers::date(headers);
        let service_now = date.unwrap_or_else(|| believed.system());
        let figure = headers::rate_headers(headers, service_now).filter(|figure| {
            figure.reset.duration_since(service_now).unwrap_or_default() <= MAX_WINDOW
        });
        Self {
            status: status.as_u16(),
            date: date.map(ServiceTime::from),
            figure: figure.map(|figure| Figure {
                limit: figure.limit,
                remaining: figure.remaining,
                reset: figure.reset.into(),
            }),
            retry_after: headers::retry_after(headers, service_now),
        }
    }
}

impl Outcome {
    pub(super) fn moved(&self, by: i64) -> Self {
        Self { sent: self.sent.moved(by), ended: self.ended.moved(by), ..*self }
    }

    /// Returns whether two outcomes differ only in what is left of the same window.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let plain = |outcome: &Self| {
            let head = outcome.head.filter(|head| head.status < 300 && !outcome.probe)?;
            head.figure.map(|figure| (figure.limit, figure.reset))
        };
        plain(self).is_some() && plain(self) == plain(other)
    }

    pub(super) fn merge(&mut self, other: &Self) {
        let requests = self.requests + other.requests;
        let figure = |outcome: &Self| outcome.head.and_then(|head| head.figure);
        let remaining = figure(self).iter().chain(&figure(other)).map(|f| f.remaining).min();
        if other.sent >= self.sent {
            *self = *other;
        }
        self.requests = requests;
        if let Some(head) = &mut self.head
            && let Some(figure) = &mut head.figure
        {
            figure.remaining = remaining.unwrap_or(figure.remaining);
        }
    }
}
