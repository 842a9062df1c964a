//! The state of a key's limits as one process sees it: with its own monotonic clock.
//!
//! Still pure: events and local times in, verdicts out.

use std::time::Duration;

use super::answer::{Answer, Fate, Rate};
use super::policy::Policy;
use super::service_clock::ServiceClock;
use super::state::{Now, State, Ticket};
use super::time::{Local, Time, micros};
use super::verdict::{Block, Pass, Verdict};
use crate::error::Quota;

/// An answer's head, as far as it matters here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) date: Option<Time>,
    pub(crate) rate: Option<Rate>,
    pub(crate) retry_after: Option<Duration>,
}

#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) state: State,
    pub(super) clock: ServiceClock,
    /// The end of the last refusal's wait on the local clock, which needs no guess at the
    /// service's.
    pub(super) floor: Option<(Local, Block)>,
    /// By how much the service's clock was set in all, as far as this process knows.
    pub(super) set_by: i64,
}

impl Keeper {
    pub(crate) fn new(now: Local, wall: Time) -> Self {
        let clock = ServiceClock::guess(now, wall);
        Self { state: State::default(), clock, floor: None, set_by: 0 }
    }

    /// Judges whether a request may go.
    pub(crate) fn verdict(&self, now: Local, policy: &Policy) -> Verdict {
        match self.floor {
            Some((until, block)) if now < until => Verdict::Blocked(block),
            _ => self.state.verdict(self.clock.earliest(now), policy),
        }
    }

    /// Grants a request that the verdict has let pass.
    pub(crate) fn grant(&mut self, now: Local, pass: Pass) -> Ticket {
        self.state.grant(self.clock.earliest(now), pass)
    }

    /// Returns when a moment of the service's clock has surely come, and what was refused may go.
    pub(crate) fn surely(&self, at: Time) -> Local {
        let at = self.clock.surely(at);
        self.floor.map_or(at, |(floor, _)| at.max(floor))
    }

    /// Returns the service's time as it is believed to be, for messages.
    pub(crate) fn service_time(&self, now: Local) -> Time {
        self.clock.earliest(now)
    }

    /// Takes in the head of an answer. `extra` is added to the wait for a refusal that follows
    /// another.
    pub(crate) fn answered(
        &mut self,
        ticket: Ticket,
        sent: Local,
        now: Local,
        head: &Head,
        extra: Duration,
    ) -> Option<Block> {
        if let Some(date) = head.date {
            let (thought, guessed) = (self.clock.earliest(now), self.clock.bounds().is_none());
            if self.clock.observe(sent, now, date) {
                let by = self.clock.earliest(now).0.saturating_sub(thought.0);
                self.state.move_by(by);
                if !guessed {
                    self.set_by = self.set_by.saturating_add(by);
                    self.state.set_by = self.set_by;
                }
            }
        } else if let (Some(rate), Some(wait)) = (head.rate, head.retry_after) {
            self.clock.observe_refusal(now, rate.reset, micros(wait));
        }
        let fate = match (head.status, head.retry_after) {
            (429, wait) => Fate::Refused { wait },
            (503, Some(wait)) => Fate::Refused { wait: Some(wait) },
            (401, _) => Fate::Unrelated,
            (500.., _) if head.rate.is_none() => {
                self.state.lost(ticket);
                return None;
            }
            _ => Fate::LetIn,
        };
        let earliest = self.clock.earliest(now);
        let times = Now {
            sent: self.clock.earliest(sent),
            earliest,
            written: head.date.unwrap_or(earliest),
        };
        let answer = Answer { fate, rate: head.rate, extra };
        let block = self.state.answered(ticket, &answer, times)?;
        let floor = Local(now.0.saturating_add(micros(block.until.since(earliest))));
        if self.floor.is_none_or(|(known, _)| known < floor) {
            self.floor = Some((floor, block));
        }
        Some(block)
    }

    /// Takes in that the last refusal was a ban, which only the body of the answer says.
    pub(crate) fn banned(&mut self) {
        self.state.banned();
        if let Some((_, block)) = &mut self.floor {
            block.quota = Quota::Banned;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn head(status: u16, date: i64, retry_after: Option<u64>) -> Head {
        let rate = Rate { limit: 100, remaining: 90, reset: Time(160 * SECOND) };
        Head {
            status,
            date: Some(Time(date * SECOND)),
            rate: Some(rate),
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    #[test]
    fn a_better_idea_of_the_services_clock_never_shortens_a_wait() {
        let policy = Policy::default();
        let mut keeper = Keeper::new(Local(0), Time(0));
        let grant = |keeper: &mut Keeper, at| match keeper.verdict(at, &policy) {
            Verdict::Go(pass) => keeper.grant(at, pass),
            held => panic!("{held:?}"),
        };
        let first = grant(&mut keeper, Local(0));
        keeper.answered(first, Local(0), Local(100_000), &head(200, 101, None), Duration::ZERO);
        let refused = grant(&mut keeper, Local(900_000));
        let other = grant(&mut keeper, Local(900_000));
        // Ten seconds from the second that has begun. The other answer shows that the service's
        // clock is nearly a second further than the least that was known.
        let told = head(429, 101, Some(10));
        keeper.answered(refused, Local(900_000), Local(SECOND), &told, Duration::ZERO);
        let later = head(200, 102, None);
        keeper.answered(other, Local(900_000), Local(1_010_000), &later, Duration::ZERO);
        assert!(matches!(keeper.verdict(Local(10_990_000), &policy), Verdict::Blocked(_)));
        assert!(matches!(keeper.verdict(Local(11_000_000), &policy), Verdict::Go(_)));
    }
}
