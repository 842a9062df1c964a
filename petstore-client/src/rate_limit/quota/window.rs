//! One window of a quota, as the service counts it.

use std::cmp::Ordering;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::clock::{LocalTime, SECOND, ServiceTime};
use super::others::ASSUMED_SHARE;
use super::outstanding::MAX_COUNT;
use super::reading::{Answer, Reading};
use crate::rate_limit::view::Quota;

/// Resets this close together belong to the same window, because servers round them.
const SAME_WINDOW: i64 = 2 * SECOND;
/// If the reset moves by less than this, the window is a sliding one.
const MIN_FIXED_WINDOW: Duration = Duration::from_secs(50);
/// The own share needs this many requests. An earlier value counts like this many requests.
const MIN_SAMPLE: u64 = 8;

/// One window of a quota: what its readings show, and how many requests are own ones.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Window {
    quota: Quota,
    limit: u64,
    /// The lowest reading seen. Within a window, the service's reading only falls.
    remaining: u64,
    reset: ServiceTime,
    /// The reset when the window was opened. In a sliding window, the reset moves.
    anchor: ServiceTime,
    opened_at: LocalTime,
    /// What the first reading would have shown if, of the own requests, only the one that it
    /// answered had been counted.
    opened_with: u64,
    /// Own requests that were answered or settled in this window, without the one that opened it.
    own: u64,
    /// Requests of other clients in this window, before its first reading came.
    others_before: u64,
    /// The own share that was known when the window was opened.
    prior: Option<f64>,
}

impl Window {
    /// Opens the first window of a quota. `share` is the own share so far. If more of the quota is used
    /// than own requests explain, other clients may use the key.
    pub(crate) fn open(reading: Reading, answer: &Answer, share: Option<f64>) -> Self {
        let answered = u64::from(answer.counted.max(1));
        let is_explained = reading.limit - reading.remaining <= answered + answer.outstanding;
        Self {
            quota: reading.quota(answer.service_now),
            limit: reading.limit,
            remaining: reading.remaining,
            reset: reading.reset,
            anchor: reading.reset,
            opened_at: answer.received,
            opened_with: reading.remaining.saturating_add(answered - 1),
            own: answered - 1,
            others_before: 0,
            prior: share.or((!is_explained).then_some(ASSUMED_SHARE)),
        }
    }

    /// Opens the next window. Other clients have used what own requests do not explain.
    fn reopen(&self, reading: Reading, answer: &Answer, share: Option<f64>) -> Self {
        let explained = u64::from(answer.counted.max(1)) + answer.outstanding;
        let used = reading.limit - reading.remaining;
        // In a sliding window, earlier own requests may still count.
        let slides = reading.reset.since(self.anchor) < MIN_FIXED_WINDOW;
        let others_before = if slides {
            0
        } else {
            used.saturating_sub(explained)
        };
        Self {
            quota: self.quota,
            others_before,
            prior: share,
            ..Self::open(reading, answer, share)
        }
    }

