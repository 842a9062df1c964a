//! The only operation on a ledger: a holder reports how its requests ended, and is granted new ones.

use super::Ledger;
use crate::rate_limit::quota::holder::{COMPETES, Holder};
use crate::rate_limit::quota::instant::{LedgerTime, MINUTE, SECOND};
use crate::rate_limit::quota::report::{Answer, Pause, Report};
use crate::rate_limit::quota::window::Window;
use crate::rate_limit::view::{BlockReason, Plan, WaitReason};

/// At most this many in flight cannot cause a ban: that takes more than ten early requests within a minute, in
/// which there may be two windows. It is also how many probes may hang, how many requests are kept to settle lost
/// ones, and by how many a holder may be ahead.
const FEW: u64 = 5;
const MAX_IN_FLIGHT: u64 = 4_096;
/// One in this many of the requests that are left may be in flight, which limits the damage if the reading is
/// wrong. Tuned on bursts of 40 requests of others.
const PARTS: u64 = 8;
/// The same beside others. The last requests are left to them.
const PARTS_BESIDE_OTHERS: u64 = 16;
const LEFT_TO_OTHERS: u64 = 4;
/// The same for a process without its store, which cannot see the others. With 64 parts, the key was banned;
/// with one request in flight, 12 % of 20,000 a minute was used.
const PARTS_ALONE: u64 = 128;
const LEFT_ALONE: u64 = 32;
/// A probe whose response does not come is followed by another one after this time. They are counted anew
/// after `PROBES_FORGOTTEN`.
const PROBE_HANGS: i64 = SECOND;
const PROBES_FORGOTTEN: i64 = 35 * SECOND;
/// How long a holder pauses before it asks again: a quarter of the latency, within these bounds.
const MIN_PAUSE: i64 = SECOND / 200;
const MAX_PAUSE: i64 = SECOND / 20;
/// How long it pauses if no other holder could change anything: nothing but time does.
const LONE_PAUSE: i64 = SECOND / 4;

/// What the windows leave.
struct Left {
    /// To a holder, and to all of them.
    requests: u64,
    to_all: u64,
    /// The time to the reset of the window that leaves the fewest.
    to_reset: i64,
    must_probe: bool,
}

/// A rival in the division of what is left.
struct Claim {
    /// What it has got already.
    got: u64,
    /// The most that it can use.
    most: u64,
}

impl Left {
    fn unlimited(must_probe: bool) -> Self {
        Self {
            requests: u64::MAX,
            to_all: u64::MAX,
            to_reset: MINUTE,
            must_probe,
        }
    }

    /// Adds what a window leaves.
    fn add(&mut self, requests: u64, to_all: u64) {
        self.requests = self.requests.min(requests);
        self.to_all = self.to_all.min(to_all);
    }
}

impl Ledger {
    /// Records a report that arrives when the store's clock shows this time, and grants requests.
    pub(crate) fn exchange(&mut self, report: &Report, store_now: LedgerTime) -> Answer {
        let now = self.advance(store_now);
        self.take_in(report, now);
        if report.forgets {
            self.forget();
        }
        let answer = match self.allowance(report, now) {
            Ok((granted, is_probe)) => {
                let reason = if is_probe {
                    WaitReason::Probe
                } else {
                    WaitReason::Reserved
                };
                Answer {
                    granted,
                    is_probe,
                    pause: self.pause(report, reason, now),
                }
            }
            Err(pause) => Answer {
                granted: 0,
                is_probe: false,
                pause,
            },
        };
        self.note_grant(report, &answer, now);
        answer
    }

    /// Takes over what a holder reports.
    fn take_in(&mut self, report: &Report, now: LedgerTime) {
        let lost = self.holders.bury_dead(report.holder, now);
        self.lost.add(lost, now);
        self.open_planned_windows(report.terms.plan(), now);
        let holder = self.holders.enter(report.holder, now);
        holder.update(report.in_flight, report.has_probe, report.waiting, now);
        let last = report
            .first_outcome
            .saturating_add(report.outcomes.len() as u64);
        // A reply that was lost makes outcomes come again.
        let known = holder.record_outcomes(last);
        let known = known.saturating_sub(report.first_outcome);
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        let new = report.outcomes.get(known..).unwrap_or_default();
        for outcome in new {
            self.record(outcome, report, now);
        }
        if report.was_banned {
            self.record_ban();
        }
        self.look_for_others(now);
    }

    /// Notes what a holder was granted.
    fn note_grant(&mut self, report: &Report, answer: &Answer, now: LedgerTime) {
        let Answer {
            granted, is_probe, ..
        } = *answer;
        let holder = self.holders.enter(report.holder, now);
        holder.grant(granted, is_probe && granted > 0);
        if granted == 0 && answer.pause.is_block() {
            holder.wait_for_block();
        }
        if is_probe && granted > 0 {
            let are_forgotten = now.since(self.probed_at) > PROBES_FORGOTTEN;
            let probes = if are_forgotten { 0 } else { self.probes };
            self.probes = probes.saturating_add(1);
            self.probed_at = now;
        }
        if report.leaves {
            self.holders.remove(report.holder);
        }
    }

