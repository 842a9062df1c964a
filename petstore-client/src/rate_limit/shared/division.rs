//! How the members that share a key divide what is left: pure rules on the ledger.
//!
//! Each member has a slot. A member reserves requests in advance and reports their outcomes later, so
//! most requests need no update. When it reports does not change what is free: an update lowers
//! `remaining` and the member's reservations together. Members below their share go first. Towards the
//! end of a window, what nobody waits for is free for all.

use std::time::Duration;

use super::slot::{MemberId, Slot};
use crate::rate_limit::quota::clock::LocalTime;
use crate::rate_limit::quota::decision::{Allowance, Decision, Policy};
use crate::rate_limit::quota::ledger::{Ledger, Probe};
use crate::rate_limit::quota::reading::{Block, Outcome};
use crate::rate_limit::quota::window::Window;
use crate::rate_limit::view::{Quota, WaitReason};

/// A member without an update for this long is taken for dead.
pub(crate) const MEMBER_LEASE: Duration = Duration::from_secs(5);
/// A granted probe is in flight by then, and the member's next update says so.
const PROBE_LEASE: Duration = Duration::from_secs(3);
/// How soon a member without a grant tries again.
const ASK_INTERVAL: Duration = Duration::from_secs(1);
const MIN_ASK_INTERVAL: Duration = Duration::from_millis(5);
const MAX_ASK_INTERVAL: Duration = Duration::from_millis(1_600);
const MAX_LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// Members that wait for a reset try at random instants within this time after it.
const MAX_SPREAD: Duration = Duration::from_millis(300);
/// If this many times the cap for requests in flight is left, nothing of the cap is reserved for members
/// that do not wait.
const FAR_MORE: u64 = 64;
/// In this last part of a window, nothing is reserved for members that do not wait.
const UNRESERVED_PART: f64 = 0.05;

/// A member's report, in the ledger's time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    pub(crate) outcomes: Vec<Outcome>,
    /// The member's requests that are reserved or in flight. An absolute number, so that an update
    /// whose reply was lost does no harm.
    pub(crate) reserved: u64,
    pub(crate) given_back: u64,
    /// Calls that wait, and how many requests the member would reserve in advance.
    pub(crate) want: u64,
    pub(crate) prefetch: u64,
    pub(crate) blocked: Option<Block>,
    /// The lease of its probe.
    pub(crate) probe_until: Option<LocalTime>,
    /// Whether the member has nothing to do, and leaves.
    pub(crate) leaves: bool,
    /// A random number, 0 to 1, that spreads the members' next updates.
    pub(crate) jitter: f64,
}

/// What an update grants to a member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) requests: u64,
    pub(crate) probe: bool,
    /// When to update again if calls still wait, and whether the rest is reserved for others until
    /// then.
    pub(crate) retry_at: LocalTime,
    pub(crate) is_reserved_for_others: bool,
}

impl Ledger {
    /// Removes dead members. Counts their reservations and those of silent members as lost, and ends
    /// their probes.
    pub(crate) fn expire_members(&mut self, now: LocalTime, is_alive: impl Fn(MemberId) -> bool) {
        let (lost, probe) = (&mut self.lost, &mut self.probe);
        self.slots.retain_mut(|slot| {
            let is_alive = is_alive(slot.id);
            if is_alive && now < slot.until {
                return true;
            }
            if slot.reserved > 0 {
                lost.add(u32::try_from(slot.reserved).unwrap_or(u32::MAX), now, now);
            }
            (slot.reserved, slot.want, slot.until) = (0, 0, slot.until.min(now));
            *probe = probe.filter(|probe| probe.member != slot.id);
            // The use of a silent member is remembered, because it may still run.
            is_alive
        });
    }

