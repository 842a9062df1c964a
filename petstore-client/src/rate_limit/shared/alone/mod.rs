//! What a member does while its store is unreachable. It continues, at a pace that leaves room for
//! the members that it cannot see.

mod draws;
mod observation;
mod pace;

use std::time::Duration;

use self::draws::Draws;
use self::observation::Observation;
use self::pace::{Advice, Pace};
use super::slot::MemberId;
use crate::rate_limit::quota::clock::LocalTime;
use crate::rate_limit::quota::decision::{Decision, Processes};
use crate::rate_limit::quota::ledger::Ledger;
use crate::rate_limit::quota::local::Local;
use crate::rate_limit::quota::policy::Policy;
use crate::rate_limit::quota::reading::{Block, RequestOutcome, ResponseHead};
use crate::rate_limit::quota::window::Window;
use crate::rate_limit::view::BlockReason;

/// A longer wait for unseen members counts as a block, so that a call that may not wait so long
/// fails. The pauses after a start and after a reset are shorter.
const MAX_PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Default)]
pub(crate) struct Alone {
    pace: Pace,
    draws: Draws,
}

impl Alone {
    pub(crate) fn new(id: MemberId) -> Self {
        Self {
            pace: Pace::starting(),
            draws: Draws::seeded(id.get()),
        }
    }

    /// Begins to count the other members: this one has never read the record.
    pub(crate) fn start(&mut self) {
        self.pace = Pace::starting();
    }

    /// Continues from the last record, which had `members` members.
    pub(crate) fn lose_store(&mut self, local: &Local, members: u64, now: LocalTime) {
        let last = tightest(local.ledger()).map(|window| {
            // The record counts the requests of all members as own ones.
            let own = window.own() / members.max(1);
            let others = window.own() - own + window.others(0);
            observation(local, window, now, own, others)
        });
        self.pace = Pace::after_loss(members, last, now, self.draws.draw());
    }

    /// Decides whether a request may be sent.
    pub(crate) fn decide(&self, local: &Local, now: LocalTime, policy: &Policy) -> Decision {
        // A client that may use only a part of the quota already leaves room for the others.
        if !policy.has_whole_quota() {
            return local.decide(now, policy);
        }
        let kept = self.pace.kept(now);
        if !self.pace.is_needed() {
            let in_flight = u64::MAX;
            let decision = local.decide_among(Processes::Unseen { in_flight, kept }, now, policy);
            return self.until_reserve_ends(decision, now);
        }
        let advice = self.pace.advice(now);
        let in_flight = match advice {
            Advice::InFlight(most) => most,
            Advice::Wait(_) | Advice::WaitForReset(_) => 1,
        };
        let decision = local.decide_among(Processes::Unseen { in_flight, kept }, now, policy);
        if !policy.rate_limiting || !matches!(decision, Decision::Send { .. }) {
            return decision;
        }
        match advice {
            Advice::InFlight(_) => decision,
            Advice::Wait(until) if until.since(now) <= MAX_PAUSE => Decision::Pause(until),
            Advice::Wait(until) | Advice::WaitForReset(until) => {
                wait_for_others(local.ledger(), now, until)
            }
        }
    }

    /// Shortens a wait for the reset: it ends when the requests that are kept for late members
    /// become free.
    fn until_reserve_ends(&self, decision: Decision, now: LocalTime) -> Decision {
        match (decision, self.pace.reserves_until(now)) {
            (Decision::WaitUntil(block), Some(until)) => Decision::WaitUntil(Block {
                until: block.until.min(until),
                ..block
            }),
            (decision, _) => decision,
        }
    }

    /// Corrects the pace by what a response has shown.
    pub(crate) fn observe(&mut self, local: &Local, outcome: &RequestOutcome) {
        let is_measured = |head: &ResponseHead| head.is_after_lookup() && head.reading.is_some();
        let Some(window) = tightest(local.ledger()) else {
            return;
        };
        if !outcome.head().is_some_and(is_measured) {
            return;
        }
        let outstanding = local.in_flight() + local.ledger().lost();
        let others = window.others(outstanding);
        let seen = Observation {
            sent: outcome.sent(),
            in_flight: local.in_flight() + u64::from(outcome.requests()),
            ..observation(local, window, outcome.ended(), window.own(), others)
        };
        self.pace.observe(&seen, self.draws.draw());
    }

    /// Moves all instants to a clock that is `by` microseconds ahead.
    pub(crate) fn shift(&mut self, by: i64) {
        self.pace.shift(by);
    }
}

/// Returns the decision to wait until an instant, but at most until the reset if that is still to
/// come.
fn wait_for_others(ledger: &Ledger, now: LocalTime, until: LocalTime) -> Decision {
    let Some(window) = tightest(ledger) else {
        return Decision::Pause(now.plus(MAX_PAUSE));
    };
    let opens_at = opens_at(ledger, window, now);
    // A wait with its end in the past would be repeated at once, for ever.
    let (until, named) = if now < opens_at {
        (until.min(opens_at), window.reset())
    } else {
        (until, ledger.service_time(until))
    };
    Decision::WaitUntil(Block {
        until,
        named,
        reason: BlockReason::Quota(window.quota()),
    })
}

/// Returns the window that leaves the fewest requests.
fn tightest(ledger: &Ledger) -> Option<&Window> {
    ledger
        .windows()
        .iter()
        .min_by_key(|window| window.remaining())
}

/// Returns when a request may be sent after a window's reset.
fn opens_at(ledger: &Ledger, window: &Window, now: LocalTime) -> LocalTime {
    let margin = ledger.reset_margin(ledger.service_time(now));
    ledger.local_time(window.reset().plus(margin))
}

fn observation(
    local: &Local,
    window: &Window,
    at: LocalTime,
    own: u64,
    others: u64,
) -> Observation {
    let ledger = local.ledger();
    Observation {
        sent: at,
        at,
        quota: window.quota(),
        limit: window.limit(),
        remaining: window.remaining(),
        opened_at: window.opened_at(),
        reset_at: opens_at(ledger, window, at),
        own,
        others,
        in_flight: local.in_flight(),
        latency: ledger.latency(),
    }
}
