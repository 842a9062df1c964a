//! Decides whether a request may be sent: a pure function of the ledger, the requests in flight,
//! the time and the caller's policy.
//!
//! Two numbers must allow a request. `left` is how many requests the quotas leave, minus those that
//! are outstanding or kept for other clients. `cap` is how many requests may be in flight at once;
//! `room` is the cap minus those that are in flight already.

use std::time::Duration;

use super::clock::{LocalTime, SECOND, ServiceTime};
use super::ledger::Ledger;
use super::others::ASSUMED_SHARE;
use super::plan::PlanLeft;
use super::policy::{Policy, part};
use super::reading::Block;
use super::window::Window;
use crate::rate_limit::view::{BlockReason, Quota, WaitReason};

/// The bounds of the cap on requests in flight. When little is left, the cap may be below the lower
/// bound; see `BURST_PARTS`.
const MIN_IN_FLIGHT_CAP: u64 = 32;
const MAX_IN_FLIGHT_CAP: u64 = 4096;
/// When little is left, a process, or all members of a record together, have at most a fifth of that
/// in flight, or eight requests. A burst of other clients may use up the rest in the meantime, and
/// a ban takes twelve refusals. Tuned on bursts of 10 to 40 requests, in `simulator::bursts`: 11
/// bans in 54 runs of one process without it, and none with it; with 2 to 16 members, 12 bans in
/// 216 runs without it, and 5 in 2,700 with it.
const BURST_PARTS: f64 = 5.0;
const BURST_CAP: u64 = 8;
/// Beside other clients, several members of a record have at most half of their share of what is
/// left in flight, because each has a round trip to the store between two requests.
const PARTS_BESIDE_OTHERS: f64 = 2.0;
/// The cap while the minute's quota is unknown. The key is banned if 11 more requests
/// arrive after the first refused one, and those in flight cannot be called back (specification, section 8, rule 4, as the mock reads it).
const UNKNOWN_QUOTA_CAP: u64 = 5;
/// The caps in the first and the second minute after the block of an unforeseen 429, which is one that
/// describes no used-up quota.
const UNFORESEEN_CAPS: [u64; 2] = [2, 8];
const UNFORESEEN_STEP: Duration = Duration::from_secs(60);
/// Requests kept back for settling lost ones. A lost request counts twice for a while: as lost, and
/// in the reading. Without this reserve, a burst could use everything up and leave no request whose
/// response settles the lost ones.
const SETTLING_RESERVE: u64 = 4;
/// A reading that is older than this, and older than two latencies, says little about other clients.
const MIN_OLD: Duration = Duration::from_millis(100);
/// A lost request that was sent up to this long before a window opened may be counted in that window.
const LATE: i64 = 2 * SECOND;

/// Whether a request may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The request may be sent. If it must be a probe, no other one may be sent until its response.
    Send { probe: bool },
    /// Wait until the end of the block.
    WaitUntil(Block),
    /// Wait until this time, to leave room for processes that cannot be seen.
    Pause(LocalTime),
    /// Wait for the response to a request in flight.
    WaitForResponse(WaitReason),
}

/// The requests that are reserved or in flight.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct InFlight {
    /// All such requests, of all processes that share the ledger.
    pub(crate) all: u64,
    /// Those of the client that asks, if it sets `max_in_flight`.
    pub(crate) of_client: u64,
    /// Whether one is a probe.
    pub(crate) has_probe: bool,
    pub(crate) processes: Processes,
}

/// The processes that are known to send with the key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Processes {
    /// A lone process, or the only member of a record.
    #[default]
    One,
    /// The members of a record: this many, more than one.
    Several(usize),
    /// A member whose store is unreachable. It cannot see the others, and leaves room for them: it
    /// has at most `in_flight` requests in flight, and leaves the last `kept` requests of a window.
    Unseen { in_flight: u64, kept: u64 },
}

/// The number of requests that may be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    probe: bool,
    requests: u64,
    left: u64,
}

impl Allowance {
    /// Returns whether this is a probe: one request, whose response says how many may follow.
    pub(crate) fn is_probe(self) -> bool {
        self.probe
    }

    pub(crate) fn requests(self) -> u64 {
        self.requests
    }

    /// Returns how many the quotas leave; the cap for requests in flight may be lower.
    pub(crate) fn left(self) -> u64 {
        self.left
    }
}

/// Decides whether a request may be sent.
pub(crate) fn decide(
    ledger: &Ledger,
    in_flight: InFlight,
    now: LocalTime,
    policy: &Policy,
) -> Decision {
    match allowance(ledger, in_flight, now, policy) {
        Ok(allowance) => Decision::Send {
            probe: allowance.probe,
        },
        Err(wait) => wait,
    }
}