    pub(crate) fn quota(&self) -> Quota {
        self.quota
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the lowest reading of `remaining`.
    pub(crate) fn remaining(&self) -> u64 {
        self.remaining
    }

    pub(crate) fn reset(&self) -> ServiceTime {
        self.reset
    }

    pub(crate) fn opened_at(&self) -> LocalTime {
        self.opened_at
    }

    /// Returns whether a member can have written these values. A store may return anything.
    pub(crate) fn is_plausible(&self) -> bool {
        self.own < MAX_COUNT && self.remaining <= self.limit
    }

    /// Returns whether a reading describes this quota. The limit alone is not enough: 1,000 is a
    /// day's quota in one plan and a minute's in another.
    pub(crate) fn describes(&self, reading: &Reading, service_now: ServiceTime) -> bool {
        let quota = reading.quota(service_now);
        // In its last hour, a day's quota may look like an hour's.
        let is_minute = |quota| quota == Quota::Minute;
        self.limit == reading.limit
            && (is_minute(self.quota) == is_minute(quota)
                || self.compare(reading) == Ordering::Equal)
    }

    /// Returns whether a reading's window comes before this one, after it, or is this one.
    pub(crate) fn compare(&self, reading: &Reading) -> Ordering {
        match reading.reset.0.saturating_sub(self.anchor.0) {
            ahead if ahead > SAME_WINDOW => Ordering::Greater,
            ahead if ahead < -SAME_WINDOW => Ordering::Less,
            _ => Ordering::Equal,
        }
    }

    /// Records a reading of this quota: of this window, or of the next one, which it opens. Returns
    /// whether it has opened the next one. `share` is the own share so far, and `has_passed` says
    /// whether the reset is over.
    pub(crate) fn record(
        &mut self,
        reading: &Reading,
        answer: &Answer,
        share: Option<f64>,
        has_passed: bool,
    ) -> bool {
        match self.compare(reading) {
            Ordering::Equal => {
                self.lower(reading);
                self.count_own(answer.counted);
                false
            }
            // A late response from an earlier window. If its request was sent after this window was
            // opened, the service's clock was set back instead.
            Ordering::Less if !has_passed && answer.sent <= self.opened_at => false,
            Ordering::Less | Ordering::Greater => {
                *self = self.reopen(*reading, answer, share);
                true
            }
        }
    }

    /// Records a reading of this window. The response may be late, so a reading only lowers what is
    /// known.
    fn lower(&mut self, reading: &Reading) {
        self.reset = self.reset.max(reading.reset);
        self.remaining = self.remaining.min(reading.remaining);
    }

    /// Takes over what another copy of the same window knows.
    pub(crate) fn merge(&mut self, other: &Self) {
        let apart = self.anchor.0.abs_diff(other.anchor.0);
        if self.quota != other.quota
            || self.limit != other.limit
            || apart > SAME_WINDOW.unsigned_abs()
        {
            return;
        }
        self.remaining = self.remaining.min(other.remaining);
        self.own = self.own.max(other.own);
    }

    /// Records own requests that the service counted, or may have counted.
    pub(crate) fn count_own(&mut self, requests: u32) {
        self.own += u64::from(requests);
    }

    /// Records own requests that count here too, although their responses describe another quota.
    pub(crate) fn count_unreported(&mut self, requests: u32) {
        self.remaining = self.remaining.saturating_sub(requests.into());
        self.count_own(requests);
    }

    /// Returns the part of a minute's window that is left, 0 to 1.
    pub(crate) fn part_left(&self, service_now: ServiceTime) -> f64 {
        (self.reset.since(service_now).as_secs_f64() / 60.0).min(1.0)
    }

    /// Returns the number of own requests that were answered or settled in this window, without the one that opened it.
    pub(crate) fn own(&self) -> u64 {
        self.own
    }

    /// Returns the least number of requests that other clients have sent in this window.
    pub(crate) fn others(&self, outstanding: u64) -> u64 {
        let used = self.opened_with.saturating_sub(self.remaining);
        let others = used.saturating_sub(self.own + outstanding);
        self.others_before.saturating_add(others)
    }

    /// Returns how many more requests may be sent by a client that may send `allowed` in a window.
    pub(crate) fn left_of_part(&self, allowed: u64, outstanding: u64) -> u64 {
        allowed.saturating_sub(self.own + 1 + outstanding)
    }

    /// Returns the own share: the part of the requests in this window that are own ones. It is known
    /// after a few requests. Outstanding requests count as own.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a ratio of requests in one window"
    )]
    pub(crate) fn own_share(&self, outstanding: u64) -> Option<f64> {
        let (own, others) = (self.own + 1, self.others(outstanding));
        let (own, all) = (own as f64, own as f64 + others as f64);
        match self.prior {
            // Few requests say little, so the share from before counts as well.
            Some(prior) => Some((own + prior * MIN_SAMPLE as f64) / (all + MIN_SAMPLE as f64)),
            None => (all >= MIN_SAMPLE as f64).then(|| own / all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Answer = Answer::at(LocalTime(0), ServiceTime(0));

    #[test]
    fn figures_between_extremes_overflow_nothing() {
        let reading = |remaining| Reading {
            limit: u64::MAX,
            remaining,
            reset: ServiceTime(60 * SECOND),
        };
        let share = |window: &Window| window.own_share(0).is_none_or(|s| (0.0..=1.0).contains(&s));
        let mut window = Window::open(reading(u64::MAX), &FIRST, None);
        window.lower(&reading(0));
        assert!(share(&window));
        let later = Reading {
            reset: ServiceTime(120 * SECOND),
            ..reading(0)
        };
        let mut window = window.reopen(later, &FIRST, None);
        window.lower(&Reading {
            remaining: u64::MAX,
            ..later
        });
        assert!(share(&window));
    }

    const HUNDRED: Reading = Reading {
        limit: 100,
        remaining: 100,
        reset: ServiceTime(60 * SECOND),
    };

    /// Opens a window of 100 requests, of which `used` are used.
    fn open(used: u64, counted: u32, share: Option<f64>) -> Window {
        let reading = Reading {
            remaining: 100 - used,
            ..HUNDRED
        };
        Window::open(reading, &Answer { counted, ..FIRST }, share)
    }

    /// Opens a window while other requests are outstanding.
    fn open_beside(used: u64, outstanding: u64) -> Window {
        let reading = Reading {
            remaining: 100 - used,
            ..HUNDRED
        };
        let answer = Answer {
            outstanding,
            ..FIRST
        };
        Window::open(reading, &answer, None)
    }

    /// Opens a window, and then the next one, whose reset is `later` microseconds after the first.
    fn reopen(used: u64, counted: u32, share: Option<f64>, later: i64) -> Window {
        let reset = ServiceTime(HUNDRED.reset.0 + later);
        let reading = Reading {
            remaining: 100 - used,
            reset,
            ..HUNDRED
        };
        let answer = Answer {
            counted,
            outstanding: 2,
            ..FIRST
        };
        open(0, 1, None).reopen(reading, &answer, share)
    }

    #[test]
    fn what_the_figures_miss_was_used_by_other_clients() {
        let mut alone = open(1, 1, None);
        alone.lower(&Reading {
            remaining: 93,
            ..HUNDRED
        });
        alone.count_own(6);
        assert_eq!(alone.own_share(0), None, "seven requests tell too little");
        assert_eq!(alone.left_of_part(20, 2), 20 - (7 + 2));
        alone.count_unreported(1);
        let fixed = MIN_FIXED_WINDOW.as_secs().cast_signed() * SECOND;
        let cases = [
            (alone, Some(1.0)),
            (open_beside(3, 2), None),
            (open(10, 1, None), Some((1.0 + 2.0) / (1.0 + 8.0))),
            (open(3, 3, Some(0.5)), Some((3.0 + 4.0) / (3.0 + 8.0))),
            (
                reopen(10, 3, Some(0.5), fixed),
                Some((3.0 + 4.0) / (8.0 + 8.0)),
            ),
            (
                reopen(10, 1, Some(0.5), fixed),
                Some((1.0 + 4.0) / (8.0 + 8.0)),
            ),
            (
                reopen(10, 1, Some(0.5), fixed - 1),
                Some((1.0 + 4.0) / (1.0 + 8.0)),
            ),
        ];
        for (window, share) in cases {
            assert_eq!(window.own_share(0), share, "{window:?}");
        }
    }

    #[test]
    fn a_merge_takes_the_lowest_reading_and_the_most_own_requests() {
        let known = open(12, 5, None);
        let merged = |other: Window| {
            let mut window = open(10, 7, None);
            window.merge(&other);
            (window.remaining, window.own)
        };
        assert_eq!(merged(known.clone()), (88, 6));
        assert_eq!(merged(open(8, 9, None)), (90, 8));
        let at = |by| Window {
            anchor: ServiceTime(known.anchor.0 + by),
            ..known.clone()
        };
        assert_eq!(merged(at(2 * SECOND)), (88, 6));
        assert_eq!(merged(at(-2 * SECOND)), (88, 6));
        assert_eq!(merged(at(2 * SECOND + 1)), (90, 6), "a later window");
        assert_eq!(merged(at(-2 * SECOND - 1)), (90, 6), "an earlier window");
        let (limit, quota) = (99, Quota::Day);
        let of_limit = Window {
            limit,
            ..known.clone()
        };
        assert_eq!(merged(of_limit), (90, 6), "another limit");
        let of_day = Window { quota, ..known };
        assert_eq!(merged(of_day), (90, 6), "another quota");
    }

    #[test]
    fn resets_two_seconds_apart_are_of_one_window() {
        let mut window = open(1, 1, None);
        let reading = |by| Reading {
            reset: ServiceTime(60 * SECOND + by),
            ..HUNDRED
        };
        for (by, expected) in [
            (2 * SECOND, Ordering::Equal),
            (2 * SECOND + 1, Ordering::Greater),
            (-2 * SECOND, Ordering::Equal),
            (-2 * SECOND - 1, Ordering::Less),
        ] {
            assert_eq!(window.compare(&reading(by)), expected, "{by}");
        }
        window.lower(&reading(SECOND));
        window.lower(&reading(-SECOND));
        assert_eq!(
            (window.reset, window.remaining),
            (ServiceTime(61 * SECOND), 99)
        );
        for (seconds, left) in [(0, 1.0), (31, 0.5), (61, 0.0)] {
            assert_eq!(
                window.part_left(ServiceTime(seconds * SECOND)),
                left,
                "{seconds}"
            );
        }
    }
}
