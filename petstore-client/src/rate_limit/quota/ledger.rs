//! All that is known of a key's limits, and how each response changes it: pure, without clock,
//! lock or socket.
//!
//! The service counts requests for each quota, and describes one quota with every response. Within a
//! window the service's reading only falls, and the lowest reading seen includes every answered request.
//! The ledger therefore keeps that reading and does not count by itself. Requests in flight and lost
//! requests are outstanding: the service may have counted them, and the reading does not show it.

use std::cmp::Ordering;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::clock::{LocalTime, ServiceClock, ServiceTime};
use super::outstanding::{LostRequests, MAX_COUNT};
use super::plan::PlanUsage;
use super::reading::{Block, Outcome, Reading, ResponseHead};
use super::window::Window;
use crate::rate_limit::shared::slot::{MemberId, Slot};
use crate::rate_limit::view::{BlockReason, Quota};

/// The block of a 429 without `Retry-After` and reset: quotas are counted by the minute
/// (specification, section 8).
const DEFAULT_BLOCK: Duration = Duration::from_secs(60);
const MIN_BLOCK: Duration = Duration::from_secs(1);
/// A day's quota and an hour of slack. A longer block ends here with a probe.
const MAX_BLOCK: Duration = Duration::from_secs(25 * 3600);
/// The bounds of the extra wait after repeated 429s.
const MIN_EXTRA_WAIT: Duration = Duration::from_secs(2);
const MAX_EXTRA_WAIT: Duration = Duration::from_secs(15 * 60);
/// How much later than announced a window is expected to open, once one did.
pub(crate) const RESET_MARGIN_STEP: Duration = Duration::from_secs(1);
const MAX_RESET_MARGIN: Duration = Duration::from_secs(2);
/// How long other clients are remembered after their last request.
const OTHER_CLIENTS_REMEMBERED: Duration = Duration::from_secs(300);
/// The weight of the mean latency against one response.
const LATENCY_WEIGHT: u32 = 16;
/// The most members in a record.
const MAX_MEMBERS: usize = 64;
/// The most windows kept: a service has two quotas, whose limits may change.
const MAX_WINDOWS: usize = 4;

/// The only request in flight while the quota is unknown.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Probe {
    pub(crate) member: MemberId,
    pub(crate) granted: LocalTime,
    pub(crate) until: LocalTime,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Ledger {
    pub(crate) clock: ServiceClock,
    pub(crate) windows: Vec<Window>,
    /// The block of the last 429. It is kept past its end, until a later response is not a 429.
    pub(crate) blocked: Option<Block>,
    /// Whether a response has shown whether the service describes its quotas.
    pub(crate) described: bool,
    /// Whether the minute's quota has been shown before it ran out, without an unforeseen 429 since.
    pub(crate) shows_minute: bool,
    /// When the last 429 came.
    throttled_at: Option<LocalTime>,
    /// 429s in a row. Those of requests that were in flight together count once.
    throttled_in_a_row: u32,
    /// The end of the last block that no known reading predicted. Then a quota is hidden.
    pub(crate) unforeseen: Option<LocalTime>,
    /// The members, oldest first.
    pub(crate) slots: Vec<Slot>,
    pub(crate) probe: Option<Probe>,
    pub(crate) lost: LostRequests,
    pub(crate) usage: PlanUsage,
    /// How much later than announced windows open, as observed.
    pub(crate) reset_margin: Duration,
    /// The own share of the requests in the last window.
    pub(crate) own_share: Option<f64>,
    /// Until when other clients are assumed to use the key.
    pub(crate) other_clients_until: Option<ServiceTime>,
    /// When the service wrote the last reading, at the latest.
    pub(crate) seen_at: Option<LocalTime>,
    /// The running mean of the time from sending a request to the head of its response.
    pub(crate) latency: Duration,
    /// Whether the store is unreachable, so that members may be active that cannot be seen.
    #[serde(skip)]
    pub(crate) is_alone: bool,
}

