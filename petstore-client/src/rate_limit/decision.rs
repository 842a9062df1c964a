//! Whether a request may be sent: a pure function of the ledger, the time and the caller's policy.

use std::time::Duration;

use super::clock::{LocalTime, ServiceTime};
use super::ledger::{GUARD_STEP, Ledger};
use super::outcome::Block;
use super::snapshot::{BlockReason, Plan, Quota, WaitReason};
use super::window::{ASSUMED_SHARE, Window};

/// Above this own share of what is used, no other client uses the key.
const SOLE_USER_SHARE: f64 = 0.95;
/// The bounds of what may be in flight by default.
const MIN_IN_FLIGHT_CAP: u64 = 32;
const MAX_IN_FLIGHT_CAP: u64 = 4096;
/// What may be in flight while the minute's quota is not known. A ban takes 11 requests that are
/// sent before its first 429 is seen (specification, section 8, rule 4, as the mock reads it).
const UNKNOWN_QUOTA_CAP: u64 = 5;
/// What may be in flight in the first two minutes after a 429 that no figure predicted.
const UNFORESEEN_CAPS: [u64; 2] = [2, 8];
const UNFORESEEN_STEP: Duration = Duration::from_secs(60);
/// What is kept, while requests are lost, for asking what became of them: each is counted twice
/// for a while, as lost and in the figure, and would use up what is left of a burst with nothing
/// left to ask with.
const SETTLING_RESERVE: u64 = 4;
/// A figure that is as old says little of what other clients have used since.
const MIN_OLD: Duration = Duration::from_millis(100);
/// Other clients do not use so much between two looks at a quota, nor half of it.
const PLENTY: u64 = 2_048;
/// How much later than its window a lost request may be counted.
const LATE: Duration = Duration::from_secs(2);

/// How a caller uses a key's quotas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Policy {
    /// The most requests in flight; without it, by risk.
    pub(crate) max_in_flight: Option<u32>,
    /// The part of each quota that is the caller's, above 0 and up to 1.
    pub(crate) share: f64,
    pub(crate) plan: Option<Plan>,
    /// Whether quotas hold requests back at all; a 429 always does.
    pub(crate) rate_limiting: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { max_in_flight: None, share: 1.0, plan: None, rate_limiting: true }
    }
}

/// What a request may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It may be sent. While a probe is in flight, no other request may be sent.
    Send { probe: bool },
    /// No request may be sent before the block's end.
    WaitUntil(Block),
    /// A response to a request in flight has to come first.
    WaitForResponse(WaitReason),
}

/// How many requests may be sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    /// Only one, whose response tells how many may follow.
    pub(super) probe: bool,
    pub(super) requests: u64,
    /// How many the quotas leave; fewer may be in flight at a time.
    pub(super) left: u64,
}

/// What the known quotas leave at one moment.
struct Room {
    /// The last to end of the quotas that are used up.
    blocked: Option<Block>,
    /// Whether one request has to go ahead and ask: where nothing is known, after a 429, and where
    /// a window that was used up has ended.
    must_probe: bool,
    /// How many more requests may be sent.
    left: u64,
    /// The time to the reset of the window that leaves the least.
    to_reset: Duration,
    minute_known: bool,
}

impl Ledger {
    /// Decides whether a request may be sent.
    pub(crate) fn decide(&self, now: LocalTime, policy: &Policy) -> Decision {
        match self.allowance(now, policy) {
            Ok(allowance) => Decision::Send { probe: allowance.probe },
            Err(wait) => wait,
        }
    }