    /// Returns how many requests a holder may send, and whether that is a probe.
    fn allowance(&self, report: &Report, now: LedgerTime) -> Result<(u64, bool), Pause> {
        if report.forces && report.waiting > 0 && !self.holders.have_probe() {
            return Ok((1, true));
        }
        if let Some(block) = self.block.filter(|block| now < block.until) {
            return Err(self.block_until(block.until, block.reason, now));
        }
        let left = if report.terms.is_limited() {
            self.left(report, now)?
        } else {
            Left::unlimited(self.block.is_some())
        };
        if left.requests == 0 || self.keeps_last_requests(left.requests, now) {
            return Err(self.pause(report, WaitReason::Reserved, now));
        }
        if left.must_probe {
            if self.holders.have_probe() && !self.probe_hangs(now) {
                return Err(self.pause(report, WaitReason::Probe, now));
            }
            return Ok((report.waiting.min(1), true));
        }
        if !report.terms.is_limited() {
            return Ok((report.waiting, false));
        }
        let room = self.cap(&left, report, now);
        let room = room.saturating_sub(self.holders.in_flight());
        let part = self.part(report.holder, &left, room, now);
        let most = left.requests.min(room);
        match report.waiting.min(most).min(part) {
            0 if report.waiting > 0 => {
                let reason = if most > 0 {
                    WaitReason::OtherProcesses
                } else {
                    WaitReason::Reserved
                };
                Err(self.pause(report, reason, now))
            }
            requests => Ok((requests, false)),
        }
    }

    /// Returns whether another probe may go because the last one gets no response. After a 429, each one may
    /// count towards a ban.
    fn probe_hangs(&self, now: LedgerTime) -> bool {
        let is_late = now.since(self.probed_at) >= PROBE_HANGS;
        is_late && self.probes < FEW && self.block.is_none()
    }

    /// Returns whether the last requests are kept back, because a response will soon settle lost ones. It
    /// answers a request in flight, or one of those kept back.
    fn keeps_last_requests(&self, left: u64, now: LedgerTime) -> bool {
        let (in_flight, lost) = (self.holders.in_flight(), self.lost.count());
        let is_settling = lost > 0 && (in_flight > 0 || self.lost.may_arrive(now));
        is_settling && left <= FEW.saturating_add(in_flight).saturating_add(lost)
    }

    /// Returns what the windows leave, minus what is outstanding.
    fn left(&self, report: &Report, now: LedgerTime) -> Result<Left, Pause> {
        let mut left = Left::unlimited(!self.is_known || self.block.is_some());
        let mut used_up: Option<(LedgerTime, BlockReason)> = None;
        let has_plan = report.terms.plan().is_some();
        for window in &self.windows {
            if window.is_planned() && !has_plan {
                continue;
            }
            let kept = self.kept_in(window, report, now);
            let spare = self.left_in(window, report);
            let requests = spare.saturating_sub(kept);
            let end = self.end(window);
            let is_used_up = spare <= kept && self.is_used_up(window, report, kept);
            if now < end && is_used_up {
                if used_up.is_none_or(|(latest, _)| end > latest) {
                    used_up = Some((end, BlockReason::Quota(window.quota())));
                }
            } else if end <= now && requests == 0 {
                // After its reset, no more may be sent than was left, until a response shows the next window.
                left.must_probe = true;
            } else {
                left.add(requests, self.left_to_all(window).saturating_sub(kept));
                if requests == left.requests && now < end {
                    left.to_reset = end.since(now).max(SECOND);
                }
            }
        }
        match used_up {
            Some((end, reason)) => Err(self.block_until(end, reason, now)),
            None => Ok(left),
        }
    }

    /// Returns what a window leaves to all holders.
    fn left_to_all(&self, window: &Window) -> u64 {
        let outstanding = self.holders.in_flight();
        let outstanding = outstanding.saturating_add(self.lost_in(window));
        window.remaining().saturating_sub(outstanding)
    }

    /// Returns how many lost requests may count in a window. Nothing may come to settle those of a planned one, so
    /// they count until its end.
    fn lost_in(&self, window: &Window) -> u64 {
        if window.is_planned() {
            self.lost.count_since(window.opened_at().plus(-2 * SECOND))
        } else {
            self.lost.count()
        }
    }

    /// Returns what a window leaves to a holder.
    pub(super) fn left_in(&self, window: &Window, report: &Report) -> u64 {
        let left = self.left_to_all(window);
        if !report.terms.has_share() {
            return left;
        }
        let part = report.terms.part_of(window.limit());
        let holder = self.holders.get(report.holder);
        let in_flight = holder.map_or(0, Holder::in_flight);
        let used = window.used_by(report.holder).saturating_add(in_flight);
        left.min(part.saturating_sub(used.saturating_add(self.lost_in(window))))
    }

    /// Returns whether a window has nothing left, even if none of the requests in flight was counted.
    fn is_used_up(&self, window: &Window, report: &Report, kept: u64) -> bool {
        let part = report.terms.part_of(window.limit());
        let is_share_used_up = report.terms.has_share() && window.used_by(report.holder) >= part;
        window.remaining() <= kept || is_share_used_up || self.holders.in_flight() == 0
    }

