//! All that is known of a key's limits, and how each outcome changes it.
//!
//! The service counts requests for each quota, and describes one quota with every response. Within a window its
//! figure only falls, so the lowest reading includes every answered request. Requests in flight and lost
//! requests are outstanding: the service may have counted them, and the reading does not show it.

mod grant;
mod snapshot;

use serde::{Deserialize, Serialize};

use super::holder::{Holders, LEASE};
use super::instant::{DAY, LedgerTime, MINUTE, SECOND, ServiceTime};
use super::lost::LostRequests;
use super::reading::{MAX_BLOCK, Outcome, Reading, ResponseHead};
use super::report::Report;
use super::service_clock::ServiceClock;
use super::window::{Receipt, Window};
use crate::rate_limit::view::{BlockReason, Plan, Quota};

/// Windows open at most this much later than announced.
const MAX_LATE: i64 = MINUTE / 2;
/// How much services round resets and waits.
const ROUNDING: i64 = SECOND;
/// A response changes the mean latency by one part in this many.
const LATENCY_WEIGHT: i64 = 16;
/// A service has two or three quotas, whose limits may change.
const MAX_WINDOWS: usize = 4;
/// How long others with the key are remembered.
const REMEMBERED: i64 = 5 * MINUTE;
/// In a shorter time, it is not measured how fast others send.
const MIN_MEASURED: i64 = SECOND / 100;
/// Requests of others are noticed if they are more than one in this many.
const NOTICED: u64 = 64;

/// All that is known of a key's limits.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Ledger {
    clock: ServiceClock,
    windows: Vec<Window>,
    /// The block of the last 429, until a later response is not a 429.
    block: Option<Block>,
    /// Whether a response has shown how much may be sent, or that the service does not say.
    is_known: bool,
    /// Whether a response has shown the minute's quota, and no unforeseen 429 came since.
    knows_minute: bool,
    /// When the block of the last unforeseen 429 ends: the service hides a quota.
    hidden: Option<LedgerTime>,
    /// When the last probe was granted, and how many since the last response.
    probed_at: LedgerTime,
    probes: u64,
    /// Until when others are assumed to use the key.
    others_until: Option<LedgerTime>,
    /// How many requests a second they send at most, when that was last measured, and whether it was measured over some
    /// time, or is a guess.
    others_rate: u64,
    others_seen_at: Option<LedgerTime>,
    is_rate_measured: bool,
    lost: LostRequests,
    holders: Holders,
    /// Since when it is counted what holders are granted.
    counted_from: LedgerTime,
    /// How much later than announced windows open.
    late: i64,
    /// The running mean of the time to a response's head.
    latency: i64,
    /// When a response last described a quota.
    described_at: Option<LedgerTime>,
    /// The number of 429s.
    refusals: u64,
    /// When the last report came. The store's clock may be set back; the ledger's time never is.
    last_seen: LedgerTime,
    /// How far the ledger's time is ahead of the store's clock.
    offset: i64,
}

/// The block of a 429.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Block {
    until: LedgerTime,
    /// When the 429 came.
    at: LedgerTime,
    reason: BlockReason,
}

/// Time.
impl Ledger {
    /// Returns the ledger's time when the store's clock shows an instant.
    pub(crate) fn time(&self, store_now: LedgerTime) -> LedgerTime {
        store_now.plus(self.offset).max(self.last_seen)
    }

    /// Moves on to the store's time.
    fn advance(&mut self, store_now: LedgerTime) -> LedgerTime {
        if store_now.plus(self.offset) < self.last_seen {
            self.offset = self.last_seen.0.saturating_sub(store_now.0);
        }
        self.last_seen = store_now.plus(self.offset);
        self.last_seen
    }