/// Returns how many requests may be sent now (at least one), or what to wait for.
pub(crate) fn allowance(
    ledger: &Ledger,
    in_flight: InFlight,
    now: LocalTime,
    policy: &Policy,
) -> Result<Allowance, Decision> {
    if let Some(block) = ledger.refusals().blocked_at(now) {
        return Err(Decision::WaitUntil(block));
    }
    if !policy.rate_limiting {
        return Ok(Allowance {
            probe: false,
            requests: u64::MAX,
            left: u64::MAX,
        });
    }
    let question = Question {
        ledger,
        in_flight,
        now,
        policy,
    };
    question.allowance()
}

/// Returns the number of requests that a window leaves to a client.
pub(crate) fn left_in(ledger: &Ledger, window: &Window, in_flight: u64, policy: &Policy) -> u64 {
    let outstanding = in_flight + ledger.lost();
    let left = window.remaining().saturating_sub(outstanding);
    if policy.has_whole_quota() {
        return left;
    }
    let part = policy.part_of(window.limit());
    left.min(window.left_of_part(part, outstanding))
}

/// The input of a decision.
struct Question<'q> {
    ledger: &'q Ledger,
    in_flight: InFlight,
    now: LocalTime,
    policy: &'q Policy,
}

/// What one quota leaves, by the responses that describe it or by the plan.
struct QuotaLeft {
    quota: Quota,
    /// The requests left, minus those that are outstanding or kept for others.
    left: u64,
    /// Whether no request is left, even if none of the outstanding ones was counted.
    is_used_up: bool,
    reset: ServiceTime,
    /// When a request may be sent after the reset.
    opens: ServiceTime,
}

/// What all known quotas leave together at one moment.
struct Capacity {
    /// The used-up quota that ends last.
    blocked: Option<Block>,
    /// Whether one request must go first: while nothing is known, after a 429, and after the reset
    /// of a used-up window.
    must_probe: bool,
    /// The number of requests left by the quota that leaves the fewest, and the time to its reset.
    left: u64,
    to_reset: Duration,
}

