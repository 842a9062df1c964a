//! Whether a request may go, and what holds it back: one pass over all that is known.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::account::{Account, SHARED};
use super::own::Open;
use super::policy::Policy;
use super::state::State;
use super::time::Time;
use crate::error::Quota;

/// How much later than announced a window is taken to open, where strangers share the key, and by
/// which step a guard is learned.
pub(super) const GUARD_STEP: Duration = Duration::from_secs(1);
/// Below this own part of what is used, strangers share the key.
const ALONE: f64 = 0.95;
/// How many requests may be under way towards a quota that is not shown: all of them are refused
/// together, and all but the first count as repeats towards a ban.
const MOST_UNSEEN: u32 = 2;
/// How many requests are kept for asking what became of those that were lost: such a request may
/// get lost itself.
const SETTLERS: u64 = 4;

/// A stretch of time in which nothing may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Block {
    pub(crate) until: Time,
    /// The end that the service named: before `until`, where that is more careful.
    pub(crate) named: Time,
    pub(crate) quota: Quota,
}

/// What a request may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Go(Pass),
    /// Nothing may go before this moment.
    Blocked(Block),
    /// It may go after this moment, for no other reason than to spread requests.
    Paced(Time),
    /// It may go after this moment: its answer then tells which lost requests were counted.
    Settling(Time),
    /// Own requests that are under way come first.
    Busy(Busy),
}

/// What `grant` takes: that a request may go, and in which part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pass {
    /// Whether its answer is to tell what may go.
    pub(super) probe: bool,
    /// How long it may be under way.
    pub(super) lease: Duration,
}

/// Why a request waits for others of one's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Busy {
    /// The answer of one of them is to tell what may go.
    Probe,
    /// They may use up all that is left.
    Reserved,
    /// They are as many as may be under way at once.
    InFlight,
}

/// What all that is known says at one moment.
struct Survey {
    /// The last to end of all that holds requests back for real: a refusal, or a quota of which
    /// nothing is left. Own requests under way are no such reason.
    blocked: Option<Block>,
    /// Whether one request has to go ahead and tell: where nothing is known, after a refusal, and
    /// where a window that was used up has ended.
    must_probe: bool,
    /// Whether a window has ended, so that the next answer tells of another.
    asks: bool,
    /// How many more requests may go, besides those that are left to strangers.
    left: u64,
    /// The lowest limit.
    limit: u64,
    /// When the window opens of which the least is left.
    opens: Option<Time>,
    /// The own part of what is used, where strangers share the key.
    share: Option<f64>,
    /// What is left to them near the end of a window.
    margin: u64,
}

impl State {
    /// Judges whether a request may go at `now`, the earliest time that the service's clock may
    /// show.
    pub(crate) fn verdict(&self, now: Time, policy: &Policy) -> Verdict {
        let survey = self.survey(now, policy);
        if let Some(block) = survey.blocked {
            return Verdict::Blocked(block);
        }
        if !policy.gated {
            return Verdict::Go(Pass { probe: false, lease: policy.lease });
        }
        if survey.must_probe && self.probe.is_some() {
            return Verdict::Busy(Busy::Probe);
        }
        if survey.left == 0 {
            return Verdict::Busy(Busy::Reserved);
        }
        if let Some(held) = self.settling(&survey, now) {
            return held;
        }
        if self.in_flight() >= self.most_in_flight(&survey, policy) {
            return Verdict::Busy(Busy::InFlight);
        }
        match self.paced(&survey, policy) {
            Some(at) if at > now => Verdict::Paced(at),
            _ => {
                let probe = survey.must_probe || survey.asks;
                Verdict::Go(Pass { probe, lease: policy.lease })
            }
        }
    }

    /// Where requests get lost, keeps some of what is left until their fate is known: each is
    /// counted twice for a while, as lost and in the service's figure, and what is left of a burst
    /// would else be used up by that alone, with nothing left to ask with until the window ends.
    fn settling(&self, survey: &Survey, now: Time) -> Option<Verdict> {
        let spare = SETTLERS + self.reserved();
        if survey.left > spare || !self.lost.is_usual(now) {
            None
        } else if self.in_flight() > 0 {
            Some(Verdict::Busy(Busy::Reserved))
        } else {
            self.lost.on_the_way(now).map(Verdict::Settling)
        }
    }

    fn survey(&self, now: Time, policy: &Policy) -> Survey {
        // A part that was agreed on is exact: nothing has to be guessed or left over then.
        let share = self.share().filter(|_| policy.share >= 1.0);
        let mut survey = Survey {
            blocked: self.block.filter(|block| block.until > now),
            must_probe: !self.known || self.block.is_some(),
            asks: false,
            left: u64::MAX,
            limit: u64::MAX,
            opens: None,
            share,
            margin: share.map_or(0, margin),
        };
        if policy.gated {
            self.survey_own(&mut survey, now, policy);
            for account in &self.accounts {
                self.survey_account(&mut survey, account, now, policy);
            }
        }
        survey
    }