    /// Records a member's report, and grants reservations.
    pub(crate) fn update(
        &mut self,
        me: MemberId,
        report: &Report,
        policy: &Policy,
        now: LocalTime,
    ) -> Granted {
        for outcome in &report.outcomes {
            // The member that got a 429 has drawn its extra wait already.
            self.record(me, outcome, |_| Duration::ZERO);
        }
        if report.blocked.is_some_and(|block| now < block.until)
            && report.blocked.map(|block| block.until) > self.blocked.map(|block| block.until)
        {
            self.blocked = report.blocked;
        }
        match report.probe_until {
            None => self.end_probe(me),
            Some(until) => match &mut self.probe {
                Some(probe) if probe.member == me => probe.until = until,
                _ => {}
            },
        }
        let slot = self.slot(me);
        slot.until = now.plus(MEMBER_LEASE);
        (slot.reserved, slot.want) = (report.reserved, report.want);
        slot.got = slot.got.saturating_sub(report.given_back);
        let granted = self.grant(me, report, policy, now);
        let slot = self.slot(me);
        slot.reserved += granted.requests;
        slot.got += granted.requests;
        if granted.probe {
            // The call still waits when the probe's response opens the window.
            let until = now.plus(PROBE_LEASE);
            self.probe = Some(Probe {
                member: me,
                granted: now,
                until,
            });
        } else {
            slot.want = slot.want.saturating_sub(granted.requests);
        }
        granted
    }

    fn grant(&self, me: MemberId, report: &Report, policy: &Policy, now: LocalTime) -> Granted {
        let nothing = |retry_at| Granted {
            retry_at,
            ..Granted::default()
        };
        let later = |by: Duration| now.plus(by + MAX_SPREAD.mul_f64(report.jitter));
        let response_due = (self.latency * 6 / 5).max(Duration::from_millis(100));
        let Allowance {
            probe,
            requests: most,
            left,
        } = match self.allowance(now, policy) {
            Ok(allowance) => allowance,
            Err(Decision::WaitUntil(block)) => {
                let jitter = if self.slots.len() > 1 {
                    report.jitter
                } else {
                    0.0
                };
                let opens = block.until.plus(MAX_SPREAD.mul_f64(jitter));
                // Another member may learn that the block ends sooner.
                let look = (block.until.since(now) / 16).clamp(MAX_ASK_INTERVAL, MAX_LOOK_INTERVAL);
                return nothing(opens.min(now.plus(look)));
            }
            Err(Decision::WaitForResponse(WaitReason::Probe)) => {
                // The response is expected after one latency, and reported at once. The longer it
                // takes, the longer the interval.
                let granted = self.probe.map_or(now, |probe| probe.granted);
                let interval = (self.latency / 4)
                    .max(now.since(granted) / 4)
                    .max(MIN_ASK_INTERVAL);
                let next = now.plus(interval).max(granted.plus(self.latency * 6 / 5));
                return nothing(next.min(now.plus(MAX_ASK_INTERVAL)));
            }
            Err(Decision::WaitForResponse(WaitReason::Concurrency)) => {
                return nothing(later(response_due).min(now.plus(MAX_ASK_INTERVAL)));
            }
            Err(_) => {
                let interval = if self.is_behind(me) {
                    MAX_ASK_INTERVAL
                } else {
                    ASK_INTERVAL
                };
                return nothing(later(interval).min(now.plus(MAX_ASK_INTERVAL)));
            }
        };
        if report.want == 0 && (probe || report.prefetch == 0) {
            return nothing(now);
        }
        let (part, mut in_flight) = match probe {
            true => (1, 1),
            false => (
                self.fair_share(me, report, left, now),
                self.fair_share(me, report, most, now),
            ),
        };
        // One request may always be in flight, and more while far more is left: they are not reserved for
        // members that do not wait.
        let asked = self.level(me, most, self.demand_of(report, most), |slot| slot.want);
        if self.reserved() == 0 {
            in_flight = in_flight.max(asked.min(1));
        }
        if left / FAR_MORE > most + self.reserved() {
            in_flight = in_flight.max(asked);
        }
        let requests = part.min(in_flight);
        let is_missing = requests < report.want;
        // Otherwise the cap for requests in flight is the limit, and may soon rise.
        let is_reserved_for_others = is_missing && !probe && requests == part;
        let retry_at = match (is_missing, is_reserved_for_others) {
            (false, _) => now,
            (true, false) => later(response_due),
            (true, true) => later(ASK_INTERVAL),
        };
        Granted {
            requests,
            probe,
            retry_at: retry_at.min(now.plus(MAX_ASK_INTERVAL)),
            is_reserved_for_others,
        }
    }