    /// Returns how many requests may be sent now, at least one, or else what to wait for.
    pub(super) fn allowance(&self, now: LocalTime, policy: &Policy) -> Result<Allowance, Decision> {
        if let Some(block) = self.blocked_at(now) {
            return Err(Decision::WaitUntil(block));
        }
        if !policy.rate_limiting {
            return Ok(Allowance { probe: false, requests: u64::MAX, left: u64::MAX });
        }
        let room = self.room(now, policy);
        if let Some(block) = room.blocked {
            return Err(Decision::WaitUntil(block));
        }
        if room.must_probe && self.probe.is_some_and(|probe| now < probe.until) {
            return Err(Decision::WaitForResponse(WaitReason::Probe));
        }
        let mut left = room.left;
        if self.is_settling(now) && left <= SETTLING_RESERVE + self.outstanding() {
            left = 0;
        }
        if left == 0 {
            return Err(Decision::WaitForResponse(WaitReason::Reserved));
        }
        let requests = self.in_flight_cap(&room, now, policy).saturating_sub(self.reserved());
        if requests == 0 {
            return Err(Decision::WaitForResponse(WaitReason::Concurrency));
        }
        let requests = if room.must_probe { 1 } else { requests.min(left) };
        Ok(Allowance { probe: room.must_probe, requests, left })
    }

    /// Returns whether lost requests will be settled soon: by the response to a request in flight,
    /// or to one that is sent when they cannot be on their way any more.
    fn is_settling(&self, now: LocalTime) -> bool {
        self.lost.count() > 0 && (self.reserved() > 0 || self.lost.is_on_the_way(now))
    }

    /// Returns how much later than announced a window is taken to open. Other clients may have been
    /// told to wait for whole seconds, rounded up: who sends before those are over is early for the
    /// whole key, and is counted towards its ban.
    pub(super) fn guard(&self, now: ServiceTime) -> Duration {
        let beside_others = self.cut_off || self.others_until.is_some_and(|until| now < until);
        if beside_others { self.guard.max(GUARD_STEP) } else { self.guard }
    }

    pub(super) fn has_passed(&self, window: &Window, now: ServiceTime) -> bool {
        now >= window.reset.plus(self.guard(now))
    }

    /// Returns how many more requests a window leaves to this caller.
    pub(crate) fn left_in(&self, window: &Window, policy: &Policy) -> u64 {
        let outstanding = self.outstanding();
        let left = window.remaining.saturating_sub(outstanding);
        if policy.share >= 1.0 {
            return left;
        }
        left.min(window.left_of_share(policy.part_of(window.limit), outstanding))
    }

    /// Returns the own share of what is used, where other clients use the key.
    pub(super) fn shared_use(&self) -> Option<f64> {
        let assumed = if self.cut_off { ASSUMED_SHARE } else { 1.0 };
        let share = self.own_share.map_or(assumed, |share| share.min(assumed));
        Some(share).filter(|share| *share < SOLE_USER_SHARE)
    }

    /// Returns the own share of what is used, where other clients may use up what is left between two
    /// looks at the service's figures.
    pub(super) fn contested(&self) -> Option<f64> {
        let is_scarce = |window: &Window| window.remaining <= PLENTY.max(window.limit / 2);
        self.shared_use().filter(|_| self.windows.iter().any(is_scarce))
    }

    fn room(&self, now: LocalTime, policy: &Policy) -> Room {
        let mut room = Room {
            blocked: None,
            must_probe: !self.described || self.blocked.is_some(),
            left: u64::MAX,
            to_reset: Duration::from_secs(60),
            minute_known: self.shows_minute,
        };
        let service_now = self.clock.earliest(now);
        self.add_plan(&mut room, now, service_now, policy);
        // A share that was agreed on is exact: nothing has to be left to others.
        let margin = match self.shared_use() {
            Some(share) if policy.share >= 1.0 => margin(share, self.members(now)),
            _ => 0,
        };
        for window in &self.windows {
            room.minute_known |= window.quota == Quota::Minute;
            let left = self.left_in(window, policy).saturating_sub(margin);
            if !self.has_passed(window, service_now) {
                if left == 0 && (self.reserved() == 0 || window.remaining == 0) {
                    room.block(Block {
                        until: self.clock.local(window.reset.plus(self.guard(service_now))),
                        named: window.reset,
                        reason: BlockReason::Quota(window.quota),
                    });
                }
                room.limit(left, window.reset.since(service_now));
            } else if left == 0 {
                room.must_probe = true;
            } else {
                room.limit(left, Duration::from_secs(60));
            }
        }
        room
    }