    /// Takes in an account. One whose window has ended holds nothing back: where nothing was left
    /// of it, one request goes ahead and asks.
    fn survey_account(&self, survey: &mut Survey, account: &Account, now: Time, policy: &Policy) {
        let left = account.left(self.reserved(), policy).saturating_sub(survey.margin);
        let opens = account.opens(self.guard());
        survey.limit = survey.limit.min(account.limit);
        if now >= opens {
            survey.asks = true;
            if left == 0 {
                survey.must_probe = true;
                return;
            }
        } else {
            let stuck = self.in_flight() == 0 && left == 0;
            if stuck || account.is_spent() {
                let quota = account.horizon.into();
                survey.block(Block { until: opens, named: account.reset, quota });
            }
            if left < survey.left {
                survey.opens = Some(opens);
            }
        }
        survey.left = survey.left.min(left);
    }

    /// Takes in the caller's own plan.
    fn survey_own(&self, survey: &mut Survey, now: Time, policy: &Policy) {
        if policy.plan.is_none() {
            return;
        }
        let (in_flight, lost) = (self.in_flight().into(), self.lost.total().into());
        let open = Open { in_flight, lost, last_lost: self.lost.last() };
        survey.left = self.own.left(now, &open, policy);
        if let Some(block) = self.own.used_up(now, &open, policy) {
            survey.block(block);
        }
    }

    fn most_in_flight(&self, survey: &Survey, policy: &Policy) -> u32 {
        let most = policy.in_flight_limit(survey.limit);
        let most = if self.surprised { most.min(MOST_UNSEEN) } else { most };
        match survey.share {
            // Requests under way are seen by strangers a round trip late: the own part of what
            // would be sent alone, and less as the end comes near.
            Some(share) => part(u64::from(most), share).min(part(survey.left, share / 2.0)).max(1),
            None => most,
        }
    }

    fn paced(&self, survey: &Survey, policy: &Policy) -> Option<Time> {
        let (true, Some(last), Some(opens)) = (policy.pacing, self.last_grant, survey.opens) else {
            return None;
        };
        let gap = opens.since(last) / u32::try_from(survey.left.max(1)).unwrap_or(u32::MAX);
        Some(last.after(gap))
    }

    /// Returns how much later than announced a window is taken to open. A stranger who was refused
    /// may have been told to wait for whole seconds, rounded up: who sends before those are over is
    /// late for the whole key, and is counted towards its ban.
    pub(super) fn guard(&self) -> Duration {
        if self.share().is_some() { self.guard.max(GUARD_STEP) } else { self.guard }
    }

    /// Returns the own part of what is used, where strangers share the key.
    fn share(&self) -> Option<f64> {
        let least = if self.suspicious { SHARED } else { 1.0 };
        let share = self.own_share.map_or(least, |share| share.min(least));
        Some(share).filter(|share| *share < ALONE)
    }
}

impl Survey {
    fn block(&mut self, block: Block) {
        if self.blocked.is_none_or(|known| known.until <= block.until) {
            self.blocked = Some(block);
        }
    }
}

/// Returns what is left to strangers near the end of a window: each may have one under way.
fn margin(share: f64) -> u64 {
    u64::from(part(1, 1.0 / share - 0.5))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a part of a small number: rounding down is meant, and `as` saturates"
)]
fn part(of: u64, share: f64) -> u32 {
    (of as f64 * share) as u32
}

#[cfg(test)]
mod tests {
    use super::super::answer::{Answer, Fate, Rate};
    use super::super::state::{Now, Ticket};
    use super::*;

    fn at(seconds: i64) -> Time {
        Time(1_800_000_000_000_000 + 1_000_000 * seconds)
    }

    fn go(state: &mut State, now: Time) -> Ticket {
        match state.verdict(now, &Policy::default()) {
            Verdict::Go(pass) => state.grant(now, pass),
            held => panic!("{held:?}"),
        }
    }

    fn tell(state: &mut State, now: Time, limit: u64, remaining: u64, reset: i64) {
        let ticket = go(state, now);
        let rate = Some(Rate { limit, remaining, reset: at(reset) });
        let answer = Answer { fate: Fate::LetIn, rate, extra: Duration::ZERO };
        state.answered(ticket, &answer, Now { sent: now, earliest: now, written: now });
    }

    #[test]
    fn one_request_asks_after_a_reset_whatever_was_left_before() {
        let mut state = State::default();
        tell(&mut state, at(0), 5, 4, 10);
        let lost = [1; 3].map(|second| go(&mut state, at(second)));
        lost.into_iter().for_each(|ticket| state.lost(ticket));
        let _asking = go(&mut state, at(11));
        let held = state.verdict(at(11), &Policy::default());
        assert_eq!(held, Verdict::Busy(Busy::Probe));
    }

    #[test]
    fn a_request_that_asks_for_one_quota_keeps_within_the_other() {
        let mut state = State::default();
        tell(&mut state, at(0), 3, 2, 10);
        tell(&mut state, at(1), 2, 1, 40_000);
        // Sent in the minute that is over when the next one comes, which would ask; but the day
        // has room for this one only.
        let _last = go(&mut state, at(9));
        let held = state.verdict(at(11), &Policy::default());
        assert_eq!(held, Verdict::Busy(Busy::Reserved));
    }
}
