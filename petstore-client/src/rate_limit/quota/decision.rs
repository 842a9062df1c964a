//! Decides whether a request may be sent: a pure function of the ledger, the time and the caller's
//! policy.

use std::time::Duration;

use super::clock::{LocalTime, SECOND, ServiceTime};
use super::ledger::{Ledger, RESET_MARGIN_STEP};
use super::reading::Block;
use super::window::{ASSUMED_SHARE, Window};
use crate::rate_limit::view::{BlockReason, Plan, Quota, WaitReason};

/// Above this own share, no other client uses the key.
const SOLE_USER_SHARE: f64 = 0.95;
/// The bounds of the cap for requests in flight.
const MIN_IN_FLIGHT_CAP: u64 = 32;
const MAX_IN_FLIGHT_CAP: u64 = 4096;
/// The cap while the minute's quota is unknown. A ban takes 11 requests sent before its first 429 is
/// seen (specification, section 8, rule 4, as the mock reads it).
const UNKNOWN_QUOTA_CAP: u64 = 5;
/// The caps in the first two minutes after an unforeseen 429.
const UNFORESEEN_CAPS: [u64; 2] = [2, 8];
const UNFORESEEN_STEP: Duration = Duration::from_secs(60);
/// Requests kept back for settling lost ones. A lost request counts twice for a while (as lost, and in
/// the reading), which could use up a burst and leave nothing to settle it with.
const SETTLING_RESERVE: u64 = 4;
/// The age from which a reading says little about other clients.
const MIN_OLD: Duration = Duration::from_millis(100);
/// While this much is left, and half of the quota, other clients cannot use it up between two readings.
const PLENTY: u64 = 2_048;
/// How long after a window's end a lost request may still be counted in it.
const LATE: i64 = 2 * SECOND;

/// How a client uses a key's quotas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Policy {
    /// The most requests in flight; `None` lets the ledger decide.
    pub(crate) max_in_flight: Option<u32>,
    /// The caller's part of each quota: above 0, up to 1.
    pub(crate) share: f64,
    pub(crate) plan: Option<Plan>,
    /// Whether quotas limit requests. A 429 always does.
    pub(crate) rate_limiting: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_in_flight: None,
            share: 1.0,
            plan: None,
            rate_limiting: true,
        }
    }
}

/// Whether a request may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It may be sent. No other request may be sent while a probe is in flight.
    Send { probe: bool },
    /// Wait until the end of the block.
    WaitUntil(Block),
    /// The response to a request in flight must come first.
    WaitForResponse(WaitReason),
}

/// The number of requests that may be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    /// Whether it is one request, whose response says how many may follow.
    pub(crate) probe: bool,
    pub(crate) requests: u64,
    /// How many the quotas leave; the cap for requests in flight may be lower.
    pub(crate) left: u64,
}

/// What the known quotas leave at one moment.
struct Capacity {
    /// The used-up quota that ends last.
    blocked: Option<Block>,
    /// Whether one request must go first: while nothing is known, after a 429, and after the reset of a
    /// used-up window.
    must_probe: bool,
    /// The number of requests that may still be sent.
    left: u64,
    /// The time to the reset of the window with the least remaining.
    to_reset: Duration,
    minute_known: bool,
}

impl Ledger {
    /// Decides whether a request may be sent.
    pub(crate) fn decide(&self, now: LocalTime, policy: &Policy) -> Decision {
        match self.allowance(now, policy) {
            Ok(allowance) => Decision::Send {
                probe: allowance.probe,
            },
            Err(wait) => wait,
        }
    }

    /// Returns how many requests may be sent now (at least one), or what to wait for.
    pub(crate) fn allowance(&self, now: LocalTime, policy: &Policy) -> Result<Allowance, Decision> {
        if let Some(block) = self.blocked_at(now) {
            return Err(Decision::WaitUntil(block));
        }
        if !policy.rate_limiting {
            return Ok(Allowance {
                probe: false,
                requests: u64::MAX,
                left: u64::MAX,
            });
        }
        let capacity = self.capacity(now, policy);
        if let Some(block) = capacity.blocked {
            return Err(Decision::WaitUntil(block));
        }
        if capacity.must_probe && self.probe.is_some_and(|probe| now < probe.until) {
            return Err(Decision::WaitForResponse(WaitReason::Probe));
        }
        let mut left = capacity.left;
        if self.is_settling(now) && left <= SETTLING_RESERVE + self.outstanding() {
            left = 0;
        }
        if left == 0 {
            return Err(Decision::WaitForResponse(WaitReason::Reserved));
        }
        let requests = self
            .in_flight_cap(&capacity, now, policy)
            .saturating_sub(self.reserved());
        if requests == 0 {
            return Err(Decision::WaitForResponse(WaitReason::Concurrency));
        }
        let requests = if capacity.must_probe {
            1
        } else {
            requests.min(left)
        };
        Ok(Allowance {
            probe: capacity.must_probe,
            requests,
            left,
        })
    }

    /// Returns whether a response will soon settle the lost requests: that of a request in flight, or of
    /// one sent after the lost ones must have arrived.
    fn is_settling(&self, now: LocalTime) -> bool {
        self.lost.count() > 0 && (self.reserved() > 0 || self.lost.is_on_the_way(now))
    }

    /// Returns how much later than announced a window is assumed to open. Other clients may wait for
    /// whole seconds, rounded up. A request before that is too early for the whole key, and counts
    /// towards its ban.
    pub(crate) fn reset_margin(&self, now: ServiceTime) -> Duration {
        let beside_others =
            self.is_alone || self.other_clients_until.is_some_and(|until| now < until);
        if beside_others {
            self.reset_margin.max(RESET_MARGIN_STEP)
        } else {
            self.reset_margin
        }
    }

