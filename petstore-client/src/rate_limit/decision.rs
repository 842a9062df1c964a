//! Decides whether a request may be sent: a pure function of the ledger, the time and the caller's
//! policy.

use std::time::Duration;

use super::clock::{LocalTime, ServiceTime};
use super::ledger::{GUARD_STEP, Ledger};
use super::outcome::Block;
use super::snapshot::{BlockReason, Plan, Quota, WaitReason};
use super::window::{ASSUMED_SHARE, Window};

/// If this client's share of the used quota is larger, no other client uses the key.
const SOLE_USER_SHARE: f64 = 0.95;
/// The bounds of the default number of requests in flight.
const MIN_IN_FLIGHT_CAP: u64 = 32;
const MAX_IN_FLIGHT_CAP: u64 = 4096;
/// The maximum in flight while the quota per minute is unknown. It takes 11 requests after a 429 to
/// cause a ban (specification, section 8, rule 4, as the mock reads it).
const UNKNOWN_QUOTA_CAP: u64 = 5;
/// The maximum in flight in the first and second minute after a 429 that no figure predicted.
const UNFORESEEN_CAPS: [u64; 2] = [2, 8];
const UNFORESEEN_STEP: Duration = Duration::from_secs(60);
/// Requests that are held back for probes while requests are lost. A lost request temporarily
/// counts twice, as lost and in the figure. Without this reserve, a burst could use up the quota
/// and leave nothing for a probe.
const SETTLING_RESERVE: u64 = 4;
/// After this time, a figure says little about what other clients have used since.
const MIN_OLD: Duration = Duration::from_millis(100);
/// Between two figures, other clients are assumed to use less than this, and less than half.
const PLENTY: u64 = 2_048;
/// The service may count a lost request this much later than its window.
const LATE: Duration = Duration::from_secs(2);

/// How a client uses a key's quotas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Policy {
    /// The maximum in flight; `None` to derive it from the risk.
    pub(crate) max_in_flight: Option<u32>,
    /// The client's share of each quota, above 0 and up to 1.
    pub(crate) share: f64,
    pub(crate) plan: Option<Plan>,
    /// Whether quotas delay requests. A 429 always does.
    pub(crate) rate_limiting: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { max_in_flight: None, share: 1.0, plan: None, rate_limiting: true }
    }
}

/// The decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Send it. While a probe is in flight, no other request may be sent.
    Send { probe: bool },
    /// Wait until the end of the block.
    WaitUntil(Block),
    /// Wait for the response to a request in flight.
    WaitForResponse(WaitReason),
}

/// The number of requests that may be sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    /// Whether it is a probe: a single request whose response says how many may follow.
    pub(super) probe: bool,
    pub(super) requests: u64,
    /// The number that the quotas leave. Fewer may be in flight at once.
    pub(super) left: u64,
}

/// What the known quotas leave at an instant.
struct Room {
    /// The exhausted quota that resets last.
    blocked: Option<Block>,
    /// Whether a probe must go first: if nothing is known, after a 429, and after the end of an
    /// exhausted window.
    must_probe: bool,
    /// The number of requests that may still be sent.
    left: u64,
    /// The time until the reset of the window with the least left.
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

    /// Returns the number of requests that may be sent now, at least one, or else what to wait for.
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

    /// Returns whether lost requests will be resolved soon: by the response to a request in flight,
    /// or to one that is sent when they can no longer be on their way.
    fn is_settling(&self, now: LocalTime) -> bool {
        self.lost.count() > 0 && (self.reserved() > 0 || self.lost.is_on_the_way(now))
    }

    /// Returns the delay after an announced reset at which a window is assumed to open. Other
    /// clients may have a `Retry-After` that was rounded up to seconds. A request of any client
    /// before its end is early, and counts towards a ban of the key.
    pub(super) fn guard(&self, now: ServiceTime) -> Duration {
        let beside_others = self.cut_off || self.others_until.is_some_and(|until| now < until);
        if beside_others { self.guard.max(GUARD_STEP) } else { self.guard }
    }

    pub(super) fn has_passed(&self, window: &Window, now: ServiceTime) -> bool {
        now >= window.reset.plus(self.guard(now))
    }

    /// Returns the number of requests that a window leaves to this client.
    pub(crate) fn left_in(&self, window: &Window, policy: &Policy) -> u64 {
        let outstanding = self.outstanding();
        let left = window.remaining.saturating_sub(outstanding);
        if policy.share >= 1.0 {
            return left;
        }
        left.min(window.left_of_share(policy.part_of(window.limit), outstanding))
    }

    /// Returns this client's share of the used quota, if other clients use the key.
    pub(super) fn shared_use(&self) -> Option<f64> {
        let assumed = if self.cut_off { ASSUMED_SHARE } else { 1.0 };
        let share = self.own_share.map_or(assumed, |share| share.min(assumed));
        Some(share).filter(|share| *share < SOLE_USER_SHARE)
    }

    /// Returns this client's share of the used quota, if other clients may use up the rest between
    /// two figures of the service.
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
        // A configured share is exact, so it needs no margin for others.
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
            // Others see requests in flight a round trip late, so fewer are in flight towards the
            // end. After a while without a figure, others may have used everything, so a probe goes
            // first.
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

    /// Low enough to limit the damage of a wrong estimate, and high enough to use up the window.
    fn cap_by_risk(&self, room: &Room) -> u64 {
        let left = u128::from(room.left.saturating_add(self.reserved()));
        let to_reset = room.to_reset.max(Duration::from_secs(1)).as_micros();
        let needed = (3 * left).saturating_mul(self.latency.as_micros()) / to_reset;
        let cap = u64::try_from((left / 8).max(needed)).unwrap_or(u64::MAX);
        cap.clamp(MIN_IN_FLIGHT_CAP, MAX_IN_FLIGHT_CAP)
    }
}

impl Policy {
    /// Returns the client's part of a limit, at least one request.
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

/// Returns what is left for other clients near the end of a window: one request in flight each, if
/// they use as much as a member.
fn margin(share: f64, members: usize) -> u64 {
    let members = f64::from(u32::try_from(members.max(1)).unwrap_or(u32::MAX));
    part(1, (1.0 / share - 1.0) * members + 0.5)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "rounds a part of a limit down; `as` saturates"
)]
fn part(of: u64, share: f64) -> u64 {
    (of as f64 * share) as u64
}