impl Ledger {
    pub(crate) fn new(now: LocalTime, wall: ServiceTime) -> Self {
        Self {
            clock: ServiceClock::guess(now, wall),
            ..Self::default()
        }
    }

    /// Returns whether members can have written it: a store may hold anything.
    pub(crate) fn is_plausible(&self) -> bool {
        self.slots.len() <= MAX_MEMBERS
            && self.slots.iter().all(Slot::is_plausible)
            && self.windows.iter().all(Window::is_plausible)
            && self.usage.is_plausible()
            && self.latency.max(self.reset_margin).as_secs() < MAX_COUNT
            && self.throttled_in_a_row < u32::MAX
    }

    /// Records the outcome of a member's request. Returns the block if it is a 429. `jitter` draws the
    /// extra wait after repeated 429s, up to its argument.
    pub(crate) fn record(
        &mut self,
        member: MemberId,
        outcome: &Outcome,
        jitter: impl FnOnce(Duration) -> Duration,
    ) -> Option<Block> {
        let Outcome {
            sent,
            ended: now,
            probe,
            requests,
            head,
        } = *outcome;
        let slot = self.slot(member);
        slot.reserved = slot.reserved.saturating_sub(requests.into());
        if probe {
            self.end_probe(member);
        }
        let Some(head) = head else {
            self.lost.add(requests, sent, now);
            return None;
        };
        let expected = self.clock.earliest(now);
        match head {
            ResponseHead {
                date: Some(date), ..
            } => self.clock.observe_date(sent, now, date),
            ResponseHead {
                reading: Some(reading),
                retry_after,
                ..
            } => {
                self.clock.observe_reset(now, reading.reset, retry_after);
            }
            _ => {}
        }
        let latency = now.since(sent);
        self.latency = match self.latency {
            // When it was sent is not known: its lease had ended before.
            mean if requests == 0 => mean,
            Duration::ZERO => latency,
            mean => (mean * (LATENCY_WEIGHT - 1) + latency) / LATENCY_WEIGHT,
        };
        if head.status >= 500 && head.reading.is_none() {
            // A proxy in front of the service may have failed.
            self.lost.add(requests, sent, now);
            return None;
        }
        self.settle(sent);
        let counted = if head.status == 429 {
            0
        } else {
            requests.max(1)
        };
        let earliest = self.clock.earliest(now);
        self.usage.count(counted, earliest);
        if head.status == 401 {
            return None;
        }
        let reading = head.reading.map(|reading| Reading {
            reset: reading.reset.min(earliest.plus(MAX_BLOCK)),
            ..reading
        });
        if probe
            && reading.is_some_and(|reading| self.opened_late(&reading, earliest.max(expected)))
        {
            self.reset_margin = (self.reset_margin + RESET_MARGIN_STEP).min(MAX_RESET_MARGIN);
        }
        let current = reading.filter(|reading| reading.reset >= earliest);
        self.learn(current, counted, (sent, now, earliest));
        self.seen_at = self.seen_at.max(current.map(|_| now));
        self.described |= current.is_some() || reading.is_none();
        // 429s of requests that were in flight together count once.
        let is_later = self
            .throttled_at
            .is_none_or(|at| sent > at || probe && sent == at);
        if head.status == 429 {
            self.throttled_in_a_row += u32::from(is_later);
            self.throttled_at = Some(now);
            return Some(self.block(current, now, &head, jitter));
        }
        self.shows_minute |= self
            .windows
            .iter()
            .any(|window| window.quota == Quota::Minute);
        // A forced request that succeeds ends the block.
        if is_later && (probe || self.blocked_at(now).is_none()) {
            self.blocked = None;
            self.throttled_in_a_row = 0;
        }
        None
    }

    /// Returns a member's slot, and adds one for a new member.
    pub(crate) fn slot(&mut self, id: MemberId) -> &mut Slot {
        let place = self
            .slots
            .iter()
            .position(|slot| slot.id == id)
            .unwrap_or_else(|| {
                let weighted_use = self
                    .slots
                    .iter()
                    .map(|slot| slot.weighted_use)
                    .max()
                    .unwrap_or(0);
                self.slots.push(Slot::new(id, weighted_use));
                self.slots.len() - 1
            });
        &mut self.slots[place]
    }