    /// Returns when a window has certainly ended. The service may round its resets down. And another client
    /// may have got a `Retry-After`, which is rounded up: a request before its end counts towards a ban.
    fn end(&self, window: &Window) -> LedgerTime {
        let reset = self.clock.ledger_time(window.reset());
        let latest = window.opened_at().plus(MAX_BLOCK);
        reset.min(latest).plus(self.late.max(ROUNDING))
    }

    /// Returns when everything that is known has ended.
    pub(crate) fn idle_from(&self) -> LedgerTime {
        let windows = self.windows.iter().map(|window| self.end(window));
        let block = self.block.map(|block| block.until);
        windows.chain(block).max().unwrap_or_default()
    }
}

/// Outcomes.
impl Ledger {
    /// Records how a request ended.
    fn record(&mut self, outcome: &Outcome, report: &Report, now: LedgerTime) {
        let sent = now.plus(-outcome.sent_ago.max(0));
        let at = now.plus(-outcome.ended_ago.max(0));
        let Some(head) = &outcome.head else {
            return self.lost.add(1, sent);
        };
        self.clock.observe(head, at);
        self.open_planned_windows(report.terms.plan(), at);
        self.observe_latency(at.since(sent));
        let service_now = self.clock.service_time(at);
        let reading = self.reading_of_key(head, service_now);
        // The failure may be that of a proxy, so the service may not have counted the request.
        if head.status >= 500 && reading.is_none() {
            return self.lost.add(1, sent);
        }
        self.probes = 0;
        self.settle(sent, reading, service_now);
        // The headers of a 401 describe no quota of this key.
        if head.status == 401 {
            return;
        }
        if outcome.is_probe && head.is_refusal() {
            self.observe_late_opening(head, reading, at);
        }
        let receipt = Receipt {
            sent,
            at,
            service_now,
            counted: u64::from(!head.is_refusal()),
            sharer: report.terms.has_share().then_some(report.holder),
        };
        // A reading of a window that has ended says nothing about the current one, and one that contradicts
        // its status says nothing at all.
        let current = reading.filter(|reading| {
            reading.reset >= service_now && (!head.is_refusal() || reading.remaining == 0)
        });
        if current.is_some() || reading.is_none() {
            self.learn(current, &receipt);
            self.is_known = true;
        }
        if head.is_refusal() {
            self.refuse(head, current, &receipt);
        } else if self
            .block
            .is_some_and(|block| sent >= block.at && (outcome.is_probe || block.until <= at))
        {
            self.block = None;
        }
    }

    /// Settles lost requests by the response to a later one. Those that had arrived before it are in its
    /// reading, or count as used.
    fn settle(&mut self, sent: LedgerTime, reading: Option<Reading>, service_now: ServiceTime) {
        let settled = self.lost.settle(sent);
        for window in &mut self.windows {
            let is_described =
                reading.is_some_and(|reading| window.describes(&reading, service_now));
            window.count_lost(settled, is_described);
        }
    }

    fn observe_latency(&mut self, latency: i64) {
        let latency = latency.min(MINUTE);
        self.latency = match self.latency {
            0 => latency,
            mean => (mean * (LATENCY_WEIGHT - 1) + latency) / LATENCY_WEIGHT,
        };
    }

    /// Returns the reading of a response, unless it may describe the quota of requests without a key.
    fn reading_of_key(&self, head: &ResponseHead, service_now: ServiceTime) -> Option<Reading> {
        let reading = head.reading?;
        let is_known = || {
            let mut windows = self.windows.iter();
            windows.any(|window| window.describes(&reading, service_now))
        };
        let is_of_key = head.status != 401 && (head.is_after_lookup() || is_known());
        is_of_key.then(|| Reading {
            reset: reading.reset.min(service_now.plus(MAX_BLOCK)),
            ..reading
        })
    }

