//! Who waits at the gate, in which order. Granting and leaving take constant time.

use std::collections::VecDeque;
use std::task::Waker;

use crate::quota::{Block, Local, Policy, Ticket};

/// Which of two lines a call stands in: those in front are all served first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Interactive = 0,
    Background = 1,
}

/// A place in line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    slot: usize,
    /// Tells this place from a later one in the same slot.
    number: u64,
}

impl Place {
    pub(crate) fn number(self) -> u64 {
        self.number
    }
}

/// What has come of a wait.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Turn {
    Waiting,
    Granted(Ticket),
    /// It would be longer than the call may wait.
    TooLong(Block),
}

#[derive(Debug)]
pub(crate) struct Waiter {
    number: u64,
    lane: Lane,
    pub(crate) turn: Turn,
    pub(crate) waker: Waker,
    pub(crate) policy: Policy,
    /// The latest moment at which the call may still go.
    pub(crate) latest: Local,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    slots: Vec<Option<Waiter>>,
    free: Vec<usize>,
    /// Places in order; those whose waiter has left are skipped, and swept when they prevail.
    lanes: [VecDeque<Place>; 2],
    waiting: usize,
    numbers: u64,
}

impl Queue {
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns whether anyone stands in line before such a call.
    pub(crate) fn has_before(&mut self, number: Option<u64>, lane: Lane) -> bool {
        let Some(first) = self.first() else { return false };
        let lane_of_first = self.get(first).map_or(lane, |waiter| waiter.lane);
        match (lane_of_first, lane) {
            (Lane::Interactive, Lane::Background) => true,
            (Lane::Background, Lane::Interactive) => false,
            _ => number.is_none_or(|number| first.number < number),
        }
    }

    /// Puts a call in line. One that has stood in line before, and comes back with its number,
    /// goes ahead of all that came later.
    pub(crate) fn join(
        &mut self,
        number: Option<u64>,
        lane: Lane,
        waker: Waker,
        policy: Policy,
        latest: Local,
    ) -> Place {
        let number = number.unwrap_or_else(|| self.take_number());
        let waiter = Waiter { number, lane, turn: Turn::Waiting, waker, policy, latest };
        let slot = self.free.pop().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(waiter);
        self.waiting += 1;
        let place = Place { slot, number };
        let lane = &mut self.lanes[lane as usize];
        // Nearly always at the end; a retry's number is older than all that wait.
        let behind = lane.iter().rev().take_while(|other| other.number > number).count();
        lane.insert(lane.len() - behind, place);
        place
    }

    /// Returns a number that is later than all before.
    pub(crate) fn take_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(crate) fn get(&mut self, place: Place) -> Option<&mut Waiter> {
        let waiter = self.slots.get_mut(place.slot)?.as_mut()?;
        (waiter.number == place.number).then_some(waiter)
    }

    /// Returns the first in line.
    pub(crate) fn first(&mut self) -> Option<Place> {
        for lane in 0..self.lanes.len() {
            while let Some(&place) = self.lanes[lane].front() {
                if self.is_waiting(place) {
                    return Some(place);
                }
                self.lanes[lane].pop_front();
            }
        }
        None
    }

    /// Tells a waiter what has come of its wait, and returns how to wake it.
    pub(crate) fn settle(&mut self, place: Place, turn: Turn) -> Option<Waker> {
        let waiter = self.get(place)?;
        waiter.turn = turn;
        let waker = waiter.waker.clone();
        self.waiting -= 1;
        Some(waker)
    }

    /// Takes a waiter out, whatever its turn.
    pub(crate) fn leave(&mut self, place: Place) -> Option<Waiter> {
        self.get(place)?;
        let waiter = self.slots[place.slot].take()?;
        self.free.push(place.slot);
        if matches!(waiter.turn, Turn::Waiting) {
            self.waiting -= 1;
        }
        self.sweep(waiter.lane);
        Some(waiter)
    }

    /// Returns all that wait and may not wait until `until`.
    pub(crate) fn too_late_for(&self, until: Local) -> Vec<Place> {
        let places = self.lanes.iter().flatten().copied();
        let late = |place: &Place| {
            let waiter = self.slots[place.slot].as_ref();
            waiter.is_some_and(|w| {
                w.number == place.number && matches!(w.turn, Turn::Waiting) && w.latest < until
            })
        };
        places.filter(late).collect()
    }

    fn is_waiting(&self, place: Place) -> bool {
        let waiter = self.slots[place.slot].as_ref();
        waiter.is_some_and(|w| w.number == place.number && matches!(w.turn, Turn::Waiting))
    }

    /// Forgets the places of those who have left, once they are the most: constant on average.
    fn sweep(&mut self, lane: Lane) {
        if self.lanes[lane as usize].len() > 2 * self.waiting + 64 {
            let mut places = std::mem::take(&mut self.lanes[lane as usize]);
            places.retain(|place| self.is_waiting(*place));
            self.lanes[lane as usize] = places;
        }
    }
}
