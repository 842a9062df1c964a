//! The calls that wait, in the order in which they go: first by rank, then by arrival.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use crate::rate_limit::view::Priority;

/// The place of a call. A retry keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    rank: Rank,
    number: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// A call that a person asked for, even if nothing is left.
    Forced,
    Normal,
    Low,
}

/// The waiting calls. A grant is the number of a permit.
#[derive(Debug, Default)]
pub(super) struct Queue(BTreeMap<Place, oneshot::Sender<u64>>);

impl Place {
    pub(super) fn new(rank: Rank, number: u64) -> Self {
        Self { rank, number }
    }

    pub(super) fn number(self) -> u64 {
        self.number
    }

    /// Returns whether the call is to be sent even if nothing is left.
    pub(super) fn is_forced(self) -> bool {
        self.rank == Rank::Forced
    }
}

impl From<Priority> for Rank {
    fn from(priority: Priority) -> Self {
        match priority {
            Priority::Normal => Self::Normal,
            Priority::Low => Self::Low,
        }
    }
}

impl Queue {
    /// Adds a call. Its grant arrives in the returned channel.
    pub(super) fn join(&mut self, place: Place) -> oneshot::Receiver<u64> {
        let (sender, grant) = oneshot::channel();
        self.0.insert(place, sender);
        grant
    }

    /// Removes a call, if it still waits.
    pub(super) fn leave(&mut self, place: Place) {
        self.0.remove(&place);
    }

    /// Gives a permit to the first call. Returns whether a call has got it.
    pub(super) fn grant(&mut self, permit: u64) -> bool {
        while let Some((_, call)) = self.0.pop_first() {
            if call.send(permit).is_ok() {
                return true;
            }
        }
        false
    }

    pub(super) fn is_first(&self, place: Place) -> bool {
        self.0.keys().next().is_none_or(|first| place <= *first)
    }

    /// Returns whether the first call is to be sent even if nothing is left.
    pub(super) fn is_forced(&self) -> bool {
        let first = self.0.keys().next();
        first.is_some_and(|place| place.is_forced())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
