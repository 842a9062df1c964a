//! The queue of waiting calls: first come, first served; a retry keeps its place.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use super::quota::clock::LocalTime;
use super::quota::decision::{Decision, Policy};
use super::quota::outstanding::Reservation;
use super::shared::member::Member;
use super::view::Priority;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(pub(super) Priority, pub(super) u64);

type Line = BTreeMap<Place, oneshot::Sender<Reservation>>;

/// A line for each policy, so that one client's settings do not hold up another's calls.
#[derive(Debug, Default)]
pub(super) struct Queue(Vec<(Policy, Line)>);

impl Queue {
    pub(super) fn join(&mut self, policy: &Policy, place: Place) -> oneshot::Receiver<Reservation> {
        let (sender, grant) = oneshot::channel();
        match self.0.iter_mut().find(|(held, _)| held == policy) {
            Some((_, line)) => drop(line.insert(place, sender)),
            None => self.0.push((*policy, BTreeMap::from([(place, sender)]))),
        }
        grant
    }

    /// Returns whether the place was in the queue.
    pub(super) fn leave(&mut self, policy: &Policy, place: Place) -> bool {
        let line = self.0.iter_mut().find(|(held, _)| held == policy);
        line.is_some_and(|(_, line)| line.remove(&place).is_some())
    }

    /// Returns whether a place is in line, and whether it is the first.
    pub(super) fn find(&self, policy: &Policy, place: Place) -> (bool, bool) {
        match self.0.iter().find(|(held, _)| held == policy) {
            Some((_, line)) => (
                line.contains_key(&place),
                line.range(..place).next().is_none(),
            ),
            None => (false, true),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn waiting(&self) -> usize {
        self.0.iter().map(|(_, line)| line.len()).sum()
    }

    /// Grants the requests that may be sent. Returns what the first queue waits for.
    pub(super) fn grant(&mut self, member: &mut Member, now: LocalTime) -> Option<Decision> {
        loop {
            self.0.retain(|(_, line)| !line.is_empty());
            let may_go =
                self.0
                    .iter_mut()
                    .filter_map(|(policy, line)| match member.decide(now, policy) {
                        Decision::Send { probe } => Some((line.first_entry()?, probe)),
                        _ => None,
                    });
            let Some((first, probe)) = may_go.min_by_key(|(first, _)| *first.key()) else {
                break;
            };
            let reservation = member.reserve(now, probe);
            if first.remove().send(reservation).is_err() {
                member.release(reservation);
            }
        }
        self.0.first().map(|(policy, _)| member.decide(now, policy))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::rules::{at, new};
    use super::*;

    #[test]
    fn what_a_call_that_has_gone_was_to_get_is_released_and_its_line_is_removed() {
        let (mut queue, mut member) = (Queue::default(), new());
        drop(queue.join(&Policy::default(), Place(Priority::default(), 1)));
        assert_eq!((queue.waiting(), queue.is_empty()), (1, false));
        assert_eq!(queue.grant(&mut member, at(0)), None);
        assert_eq!((queue.waiting(), queue.is_empty()), (0, true));
        assert_eq!(member.in_flight(), 0);
    }
}
