//! All that is known of a key's limits, and how each response changes it. This code is pure: it
//! uses no clock, lock or socket.
//!
//! The service counts requests for each quota, and describes one quota with every response. Within
//! a window its reading only falls, so the lowest reading seen includes every answered request. The
//! ledger therefore keeps that reading. It counts only where no response describes a quota, and to measure
//! the own share. Requests in flight and lost
//! requests are outstanding: the service may have counted them, and the reading does not show it.

use std::cmp::Ordering;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::clock::{LocalTime, ServiceClock, ServiceTime};
use super::others::OtherClients;
use super::outstanding::{LostRequests, MAX_COUNT};
use super::plan::{PlanLeft, PlanUsage};
use super::policy::Policy;
use super::reading::{Answer, Block, Reading, RequestOutcome, ResponseHead};
use super::refusals::{MAX_BLOCK, Refusals};
use super::window::Window;
use crate::rate_limit::view::{Plan, Quota};

/// Each time a window opens later than announced, the next ones are expected this much later, in all
/// at most `MAX_RESET_MARGIN`.
const RESET_MARGIN_STEP: Duration = Duration::from_secs(1);
const MAX_RESET_MARGIN: Duration = Duration::from_secs(2);
/// A response changes the mean latency by one part in this many.
const LATENCY_WEIGHT: u32 = 16;
/// The maximum number of windows that are kept. A service has two or three quotas, whose limits may change.
const MAX_WINDOWS: usize = 4;
/// While more than this is left, and more than half of the quota, other clients cannot use it up
/// between two readings.
const PLENTY: u64 = 2_048;

/// What is known of a key's limits.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Ledger {
    clock: ServiceClock,
    windows: Vec<Window>,
    /// Whether a response has shown a quota that is certainly the key's.
    knows_keys_quota: bool,
    refusals: Refusals,
    lost: LostRequests,
    usage: PlanUsage,
    /// How much later than announced windows have been seen to open.
    reset_margin: Duration,
    others: OtherClients,
    /// The latest time at which the service can have written the last reading.
    seen_at: Option<LocalTime>,
    /// The running mean of the time from sending a request to the head of its response.
    latency: Duration,
}

/// The changes made by recording an outcome.
#[derive(Debug, Clone, Copy, Default)]
#[must_use]
pub(crate) struct Recorded {
    block: Option<Block>,
    opened_window: bool,
}

impl Recorded {
    /// Returns the block, if it was a 429.
    pub(crate) fn block(self) -> Option<Block> {
        self.block
    }

    /// Returns whether it has opened the next window of a quota.
    pub(crate) fn has_opened_window(self) -> bool {
        self.opened_window
    }
}

impl Ledger {
    pub(crate) fn new(now: LocalTime, wall: ServiceTime) -> Self {
        Self {
            clock: ServiceClock::guess(now, wall),
            ..Self::default()
        }
    }

    /// Returns whether a member can have written these values. A store may return anything.
    pub(crate) fn is_plausible(&self) -> bool {
        self.windows.iter().all(Window::is_plausible)
            && self.usage.is_plausible()
            && self.latency.max(self.reset_margin).as_secs() < MAX_COUNT
    }