    /// Expects later resets if a probe shows that a window is still used up after its reset: the service
    /// rounds its resets down, or its clocks differ.
    fn observe_late_opening(
        &mut self,
        head: &ResponseHead,
        reading: Option<Reading>,
        at: LedgerTime,
    ) {
        let Some(reading) = reading else { return };
        let service_now = self.clock.service_time(at);
        let is_late = self.windows.iter().any(|window| {
            window.describes(&reading, service_now)
                && window.reset() == reading.reset
                && self.end(window) <= at
        });
        if is_late {
            let end = service_now.plus(head.retry_after.unwrap_or(SECOND));
            self.late = end.after(reading.reset).clamp(0, MAX_LATE);
        }
    }

    /// Takes over a reading. Without one, the service does not describe its quotas.
    fn learn(&mut self, reading: Option<Reading>, receipt: &Receipt) {
        let service_now = receipt.service_now;
        let was_known = !self.windows.is_empty();
        let (mut is_described, mut has_opened) = (false, false);
        self.windows.retain_mut(|window| match reading {
            Some(reading) if window.describes(&reading, service_now) => {
                is_described = true;
                has_opened |= window.record(&reading, receipt);
                true
            }
            _ => {
                window.record_undescribed(receipt);
                reading.is_none() || window.reset() > service_now
            }
        });
        let Some(reading) = reading else { return };
        self.described_at = Some(receipt.at);
        if !is_described {
            let mut window = Window::open(&reading, receipt);
            if was_known {
                // Own requests from before it was described look like those of others.
                window.ignore_others(0);
            }
            self.windows.push(window);
            self.windows.sort_by_key(Window::remaining);
            self.windows.truncate(MAX_WINDOWS);
        }
        let is_shown_minute = |window: &Window| window.is_minute() && !window.is_planned();
        self.knows_minute |= self.clock.knows_resets() && self.windows.iter().any(is_shown_minute);
        if has_opened {
            // Who got one more than others in the last window gets it later in this one.
            self.counted_from = receipt.at;
            self.holders.restart_counts(|ahead| ahead.min(1));
        } else if receipt.at.since(self.counted_from) > MINUTE + SECOND {
            self.counted_from = receipt.at;
            self.holders.restart_counts(|ahead| ahead / 2);
        }
    }

    /// Records a 429. `used_up` is the quota that it describes, if that is used up.
    fn refuse(&mut self, head: &ResponseHead, used_up: Option<Reading>, receipt: &Receipt) {
        let at = receipt.at;
        let (length, reason) = head.block(used_up, receipt.service_now);
        let until = at.plus(length);
        self.refusals = self.refusals.saturating_add(1);
        if used_up.is_none() {
            self.hidden = self.hidden.max(Some(until));
            self.knows_minute = false;
        }
        // A shorter wait does not end a longer one.
        self.block = match self.block {
            Some(longer) if longer.until > until => Some(Block { at, ..longer }),
            _ => Some(Block { until, at, reason }),
        };
    }

    /// Looks for requests of others in what is used.
    fn look_for_others(&mut self, now: LedgerTime) {
        let outstanding = self.outstanding();
        let is_noticed =
            |window: &Window| window.by_others(outstanding).saturating_mul(NOTICED) > window.own();
        let are_noticed = self.windows.iter().any(is_noticed);
        if are_noticed {
            self.others_until = Some(now.plus(REMEMBERED));
        }
        if !self.is_beside_others(now) {
            (self.others_seen_at, self.others_rate) = (None, 0);
            self.is_rate_measured = false;
            return;
        }
        // At first, all of it may have come within a round trip.
        let min_time = self.latency.max(MIN_MEASURED);
        let time = self.others_seen_at.map_or(min_time, |at| now.since(at));
        if time < min_time {
            return;
        }
        let used = self
            .windows
            .iter()
            .map(|window| window.by_others(outstanding));
        let used = u128::from(used.max().unwrap_or(0));
        let rate = used * u128::from(SECOND.unsigned_abs()) / u128::from(time.unsigned_abs());
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        if self.is_rate_measured {
            self.others_rate = self.others_rate.max(rate);
        } else {
            self.others_rate = rate;
        }
        self.is_rate_measured = self.others_seen_at.is_some();
        if are_noticed || self.others_seen_at.is_none() {
            self.others_seen_at = Some(now);
            for window in &mut self.windows {
                window.ignore_others(outstanding);
            }
        }
    }

