//! What a response shows to a member that is alone, and what follows from it. This code is pure.

use std::time::Duration;

use crate::rate_limit::quota::clock::LocalTime;
use crate::rate_limit::view::Quota;

/// A lower mean latency counts as this one, because a few requests in a short time say little about
/// the pace. With 20 ms, 4 members 5 ms away use 0.91 of 300 a minute, with 100 ms 0.96.
const MIN_LATENCY: Duration = Duration::from_millis(100);
/// The maximum of the mean latency. It is the length of the shortest window.
const MAX_LATENCY: Duration = Duration::from_secs(60);

/// The requests left unused at the end of a window: one for each other member, at most `MIN_KEPT`
/// plus a sixteenth of the limit, and never more than `MAX_KEPT`. Members with old readings still
/// send a few requests then. With a 24th instead of a sixteenth, members at 300 a minute have 12
/// refusals instead of none. With a `MAX_KEPT` of 24, those at 1,000 a minute have 4.
const MIN_KEPT: u64 = 2;
const KEPT_PART: u64 = 16;
const MAX_KEPT: u64 = 32;

/// What a response shows about the window that leaves the fewest requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Observation {
    /// When the request was sent, and when its response came.
    pub(crate) sent: LocalTime,
    pub(crate) at: LocalTime,
    pub(crate) quota: Quota,
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    /// When the window was first seen, and when a request may be sent after its reset.
    pub(crate) opened_at: LocalTime,
    pub(crate) reset_at: LocalTime,
    /// The known requests in this window, of this member and of others.
    pub(crate) own: u64,
    pub(crate) others: u64,
    /// The requests of this member in flight, including the one that was answered.
    pub(crate) in_flight: u64,
    /// The mean latency.
    pub(crate) latency: Duration,
}

impl Observation {
    /// Returns this member's part of the requests in the window: above 0, and at most 1.
    pub(crate) fn own_part(&self) -> f64 {
        let own = number(self.own.saturating_add(1));
        own / (own + number(self.others))
    }

    /// Returns the maximum number of requests that are left unused at the end of the window.
    pub(crate) fn most_kept(&self) -> u64 {
        MIN_KEPT
            .saturating_add(self.limit / KEPT_PART)
            .min(MAX_KEPT)
    }

    /// Returns how many requests this member sends at once after the reset, at most 1. All members
    /// together send at most a quarter of the limit.
    pub(crate) fn rate_after_reset(&self) -> f64 {
        (number(self.limit) / 4.0 * self.own_part()).min(1.0)
    }

    /// Returns the mean latency, within its bounds.
    pub(crate) fn mean_latency(&self) -> Duration {
        self.latency.clamp(MIN_LATENCY, MAX_LATENCY)
    }

    /// Returns the duration of `count` latencies; `count` is capped at a thousand.
    pub(crate) fn latencies(&self, count: f64) -> Duration {
        self.mean_latency().mul_f64(count.clamp(0.0, 1_000.0))
    }

    /// Moves all instants to a clock that is `by` microseconds ahead.
    pub(crate) fn shift(&mut self, by: i64) {
        for instant in [
            &mut self.sent,
            &mut self.at,
            &mut self.opened_at,
            &mut self.reset_at,
        ] {
            *instant = instant.moved(by);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "estimates of requests")]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounds down; `as` saturates"
)]
pub(crate) fn whole(number: f64) -> u64 {
    number as u64
}