    /// Records the outcome of a request. `reserved` is the number of other requests that are
    /// reserved or in flight.
    pub(crate) fn record(&mut self, outcome: &RequestOutcome, reserved: u64) -> Recorded {
        let Some(head) = outcome.head() else {
            self.add_lost(outcome);
            return Recorded::default();
        };
        let expected = self.service_time(outcome.ended());
        self.observe_clock(outcome, head);
        self.observe_latency(outcome);
        let reading = self.reading_of_key(outcome, head);
        // The failure may be that of a proxy, so the service may not have counted the request.
        if head.status >= 500 && reading.is_none() {
            self.add_lost(outcome);
            return Recorded::default();
        }
        self.settle(outcome, reading.filter(|_| head.status != 401));
        let answer = self.answer(outcome, head, reserved);
        self.usage.count(answer.counted, answer.service_now);
        // The headers of a 401 describe no quota of this key (specification, section 8).
        if head.status == 401 {
            return Recorded::default();
        }
        let reading =
            reading.map(|reading| reading.with_reset_by(answer.service_now.plus(MAX_BLOCK)));
        if outcome.is_probe() {
            self.observe_late_opening(reading, answer.service_now.max(expected));
        }
        // A reading of a window that has ended says nothing about the current one.
        let current = reading.filter(|reading| reading.reset >= answer.service_now);
        if let Some(current) = current
            && head.is_after_lookup()
        {
            self.forget_foreign_quotas(current, answer.service_now);
        }
        let opened_window = self.learn(current, &answer);
        if current.is_some() {
            self.seen_at = self.seen_at.max(Some(outcome.ended()));
        }
        if current.is_some() || reading.is_none() {
            self.refusals.end_doubt();
        }
        let block = if head.status == 429 {
            Some(self.refusals.record(head, current, &answer))
        } else {
            let knows_minute = self.knows_minute();
            self.refusals
                .record_not_refused(&answer, outcome.is_probe(), knows_minute);
            None
        };
        Recorded {
            block,
            opened_window,
        }
    }