    /// Returns whether a member waits that goes before this one.
    fn is_behind(&self, me: MemberId) -> bool {
        let own = self
            .slots
            .iter()
            .find(|slot| slot.id == me)
            .map(|slot| (slot.weighted_use, slot.id));
        self.slots
            .iter()
            .any(|slot| slot.want > 0 && Some((slot.weighted_use, slot.id)) < own)
    }

    /// Returns a member's part of what is free. In a minute's window, a part is reserved for members
    /// that do not wait yet.
    pub(crate) fn fair_share(
        &self,
        me: MemberId,
        report: &Report,
        free: u64,
        now: LocalTime,
    ) -> u64 {
        let members = self.slots.len() as u64;
        let service_now = self.clock.earliest(now);
        let is_open = |window: &&Window| {
            window.quota == Quota::Minute && !self.has_passed(window, service_now)
        };
        let (share, rest) = match self.windows.iter().find(is_open) {
            Some(window) => (window.limit / members, window.part_left(service_now)),
            None => (0, 0.0),
        };
        let rest = ((rest - UNRESERVED_PART) / (1.0 - UNRESERVED_PART)).max(0.0);
        self.level(me, free, self.demand_of(report, free), |slot| {
            slot.demand(share, rest)
        })
    }

    /// Returns how many requests a member wants of those that are free.
    fn demand_of(&self, report: &Report, free: u64) -> u64 {
        report.want + report.prefetch.min(free / (4 * self.slots.len() as u64))
    }

    /// Divides what is free by filling all members to one level, each up to its demand (known or
    /// expected). Returns the part of the member whose demand is `own`.
    pub(crate) fn level(
        &self,
        me: MemberId,
        free: u64,
        own: u64,
        demand: impl Fn(&Slot) -> u64,
    ) -> u64 {
        let demand = |slot: &Slot| if slot.id == me { own } else { demand(slot) };
        let demands: Vec<_> = self.slots.iter().map(|slot| (slot, demand(slot))).collect();
        if demands.iter().map(|(_, demand)| demand).sum::<u64>() <= free {
            return own;
        }
        let to_level =
            |level: u64, slot: &Slot, demand: u64| level.saturating_sub(slot.got).min(demand);
        let filled = |level| {
            demands
                .iter()
                .map(|(slot, demand)| to_level(level, slot, *demand))
                .sum::<u64>()
        };
        let most = demands.iter().map(|(slot, demand)| slot.got + demand).max();
        let (mut low, mut high) = (0, most.unwrap_or(0));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if filled(middle) <= free {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        // The remainder goes to members one each, the lowest weighted use first.
        let is_above = |slot: &Slot, demand: u64| slot.got <= low && slot.got + demand > low;
        let mut in_order: Vec<_> = demands
            .iter()
            .filter(|(slot, demand)| is_above(slot, *demand))
            .map(|(slot, _)| (slot.weighted_use, slot.id))
            .collect();
        in_order.sort_unstable();
        let rank = in_order.iter().position(|(_, id)| *id == me);
        let one_more = rank.is_some_and(|rank| (rank as u64) < free - filled(low));
        let slot = self.slots.iter().find(|slot| slot.id == me);
        slot.map_or(0, |slot| to_level(low, slot, own)) + u64::from(one_more)
    }
}
