//! The queue of waiting calls: first come, first served; a retry keeps its place.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use super::quota::clock::LocalTime;
use super::quota::decision::Decision;
use super::quota::outstanding::Reservation;
use super::quota::policy::Policy;
use super::shared::engine::Engine;
use super::view::Priority;

/// The order of calls: first by priority, then by arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(pub(super) Priority, pub(super) u64);

/// The waiting calls, with one line for each policy. So the settings of one client do not delay the
/// calls of another.
#[derive(Debug, Default)]
pub(super) struct Queue(Vec<Line>);

#[derive(Debug)]
struct Line {
    policy: Policy,
    calls: BTreeMap<Place, oneshot::Sender<Reservation>>,
}

impl Queue {
    /// Adds a call. Its grant arrives in the returned channel.
    pub(super) fn join(&mut self, policy: &Policy, place: Place) -> oneshot::Receiver<Reservation> {
        let (sender, grant) = oneshot::channel();
        match self.0.iter_mut().find(|line| line.policy == *policy) {
            Some(line) => drop(line.calls.insert(place, sender)),
            None => self.0.push(Line {
                policy: *policy,
                calls: BTreeMap::from([(place, sender)]),
            }),
        }
        grant
    }

    /// Removes a call. Returns whether it was still in the queue.
    pub(super) fn leave(&mut self, policy: &Policy, place: Place) -> bool {
        let line = self.0.iter_mut().find(|line| line.policy == *policy);
        line.is_some_and(|line| line.calls.remove(&place).is_some())
    }

    /// Returns whether a call is in the queue.
    pub(super) fn contains(&self, policy: &Policy, place: Place) -> bool {
        let line = self.line(policy);
        line.is_some_and(|line| line.calls.contains_key(&place))
    }

    /// Returns whether no call of its line comes before a place.
    pub(super) fn is_first(&self, policy: &Policy, place: Place) -> bool {
        let line = self.line(policy);
        line.is_none_or(|line| line.calls.range(..place).next().is_none())
    }

    fn line(&self, policy: &Policy) -> Option<&Line> {
        self.0.iter().find(|line| line.policy == *policy)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn waiting(&self) -> usize {
        self.0.iter().map(|line| line.calls.len()).sum()
    }

    /// Returns how many waiting calls want to be sent now. A client that limits its requests in
    /// flight wants no more than its limit allows.
    pub(super) fn wanted(&self, engine: &Engine) -> u64 {
        self.0.iter().map(|line| line.wanted(engine)).sum()
    }

    /// Returns the policy of the call with the earliest place, among those that quotas limit.
    #[cfg(feature = "shared-limits")]
    pub(super) fn first_policy(&self) -> Option<Policy> {
        let limited = self.0.iter().filter(|line| line.policy.rate_limiting);
        let places = limited.filter_map(|line| Some((line.calls.keys().next()?, line.policy)));
        let first = places.min_by_key(|(place, _)| *place);
        first.map(|(_, policy)| policy)
    }

    /// Grants the requests that may be sent, the earliest place first. Returns what the first line
    /// then waits for, if anybody still waits.
    pub(super) fn grant(&mut self, engine: &mut Engine, now: LocalTime) -> Option<Decision> {
        loop {
            self.0.retain(|line| !line.calls.is_empty());
            let may_go = self.0.iter_mut().filter_map(|line| {
                let Decision::Send { probe } = engine.decide(now, &line.policy) else {
                    return None;
                };
                let place = *line.calls.keys().next()?;
                Some((place, line, probe))
            });
            let Some((_, line, probe)) = may_go.min_by_key(|(place, ..)| *place) else {
                break;
            };
            let Some((_, call)) = line.calls.pop_first() else {
                break;
            };
            let reservation = engine.reserve(now, probe, &line.policy);
            if call.send(reservation).is_err() {
                engine.release(reservation);
            }
        }
        let first = self.0.first()?;
        Some(engine.decide(now, &first.policy))
    }
}

impl Line {
    fn wanted(&self, engine: &Engine) -> u64 {
        let waiting = self.calls.len() as u64;
        match self.policy.max_in_flight {
            Some(limit) => {
                let in_flight = engine.local().in_flight_of(&self.policy);
                waiting.min(limit.most().saturating_sub(in_flight))
            }
            None => waiting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::quota::policy::MaxInFlight;
    use super::super::tests::rules::{at, service, with_window};
    use super::*;

    #[test]
    fn grants_for_a_call_that_has_gone_are_released() {
        let (mut queue, mut engine) = (Queue::default(), Engine::new(at(0), service(0)));
        drop(queue.join(&Policy::default(), Place(Priority::default(), 1)));
        assert_eq!((queue.waiting(), queue.is_empty()), (1, false));
        assert_eq!(queue.grant(&mut engine, at(0)), None);
        assert_eq!((queue.waiting(), queue.is_empty()), (0, true));
        assert_eq!(engine.local().in_flight(), 0);
    }

    #[cfg(feature = "shared-limits")]
    #[test]
    fn the_policy_of_the_queue_is_that_of_its_first_limited_call() {
        let mut queue = Queue::default();
        assert_eq!(queue.first_policy(), None);
        let with = |rate_limiting, quota_part| Policy {
            rate_limiting,
            quota_part,
            ..Policy::default()
        };
        let mut calls = Vec::new();
        for (number, policy) in [
            (1, with(false, 1.0)),
            (3, with(true, 0.5)),
            (2, with(true, 0.2)),
        ] {
            calls.push(queue.join(&policy, Place(Priority::default(), number)));
        }
        assert_eq!(queue.first_policy(), Some(with(true, 0.2)));
        queue.leave(&with(true, 0.2), Place(Priority::default(), 2));
        assert_eq!(queue.first_policy(), Some(with(true, 0.5)));
    }

    #[test]
    fn a_limit_on_requests_in_flight_does_not_hold_up_others() {
        let mut queue = Queue::default();
        let mut engine = Engine::Local(with_window(1_000, 999));
        let one_of = || Policy {
            max_in_flight: Some(MaxInFlight::new(1)),
            ..Policy::default()
        };
        let (first, second) = (one_of(), one_of());
        let mut calls = Vec::new();
        for number in 0..3 {
            for policy in [&first, &second, &Policy::default()] {
                let place = Place(Priority::default(), number);
                calls.push(queue.join(policy, place));
            }
        }
        assert_eq!(queue.wanted(&engine), 1 + 1 + 3);
        let wait = queue.grant(&mut engine, at(1));
        assert!(matches!(wait, Some(Decision::WaitForResponse(_))));
        let in_flight = [first, second].map(|policy| engine.local().in_flight_of(&policy));
        assert_eq!((in_flight, engine.local().in_flight()), ([1, 1], 5));
        assert_eq!((queue.wanted(&engine), queue.waiting()), (0, 4));
        engine.release(calls[0].try_recv().unwrap());
        assert_eq!(queue.wanted(&engine), 1);
    }
}