    /// Returns the number of lost requests. The service may have counted them without showing it
    /// yet.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.count()
    }

    /// Takes over what another copy of this ledger knows of the same windows, of other quotas and of
    /// lost requests.
    pub(crate) fn merge(&mut self, other: &Self) {
        for known in &other.windows {
            for window in &mut self.windows {
                window.merge(known);
            }
            let is_known = |window: &Window| window.quota() == known.quota();
            if !self.windows.iter().any(is_known) {
                self.add_window(known.clone());
            }
        }
        self.usage.merge(&other.usage);
        self.lost.merge(&other.lost);
    }

    /// Counts the reservations of a member that is gone as lost requests.
    pub(crate) fn lose(&mut self, requests: u64, now: LocalTime) {
        if requests > 0 {
            let requests = u32::try_from(requests).unwrap_or(u32::MAX);
            self.lost.add(requests, now, now);
        }
    }

    /// Returns how many lost requests were sent after a time on the service's clock.
    pub(crate) fn lost_since(&self, at: ServiceTime) -> u64 {
        self.lost.since(self.clock.local(at))
    }

    /// Returns whether a lost request may still be on its way to the service.
    pub(crate) fn has_lost_on_the_way(&self, now: LocalTime) -> bool {
        self.lost.is_on_the_way(now)
    }

    pub(crate) fn windows(&self) -> &[Window] {
        &self.windows
    }

    pub(crate) fn others(&self) -> &OtherClients {
        &self.others
    }

    pub(crate) fn others_mut(&mut self) -> &mut OtherClients {
        &mut self.others
    }

    pub(crate) fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    pub(crate) fn refusals_mut(&mut self) -> &mut Refusals {
        &mut self.refusals
    }

    /// Returns whether the minute's quota is known. Where the limiter only assumes that a reset is a
    /// minute away, the window may be that of a day.
    pub(crate) fn knows_minute(&self) -> bool {
        if self.refusals.remembers_minute() {
            return true;
        }
        let is_minute = |window: &Window| window.quota() == Quota::Minute;
        self.clock.knows_quotas() && self.windows.iter().any(is_minute)
    }

    /// Returns what each quota of a client's plan leaves.
    pub(crate) fn plan_left(
        &self,
        plan: Plan,
        now: LocalTime,
        policy: &Policy,
    ) -> impl Iterator<Item = PlanLeft> {
        self.usage
            .left(plan, self.service_time(now), |limit| policy.part_of(limit))
    }

    /// Returns the mean latency of responses.
    pub(crate) fn latency(&self) -> Duration {
        self.latency
    }

    /// Returns the time since the last reading, if there was one.
    pub(crate) fn age(&self, now: LocalTime) -> Option<Duration> {
        self.seen_at.map(|at| now.since(at))
    }

    /// Returns the latest time at which the service can have written the last reading.
    pub(crate) fn seen_at(&self) -> Option<LocalTime> {
        self.seen_at
    }

    /// Returns the earliest time that the service's clock may show.
    pub(crate) fn service_time(&self, now: LocalTime) -> ServiceTime {
        self.clock.earliest(now)
    }

    /// Returns when the service's clock has certainly reached a time.
    pub(crate) fn local_time(&self, at: ServiceTime) -> LocalTime {
        self.clock.local(at)
    }

    /// Returns how much later than announced a window is assumed to open. Another client may have
    /// got a `Retry-After`, which is rounded up to whole seconds. It applies to the key: a request
    /// that comes before it has elapsed counts towards a ban.
    pub(crate) fn reset_margin(&self, service_now: ServiceTime) -> Duration {
        if self.others.are_known(service_now) {
            self.reset_margin.max(RESET_MARGIN_STEP)
        } else {
            self.reset_margin
        }
    }

    pub(crate) fn has_passed(&self, window: &Window, service_now: ServiceTime) -> bool {
        service_now >= window.reset().plus(self.reset_margin(service_now))
    }

    /// Returns the own share, if other clients could use up the rest between two readings.
    pub(crate) fn contested_share(&self) -> Option<f64> {
        let is_scarce = |window: &Window| window.remaining() <= PLENTY.max(window.limit() / 2);
        if self.windows.iter().any(is_scarce) {
            self.others.share()
        } else {
            None
        }
    }

    /// Returns when everything that is known has expired, if all windows end as announced.
    pub(crate) fn idle_from(&self) -> LocalTime {
        let resets = self
            .windows
            .iter()
            .map(|window| self.clock.local(window.reset()));
        resets
            .chain(self.refusals.last_block().map(|block| block.until))
            .max()
            .unwrap_or(LocalTime(0))
    }

    fn add_lost(&mut self, outcome: &RequestOutcome) {
        self.lost
            .add(outcome.requests(), outcome.sent(), outcome.ended());
    }

    fn observe_clock(&mut self, outcome: &RequestOutcome, head: &ResponseHead) {
        let (sent, received) = (outcome.sent(), outcome.ended());
        let wait = head.retry_after;
        if let Some(date) = head.date {
            self.clock.observe_date(sent, received, date);
            if let Some(reading) = &head.reading {
                self.clock
                    .observe_date_and_reset(received, date, reading.reset, wait);
            }
        } else if let Some(reading) = &head.reading {
            self.clock.observe_reset(received, reading.reset, wait);
        }
    }

    fn observe_latency(&mut self, outcome: &RequestOutcome) {
        // If its lease had ended, it is not known when the request was sent.
        if outcome.requests() == 0 {
            return;
        }
        let latency = outcome.ended().since(outcome.sent());
        self.latency = if self.latency.is_zero() {
            latency
        } else {
            (self.latency * (LATENCY_WEIGHT - 1) + latency) / LATENCY_WEIGHT
        };
    }

    /// Returns the reading of a response, unless it may describe the quota of requests without a
    /// key: it differs from what is known, and the service may not have looked up the key.
    fn reading_of_key(&self, outcome: &RequestOutcome, head: &ResponseHead) -> Option<Reading> {
        let reading = head.reading?;
        let service_now = self.service_time(outcome.ended());
        let is_known = |window: &Window| window.describes(&reading, service_now);
        if head.is_after_lookup() || !self.knows_keys_quota || self.windows.iter().any(is_known) {
            Some(reading)
        } else {
            None
        }
    }

    /// Forgets, at the first reading that is certainly the key's, what errors have shown before.
    fn forget_foreign_quotas(&mut self, reading: Reading, service_now: ServiceTime) {
        if !self.knows_keys_quota {
            self.knows_keys_quota = true;
            self.windows
                .retain(|window| window.describes(&reading, service_now));
        }
    }

    fn answer(&self, outcome: &RequestOutcome, head: &ResponseHead, reserved: u64) -> Answer {
        // A refused request uses no quota.
        let counted = if head.status == 429 {
            0
        } else {
            outcome.requests().max(1)
        };
        Answer {
            sent: outcome.sent(),
            received: outcome.ended(),
            service_now: self.service_time(outcome.ended()),
            counted,
            outstanding: reserved + self.lost.count(),
        }
    }

    /// Settles lost requests by the response to a later request: those that had arrived before it
    /// are no longer outstanding, and count as own.
    fn settle(&mut self, outcome: &RequestOutcome, reading: Option<Reading>) {
        let service_now = self.service_time(outcome.ended());
        for (count, at) in self.lost.settle(outcome.sent()) {
            for window in &mut self.windows {
                if reading.is_some_and(|reading| window.describes(&reading, service_now)) {
                    // The reading may include them. They must not look like requests of other
                    // clients.
                    window.count_own(count);
                } else {
                    window.count_unreported(count);
                }
            }
            self.usage.count(count, self.clock.earliest(at));
        }
    }

    /// Expects later resets if the response to a probe still describes a used-up window that should
    /// have ended. Then the service rounds its resets down.
    fn observe_late_opening(&mut self, reading: Option<Reading>, service_now: ServiceTime) {
        let Some(reading) = reading.filter(|reading| reading.remaining == 0) else {
            return;
        };
        let opens_late = self.windows.iter().any(|window| {
            window.limit() == reading.limit
                && window.compare(&reading) == Ordering::Equal
                && self.has_passed(window, service_now)
        });
        if opens_late {
            self.reset_margin = (self.reset_margin + RESET_MARGIN_STEP).min(MAX_RESET_MARGIN);
        }
    }

    /// Records the reading of a response. Returns whether it has opened the next window of a quota.
    fn learn(&mut self, reading: Option<Reading>, answer: &Answer) -> bool {
        let service_now = answer.service_now;
        let margin = self.reset_margin(service_now);
        let mut share = self.others.own_share();
        let (mut is_described, mut opened_next) = (false, false);
        self.windows.retain_mut(|window| {
            let has_passed = service_now >= window.reset().plus(margin);
            let Some(reading) = reading.filter(|reading| window.describes(reading, service_now))
            else {
                // This response does not describe the window: count it down, and forget it after
                // its reset.
                window.count_unreported(answer.counted);
                return reading.is_none() || !has_passed;
            };
            is_described = true;
            opened_next |= window.record(&reading, answer, share, has_passed);
            share = window.own_share(answer.outstanding).or(share);
            true
        });
        if let Some(reading) = reading
            && !is_described
        {
            let window = Window::open(reading, answer, share);
            share = window.own_share(answer.outstanding).or(share);
            self.add_window(window);
        }
        self.others.observe(share, service_now);
        opened_next
    }

    fn add_window(&mut self, window: Window) {
        self.windows.push(window);
        if self.windows.len() > MAX_WINDOWS {
            // The windows with the fewest remaining requests matter most.
            self.windows.sort_by_key(Window::remaining);
            self.windows.truncate(MAX_WINDOWS);
        }
    }
}

/// For tests: sets and reads what no response shows.
#[cfg(test)]
impl Ledger {
    /// Creates a ledger that a response has described.
    pub(crate) fn with_window(now: LocalTime, service: ServiceTime, window: Window) -> Self {
        let mut ledger = Self {
            windows: vec![window],
            knows_keys_quota: true,
            seen_at: Some(now),
            ..Self::new(now, service)
        };
        ledger.refusals.end_doubt();
        ledger
    }

    /// Sets the own share, as if readings until `seen_at` had shown it.
    pub(crate) fn set_own_share(&mut self, share: f64, seen_at: LocalTime) {
        self.others.set_own_share(share);
        self.seen_at = Some(seen_at);
    }

    pub(crate) fn set_latency(&mut self, latency: Duration) {
        self.latency = latency;
    }
}