    /// Returns how many members are alive.
    pub(crate) fn members(&self, now: LocalTime) -> usize {
        self.slots.iter().filter(|slot| now < slot.until).count()
    }

    /// Returns whether there is room for a member. Dead members are removed if there is not.
    pub(crate) fn admits(&mut self, id: MemberId, now: LocalTime) -> bool {
        let is_known = self.slots.iter().any(|slot| slot.id == id);
        if self.slots.len() >= MAX_MEMBERS && !is_known {
            self.slots.retain(|slot| now < slot.until);
        }
        self.slots.len() < MAX_MEMBERS || is_known
    }

    /// Ends the probe, if it is this member's.
    pub(crate) fn end_probe(&mut self, member: MemberId) {
        self.probe = self.probe.filter(|probe| probe.member != member);
    }

    /// Returns the block of a 429, if it is in force.
    pub(crate) fn blocked_at(&self, now: LocalTime) -> Option<Block> {
        self.blocked.filter(|block| now < block.until)
    }

    /// Returns how many requests all members have reserved or in flight.
    pub(crate) fn reserved(&self) -> u64 {
        self.slots.iter().map(|slot| slot.reserved).sum()
    }

    /// Returns how many requests the service may have counted that its readings do not show.
    pub(crate) fn outstanding(&self) -> u64 {
        self.reserved() + self.lost.count()
    }

    /// Records that the last 429 was a ban; only its body says so.
    pub(crate) fn record_ban(&mut self) {
        if let Some(block) = &mut self.blocked {
            block.reason = BlockReason::Ban;
        }
    }

    /// Returns when nothing known here matters any more, if all windows end as announced.
    pub(crate) fn idle_from(&self) -> LocalTime {
        let resets = self
            .windows
            .iter()
            .map(|window| self.clock.local(window.reset));
        resets
            .chain(self.blocked.map(|block| block.until))
            .max()
            .unwrap_or(LocalTime(0))
    }

    /// Counts the lost requests that the response to a request sent at `sent` settles.
    fn settle(&mut self, sent: LocalTime) {
        for (count, at) in self.lost.settle(sent) {
            // The reading may include them: they are not the requests of other clients.
            self.windows
                .iter_mut()
                .for_each(|window| window.count_own(count));
            self.usage.count(count, self.clock.earliest(at));
        }
    }

    /// Returns whether a response still describes a used-up window that should have ended: the service
    /// rounds its reset down.
    fn opened_late(&self, reading: &Reading, now: ServiceTime) -> bool {
        reading.remaining == 0
            && self.windows.iter().any(|window| {
                window.limit == reading.limit
                    && window.compare(reading) == Ordering::Equal
                    && self.has_passed(window, now)
            })
    }

    /// Records the reading of a response.
    fn learn(
        &mut self,
        reading: Option<Reading>,
        counted: u32,
        (sent, at, now): (LocalTime, LocalTime, ServiceTime),
    ) {
        let outstanding = self.outstanding();
        let mut share = self.own_share;
        let (mut described, mut reopened) = (false, false);
        let reset_margin = self.reset_margin(now);
        self.windows.retain_mut(|window| {
            let passed = now >= window.reset.plus(reset_margin);
            let Some(reading) = reading.filter(|reading| window.describes(reading, now)) else {
                // Not described: a window is forgotten after its reset, and counted down before.
                window.count_unreported(counted);
                return reading.is_none() || !passed;
            };
            described = true;
            match window.compare(&reading) {
                // A late response, unless its request was sent after this window was opened: then the
                // service's clock was set back.
                Ordering::Less if !passed && sent <= window.opened_at => {}
                Ordering::Equal => {
                    window.lower(&reading);
                    window.count_own(counted);
                }
                Ordering::Greater | Ordering::Less => {
                    *window = window.reopen(reading, (outstanding, counted), share, (at, now));
                    reopened = true;
                }
            }
            share = window.own_share(outstanding).or(share);
            true
        });
        if let Some(reading) = reading.filter(|_| !described) {
            let window = Window::open(reading, (outstanding, counted), share, (at, now));
            share = window.own_share(outstanding).or(share);
            self.windows.push(window);
            if self.windows.len() > MAX_WINDOWS {
                // Those with the least remaining matter.
                self.windows.sort_by_key(|window| window.remaining);
                self.windows.truncate(MAX_WINDOWS);
            }
        }
        self.own_share = share;
        if self.shared_use().is_some() {
            self.other_clients_until = Some(now.plus(OTHER_CLIENTS_REMEMBERED));
        }
        if reopened {
            self.slots.retain_mut(Slot::open_window);
        }
    }