impl Question<'_> {
    fn allowance(&self) -> Result<Allowance, Decision> {
        let capacity = self.capacity();
        if let Some(block) = capacity.blocked {
            return Err(Decision::WaitUntil(block));
        }
        if capacity.must_probe && self.in_flight.has_probe {
            return Err(Decision::WaitForResponse(WaitReason::Probe));
        }
        if capacity.left == 0 || self.keeps_last_requests(capacity.left) {
            return Err(Decision::WaitForResponse(WaitReason::Reserved));
        }
        let room = self.room_in_flight(&capacity);
        if room == 0 {
            return Err(Decision::WaitForResponse(WaitReason::Concurrency));
        }
        let requests = if capacity.must_probe {
            1
        } else {
            room.min(capacity.left)
        };
        Ok(Allowance {
            probe: capacity.must_probe,
            requests,
            left: capacity.left,
        })
    }

    /// Returns whether the last requests are kept back, because a response will soon settle the
    /// lost ones. That response may answer a request in flight. If nothing is in flight, it answers
    /// the next request, which goes when the lost ones must have arrived.
    fn keeps_last_requests(&self, left: u64) -> bool {
        let lost = self.ledger.lost();
        let is_settling =
            lost > 0 && (self.in_flight.all > 0 || self.ledger.has_lost_on_the_way(self.now));
        is_settling && left <= SETTLING_RESERVE + self.in_flight.all + lost
    }

    fn capacity(&self) -> Capacity {
        let mut capacity = Capacity {
            blocked: None,
            must_probe: self.ledger.refusals().is_in_doubt(),
            left: u64::MAX,
            to_reset: Duration::from_secs(60),
        };
        if let Some(plan) = self.policy.plan {
            for quota in self.ledger.plan_left(plan, self.now, self.policy) {
                self.add(&mut capacity, &self.quota_of_plan(quota));
            }
        }
        let kept = self.kept_for_others();
        for window in self.ledger.windows() {
            let left = left_in(self.ledger, window, self.in_flight.all, self.policy);
            self.add_window(&mut capacity, window, left.saturating_sub(kept));
        }
        capacity
    }

    fn add_window(&self, capacity: &mut Capacity, window: &Window, left: u64) {
        let service_now = self.ledger.service_time(self.now);
        if !self.ledger.has_passed(window, service_now) {
            let quota = QuotaLeft {
                quota: window.quota(),
                left,
                is_used_up: window.remaining() == 0,
                reset: window.reset(),
                opens: window.reset().plus(self.ledger.reset_margin(service_now)),
            };
            self.add(capacity, &quota);
        } else if left == 0 {
            capacity.must_probe = true;
        } else {
            // No response describes the next window yet. Until one does, no more may be sent than
            // was left of this one.
            capacity.limit(left, Duration::from_secs(60));
        }
    }

    fn quota_of_plan(&self, quota: PlanLeft) -> QuotaLeft {
        let lost = self.ledger.lost_since(quota.opened().moved(-LATE));
        let left = quota.left().saturating_sub(lost);
        QuotaLeft {
            quota: quota.quota(),
            left: left.saturating_sub(self.in_flight.all),
            is_used_up: quota.left() == 0,
            reset: quota.reset(),
            opens: quota.reset(),
        }
    }

    fn add(&self, capacity: &mut Capacity, quota: &QuotaLeft) {
        // If only outstanding requests use it up, it does not block while one is in flight: its response
        // may show that more is left.
        if quota.left == 0 && (quota.is_used_up || self.in_flight.all == 0) {
            capacity.block(Block {
                until: self.ledger.local_time(quota.opens),
                named: quota.reset,
                reason: BlockReason::Quota(quota.quota),
            });
        }
        let service_now = self.ledger.service_time(self.now);
        capacity.limit(quota.left, quota.reset.since(service_now));
    }

    /// Returns how many requests to leave to other clients near the end of a window. A client that
    /// may use only a part of the quota already leaves room.
    fn kept_for_others(&self) -> u64 {
        let processes = match self.in_flight.processes {
            Processes::One => 1,
            Processes::Several(members) => members,
            Processes::Unseen { kept, .. } => return kept,
        };
        match self.ledger.others().share() {
            Some(share) if self.policy.has_whole_quota() => one_for_each(share, processes),
            _ => 0,
        }
    }

    /// Returns how many more requests may be in flight: the lowest cap, minus those in flight.
    fn room_in_flight(&self, capacity: &Capacity) -> u64 {
        let room = match self.policy.max_in_flight {
            Some(limit) => limit.most().saturating_sub(self.in_flight.of_client),
            None => self.cap(capacity).saturating_sub(self.in_flight.all),
        };
        let cap = self
            .cap_after_unforeseen()
            .min(self.cap_beside_others(capacity));
        room.min(cap.saturating_sub(self.in_flight.all))
    }

    /// Returns the cap of a client that sets no `max_in_flight`.
    fn cap(&self, capacity: &Capacity) -> u64 {
        let plan_has_minute = self
            .policy
            .plan
            .is_some_and(|plan| plan.minute_limit().is_some());
        if plan_has_minute || self.ledger.knows_minute() {
            self.cap_by_risk(capacity)
        } else {
            UNKNOWN_QUOTA_CAP
        }
    }

    fn cap_after_unforeseen(&self) -> u64 {
        let Some(since) = self.ledger.refusals().since_unforeseen(self.now) else {
            return u64::MAX;
        };
        let step = since.as_secs() / UNFORESEEN_STEP.as_secs();
        let step = usize::try_from(step).unwrap_or(usize::MAX);
        UNFORESEEN_CAPS.get(step).copied().unwrap_or(u64::MAX)
    }

    /// Returns the cap that limits the damage if the reading is wrong: an eighth of what is left.
    /// It is higher if the latency requires that to use the window up.
    fn cap_by_risk(&self, capacity: &Capacity) -> u64 {
        let left = capacity.left.saturating_add(self.in_flight.all);
        let to_reset = capacity.to_reset.max(Duration::from_secs(1));
        let needed = part(
            left.saturating_mul(3),
            self.ledger.latency().div_duration_f64(to_reset),
        );
        let least = part(left, 1.0 / BURST_PARTS).clamp(BURST_CAP, MIN_IN_FLIGHT_CAP);
        (left / 8).max(needed).clamp(least, MAX_IN_FLIGHT_CAP)
    }

    /// Returns the cap beside other clients. They see this client's requests one round trip late,
    /// so the cap falls with what is left. If the last reading is old, the others may
    /// have used up the rest: one request checks.
    fn cap_beside_others(&self, capacity: &Capacity) -> u64 {
        let parts = match self.in_flight.processes {
            Processes::One => BURST_PARTS,
            Processes::Several(_) => PARTS_BESIDE_OTHERS,
            Processes::Unseen { in_flight, .. } => return in_flight,
        };
        let share = match self.ledger.contested_share() {
            Some(share) if self.policy.has_whole_quota() => share,
            _ => return u64::MAX,
        };
        let old = (self.ledger.latency() * 2).max(MIN_OLD);
        if self.ledger.age(self.now).is_none_or(|age| age > old) {
            return 1;
        }
        part(capacity.left, share.max(ASSUMED_SHARE) / parts).max(1)
    }
}

impl Capacity {
    fn limit(&mut self, left: u64, to_reset: Duration) {
        if left <= self.left {
            (self.left, self.to_reset) = (left, to_reset);
        }
    }

    fn block(&mut self, block: Block) {
        if self.blocked.is_none_or(|known| known.until <= block.until) {
            self.blocked = Some(block);
        }
    }
}

/// Returns one request for each other client, if each of them uses as much as a process here does.
fn one_for_each(share: f64, processes: usize) -> u64 {
    let processes = f64::from(u32::try_from(processes).unwrap_or(u32::MAX));
    part(1, (1.0 / share - 1.0) * processes + 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_left_to_each_client_that_uses_as_much() {
        for (share, processes, left) in [(0.5, 1, 1), (0.25, 1, 3), (0.25, 4, 12)] {
            assert_eq!(one_for_each(share, processes), left, "{share} {processes}");
        }
    }
}