    pub(crate) fn has_passed(&self, window: &Window, now: ServiceTime) -> bool {
        now >= window.reset.plus(self.reset_margin(now))
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

    /// Returns the own share of the quota, if other clients use the key.
    pub(crate) fn shared_use(&self) -> Option<f64> {
        let assumed = if self.is_alone { ASSUMED_SHARE } else { 1.0 };
        let share = self.own_share.map_or(assumed, |share| share.min(assumed));
        Some(share).filter(|share| *share < SOLE_USER_SHARE)
    }

    /// Returns the own share, if other clients could use up the rest between two readings.
    pub(crate) fn contested_share(&self) -> Option<f64> {
        let is_scarce = |window: &Window| window.remaining <= PLENTY.max(window.limit / 2);
        self.shared_use()
            .filter(|_| self.windows.iter().any(is_scarce))
    }

    fn capacity(&self, now: LocalTime, policy: &Policy) -> Capacity {
        let mut capacity = Capacity {
            blocked: None,
            must_probe: !self.described || self.blocked.is_some(),
            left: u64::MAX,
            to_reset: Duration::from_secs(60),
            minute_known: self.shows_minute,
        };
        let service_now = self.clock.earliest(now);
        self.add_plan(&mut capacity, service_now, policy);
        // A configured share is exact: no margin for others is needed.
        let margin = match self.shared_use() {
            Some(share) if policy.share >= 1.0 => margin(share, self.members(now)),
            _ => 0,
        };
        for window in &self.windows {
            capacity.minute_known |= window.quota == Quota::Minute;
            let left = self.left_in(window, policy).saturating_sub(margin);
            if !self.has_passed(window, service_now) {
                if left == 0 && (self.reserved() == 0 || window.remaining == 0) {
                    capacity.block(Block {
                        until: self
                            .clock
                            .local(window.reset.plus(self.reset_margin(service_now))),
                        named: window.reset,
                        reason: BlockReason::Quota(window.quota),
                    });
                }
                capacity.limit(left, window.reset.since(service_now));
            } else if left == 0 {
                capacity.must_probe = true;
            } else {
                capacity.limit(left, Duration::from_secs(60));
            }
        }
        capacity
    }

    fn add_plan(&self, capacity: &mut Capacity, service_now: ServiceTime, policy: &Policy) {
        let Some(plan) = policy.plan else { return };
        capacity.minute_known |= plan.per_minute.is_some();
        for quota in self
            .usage
            .left(plan, service_now, |limit| policy.part_of(limit))
        {
            let lost = self.lost.since(self.clock.local(quota.opened).moved(-LATE));
            let left = quota
                .left
                .saturating_sub(lost)
                .saturating_sub(self.reserved());
            let spent = quota.left == 0 || (self.reserved() == 0 && left == 0);
            if spent {
                capacity.block(Block {
                    until: self.clock.local(quota.reset),
                    named: quota.reset,
                    reason: BlockReason::Quota(quota.quota),
                });
            }
            capacity.limit(left, quota.reset.since(service_now));
        }
    }

    fn in_flight_cap(&self, capacity: &Capacity, now: LocalTime, policy: &Policy) -> u64 {
        let mut cap = match policy.max_in_flight {
            Some(most) => u64::from(most),
            None if !capacity.minute_known => UNKNOWN_QUOTA_CAP,
            None => self.cap_by_risk(capacity),
        };
        if let Some(since) = self.unforeseen {
            let step = now.since(since).as_secs() / UNFORESEEN_STEP.as_secs();
            let step = usize::try_from(step).unwrap_or(usize::MAX);
            cap = UNFORESEEN_CAPS.get(step).map_or(cap, |most| cap.min(*most));
        }
        if let Some(share) = self.contested_share().filter(|_| policy.share >= 1.0) {
            // Others see this client's requests one round trip late, so fewer are sent towards the
            // end. After a pause the rest may be used up: one request checks.
            let old = (self.latency * 2).max(MIN_OLD);
            let is_old = self.seen_at.is_none_or(|at| now.since(at) > old);
            cap = if is_old {
                1
            } else {
                cap.min(part(capacity.left, share.max(ASSUMED_SHARE) / 2.0))
                    .max(1)
            };
        }
        cap
    }

    /// Returns a cap that limits the damage of a wrong reading and still uses the window up.
    fn cap_by_risk(&self, capacity: &Capacity) -> u64 {
        let left = capacity.left.saturating_add(self.reserved());
        let to_reset = capacity.to_reset.max(Duration::from_secs(1));
        let needed = part(
            left.saturating_mul(3),
            self.latency.div_duration_f64(to_reset),
        );
        (left / 8)
            .max(needed)
            .clamp(MIN_IN_FLIGHT_CAP, MAX_IN_FLIGHT_CAP)
    }
}

impl Policy {
    /// Returns the client's part of a limit, at least one request.
    pub(crate) fn part_of(&self, limit: u64) -> u64 {
        if self.share >= 1.0 {
            limit
        } else {
            part(limit, self.share).max(1)
        }
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

/// Returns the margin for other clients near the end of a window: one request in flight each, if they
/// use as much as a member does.
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
            let policy = Policy {
                share,
                ..Policy::default()
            };
            assert_eq!(policy.part_of(limit), part, "{share} of {limit}");
        }
    }
}