    fn block(
        &mut self,
        reading: Option<Reading>,
        now: LocalTime,
        head: &ResponseHead,
        jitter: impl FnOnce(Duration) -> Duration,
    ) -> Block {
        let earliest = self.clock.earliest(now);
        let spent = reading.filter(|reading| reading.remaining == 0);
        let until_reset = spent.map(|reading| reading.reset.since(earliest));
        let asked = head.retry_after.or(until_reset).unwrap_or(DEFAULT_BLOCK);
        let asked = asked.clamp(MIN_BLOCK, MAX_BLOCK);
        let extra = match self.throttled_in_a_row {
            // The reset of a used-up quota says how long to wait.
            _ if spent.is_some() => Duration::ZERO,
            ..2 => Duration::ZERO,
            throttled_in_a_row => {
                let doubled = MIN_EXTRA_WAIT.saturating_mul(1 << (throttled_in_a_row - 2).min(10));
                jitter(doubled.min(MAX_EXTRA_WAIT))
            }
        };
        let block = Block {
            until: now.plus(asked).plus(extra),
            named: head.date.unwrap_or(earliest).plus(asked),
            reason: reason(asked, until_reset),
        };
        if spent.is_none() {
            self.unforeseen = self.unforeseen.max(Some(block.until));
            self.shows_minute = false;
        }
        self.blocked = self
            .blocked
            .filter(|known| known.until > block.until)
            .or(Some(block));
        block
    }
}

/// Returns the reason for a 429: a quota only if the headers describe one that is used up, and its
/// reset is the end of the wait.
fn reason(wait: Duration, until_reset: Option<Duration>) -> BlockReason {
    match until_reset {
        Some(left) if left.abs_diff(wait) <= Duration::from_secs(2) => {
            BlockReason::Quota(Quota::by_reset(left))
        }
        _ => BlockReason::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_limit::tests::rules::with_window;

    #[test]
    fn a_record_with_a_count_that_no_member_reaches_is_refused() {
        let most = i64::from(u32::MAX) << 16 | 0xFFFF;
        let mut ledger = with_window(100, 90).ledger;
        for member in 0..63 {
            ledger.slot(MemberId(100 + member));
        }
        assert!(ledger.is_plausible(), "64 members");
        for (place, most) in [
            ("/slots/63/reserved", most),
            ("/slots/0/want", most),
            ("/slots/0/weighted_use", most * 1_024 + 1_023),
            ("/windows/0/own", most),
            ("/windows/0/remaining", 100),
            ("/usage/minute/used", most),
            ("/usage/day/window", most),
            ("/latency/secs", most),
            ("/reset_margin/secs", most),
            ("/throttled_in_a_row", i64::from(u32::MAX) - 1),
        ] {
            for (count, is_plausible) in [(most, true), (most + 1, false)] {
                let mut record = serde_json::to_value(&ledger).unwrap();
                *record.pointer_mut(place).expect(place) = count.into();
                let ledger: Ledger = serde_json::from_value(record).unwrap();
                assert_eq!(ledger.is_plausible(), is_plausible, "{place} {count}");
            }
        }
        ledger.slot(MemberId(1_000));
        assert!(!ledger.is_plausible(), "65 members");
    }
}