    fn add_plan(&self, room: &mut Room, now: LocalTime, service_now: ServiceTime, policy: &Policy) {
        let Some(plan) = policy.plan else { return };
        room.minute_known |= plan.per_minute.is_some();
        for quota in self.usage.left(plan, service_now, |limit| policy.part_of(limit)) {
            let to_reset = quota.reset.since(service_now);
            let length = match quota.quota {
                Quota::Minute => Duration::from_secs(60),
                _ => Duration::from_secs(24 * 3600),
            };
            let begun = length.saturating_sub(to_reset).saturating_add(LATE);
            let since = now.moved(-super::clock::micros(begun));
            let lost = self.lost.since(since);
            let left = quota.left.saturating_sub(lost).saturating_sub(self.reserved());
            let spent = quota.left == 0 || (self.reserved() == 0 && left == 0);
            if spent {
                room.block(Block {
                    until: self.clock.local(quota.reset),
                    named: quota.reset,
                    reason: BlockReason::Quota(quota.quota),
                });
            }
            room.limit(left, to_reset);
        }
    }

    fn in_flight_cap(&self, room: &Room, now: LocalTime, policy: &Policy) -> u64 {
        let mut cap = match policy.max_in_flight {
            Some(most) => u64::from(most),
            None if !room.minute_known => UNKNOWN_QUOTA_CAP,
            None => self.cap_by_risk(room),
        };
        if let Some(since) = self.unforeseen {
            let step = now.since(since).as_secs() / UNFORESEEN_STEP.as_secs();
            let step = usize::try_from(step).unwrap_or(usize::MAX);
            cap = UNFORESEEN_CAPS.get(step).map_or(cap, |most| cap.min(*most));
        }
        if let Some(share) = self.contested().filter(|_| policy.share >= 1.0) {
            // Others see what is in flight a round trip late: less as the end comes near. Where
            // nothing came for a while, they may have used all since: one request asks first.
            let old = (self.latency * 2).max(MIN_OLD);
            let is_old = self.seen_at.is_none_or(|at| now.since(at) > old);
            cap = if is_old {
                1
            } else {
                cap.min(part(room.left, share.max(ASSUMED_SHARE) / 2.0)).max(1)
            };
        }
        cap
    }

    /// As much as costs little if all is not as it seems, and enough to use up the window.
    fn cap_by_risk(&self, room: &Room) -> u64 {
        let left = u128::from(room.left.saturating_add(self.reserved()));
        let to_reset = room.to_reset.max(Duration::from_secs(1)).as_micros();
        let needed = (3 * left).saturating_mul(self.latency.as_micros()) / to_reset;
        let cap = u64::try_from((left / 8).max(needed)).unwrap_or(u64::MAX);
        cap.clamp(MIN_IN_FLIGHT_CAP, MAX_IN_FLIGHT_CAP)
    }
}

impl Policy {
    /// Returns the caller's part of a limit, at least one request.
    pub(super) fn part_of(&self, limit: u64) -> u64 {
        if self.share >= 1.0 { limit } else { part(limit, self.share).max(1) }
    }
}

impl Room {
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

/// Returns what is left to other clients near the end of a window: each may have one in flight, if
/// they use as much as a member.
fn margin(share: f64, members: usize) -> u64 {
    let members = f64::from(u32::try_from(members.max(1)).unwrap_or(u32::MAX));
    part(1, (1.0 / share - 1.0) * members + 0.5)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a part of a limit: rounding down is meant, and `as` saturates"
)]
fn part(of: u64, share: f64) -> u64 {
    (of as f64 * share) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_left_to_each_other_client_that_uses_as_much_as_a_member() {
        for (share, members, left) in [(0.5, 1, 1), (0.25, 0, 3), (0.25, 1, 3), (0.25, 4, 12)] {
            assert_eq!(margin(share, members), left, "{share} {members}");
        }
    }

    #[test]
    fn a_part_of_a_limit_is_rounded_down_to_one_at_least_and_all_of_it_is_exact() {
        let exact = (1 << 53) + 1;
        for (share, limit, part) in [(1.0, exact, exact), (0.5, 5, 2), (0.5, 1, 1)] {
            let policy = Policy { share, ..Policy::default() };
            assert_eq!(policy.part_of(limit), part, "{share} of {limit}");
        }
    }
}