    /// Returns how many of a window's requests are left to others. A share leaves them enough.
    fn kept_in(&self, window: &Window, report: &Report, now: LedgerTime) -> u64 {
        if !self.is_beside_others(now) || report.terms.has_share() {
            0
        } else if report.is_alone {
            LEFT_ALONE.min(window.limit() / 4)
        } else {
            LEFT_TO_OTHERS.min(window.limit() / 16)
        }
    }

    /// Returns how many requests may be in flight: a part of what is left, or more if the latency requires that
    /// to use the window up.
    fn cap(&self, left: &Left, report: &Report, now: LedgerTime) -> u64 {
        let all = left.requests.saturating_add(self.holders.in_flight());
        let rounds = 3 * u128::from(self.latency.unsigned_abs());
        let needed = u128::from(all) * rounds / u128::from(left.to_reset.unsigned_abs().max(1));
        let needed = u64::try_from(needed).unwrap_or(u64::MAX);
        let mut cap = (all / PARTS).max(needed).clamp(FEW, MAX_IN_FLIGHT);
        let plan = report.terms.plan();
        if !self.knows_minute && plan.and_then(Plan::minute_limit).is_none() {
            cap = FEW;
        }
        // A service that refused one for no visible reason may refuse the next. Those in flight then count
        // towards a ban.
        if let Some(end) = self.hidden {
            let quiet_minutes = now.since(end) / MINUTE;
            cap = cap.min(1 << quiet_minutes.min(20));
        }
        if self.is_beside_others(now) {
            let part = if report.is_alone {
                all / PARTS_ALONE
            } else {
                all.saturating_sub(self.taken_meanwhile()) / PARTS_BESIDE_OTHERS
            };
            cap = cap.min(part.max(1));
        }
        cap
    }

    /// Returns how many requests others may use until the next request arrives: what the reading shows is a round trip
    /// old then.
    fn taken_meanwhile(&self) -> u64 {
        let micros = 2 * u128::from(self.latency.unsigned_abs());
        let taken = u128::from(self.others_rate) * micros / u128::from(SECOND.unsigned_abs());
        u64::try_from(taken).unwrap_or(u64::MAX)
    }

    /// Returns how many requests a holder may send so that in the end all who compete got equally many, and
    /// meanwhile those who wait.
    fn part(&self, id: u64, left: &Left, room: u64, now: LedgerTime) -> u64 {
        let own = self.holders.get(id).map_or(0, Holder::granted);
        // Nobody can use more than its tasks can send until the reset. Near it, nothing is kept for anybody.
        let rounds = (left.to_reset - COMPETES) / self.latency.max(1);
        let rounds = u64::try_from(rounds).unwrap_or(0);
        let of_left = fill(
            left.to_all,
            own,
            &self.claims(id, now, |rival| rival.tasks().saturating_mul(rounds)),
        );
        // A small lead is tolerated: otherwise, a free place would wait for the next holder.
        let of_room = fill(
            room,
            own.saturating_sub(FEW),
            &self.claims(id, now, Holder::waiting),
        );
        of_left.min(of_room)
    }

    fn claims(&self, id: u64, now: LedgerTime, most: impl Fn(&Holder) -> u64) -> Vec<Claim> {
        let rivals = self.holders.rivals(id, now);
        let claim = |rival: &Holder| Claim {
            got: rival.granted(),
            most: most(rival),
        };
        rivals.map(claim).collect()
    }

    /// Returns how long to wait for responses. The more holders wait for those of others, the longer.
    fn pause(&self, report: &Report, reason: WaitReason, now: LedgerTime) -> Pause {
        let length = if self.holders.has_active_other(report.holder, now) {
            let rivals = self.holders.rivals(report.holder, now).count();
            let crowd = i64::try_from(rivals).unwrap_or(i64::MAX) / 8;
            (self.latency / 4).clamp(MIN_PAUSE, MAX_PAUSE) * (1 + crowd)
        } else {
            LONE_PAUSE
        };
        Pause::for_responses(reason, length)
    }

    /// Returns the pause until a block ends.
    fn block_until(&self, end: LedgerTime, reason: BlockReason, now: LedgerTime) -> Pause {
        let until = self.clock.service_time(end).system();
        Pause::until_block_ends(reason, until, end.since(now))
    }
}

/// Returns the max-min fair share of a holder: how much of `available` it gets if all are filled to one level.
fn fill(available: u64, own: u64, rivals: &[Claim]) -> u64 {
    if rivals.is_empty() || available == u64::MAX {
        return available;
    }
    let used = |level: u64| {
        let parts = rivals
            .iter()
            .map(|rival| level.saturating_sub(rival.got).min(rival.most));
        parts.fold(level.saturating_sub(own), u64::saturating_add)
    };
    let (mut low, mut high) = (own, own.saturating_add(available));
    while low < high {
        let level = low.midpoint(high);
        if used(level) < available {
            low = level + 1;
        } else {
            high = level;
        }
    }
    low - own
}