    /// Opens the current windows of a plan's quotas that no response shows.
    fn open_planned_windows(&mut self, plan: Option<Plan>, now: LedgerTime) {
        let Some(plan) = plan else { return };
        let quotas = [
            (Quota::Minute, plan.minute_limit(), MINUTE),
            (Quota::Day, plan.day_limit(), DAY),
        ];
        let service_now = self.clock.service_time(now);
        for (quota, limit, length) in quotas {
            let Some(limit) = limit else { continue };
            let is_shown = |window: &Window| window.quota() == quota && !window.is_planned();
            let is_shown = self.windows.iter().any(is_shown);
            let is_planned = |window: &Window| window.quota() == quota && window.is_planned();
            let planned = self.windows.iter().position(is_planned);
            let planned = planned.map(|index| self.windows.swap_remove(index));
            if is_shown {
                continue;
            }
            let is_current = |window: &Window| window.limit() == limit && now < self.end(window);
            let window = match planned {
                Some(window) if is_current(&window) => window,
                previous => {
                    let start = service_now.0.div_euclid(length).saturating_mul(length);
                    let start = ServiceTime(start);
                    let late = match previous {
                        Some(previous) if previous.reset() == start => previous.late(),
                        _ => 0,
                    };
                    Window::planned(quota, limit, start.plus(length), now, late)
                }
            };
            self.windows.push(window);
        }
    }
}

/// What is known.
impl Ledger {
    fn is_beside_others(&self, now: LedgerTime) -> bool {
        self.others_until.is_some_and(|until| now < until)
    }

    fn outstanding(&self) -> u64 {
        self.holders.in_flight().saturating_add(self.lost.count())
    }

    /// Returns whether another ledger of the same store is more recent.
    #[cfg(feature = "file-store")]
    pub(crate) fn is_older_than(&self, other: &Self) -> bool {
        self.last_seen < other.last_seen
    }

    /// Returns what is known, to be confirmed by a probe.
    #[cfg(any(feature = "file-store", test))]
    pub(crate) fn doubted(self) -> Self {
        Self {
            is_known: false,
            ..self
        }
    }

    /// Assumes that others use the key, until a whole window has shown otherwise.
    pub(crate) fn assume_others(&mut self, store_now: LedgerTime) {
        let until = self.time(store_now).plus(MINUTE + LEASE);
        self.others_until = self.others_until.max(Some(until));
    }

    /// Records that no holder has died, in a store whose holders cannot.
    pub(crate) fn keep_alive(&mut self, store_now: LedgerTime) {
        let now = self.time(store_now);
        self.holders.keep_alive(now);
    }

    /// Forgets everything but the holders.
    fn forget(&mut self) {
        *self = Self {
            holders: std::mem::take(&mut self.holders),
            clock: self.clock,
            latency: self.latency,
            last_seen: self.last_seen,
            offset: self.offset,
            ..Self::default()
        };
    }

    /// Records that the last 429 was a ban. Only the body of the response says that.
    fn record_ban(&mut self) {
        if let Some(block) = &mut self.block {
            block.reason = BlockReason::Ban;
        }
    }

    /// Returns whether a stored ledger can be that of a key.
    #[cfg(any(feature = "file-store", feature = "redis"))]
    pub(crate) fn is_plausible(&self) -> bool {
        const MAX_HOLDERS: usize = 10_000;

        self.windows.len() <= MAX_WINDOWS + 2
            && self.windows.iter().all(Window::is_plausible)
            && self.lost.is_plausible()
            && self.holders.len() <= MAX_HOLDERS
            && (0..=MAX_LATE).contains(&self.late)
            && (0..=MINUTE).contains(&self.latency)
    }
}
