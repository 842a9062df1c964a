//! The holders of a ledger: the processes (or clients with settings of their own) that use the key.

use serde::{Deserialize, Serialize};

use super::instant::{LedgerTime, SECOND};

/// A holder competes for this long after it has waited.
pub(crate) const COMPETES: i64 = 2 * SECOND;
/// A holder that was not seen for this long is dead.
pub(crate) const LEASE: i64 = 5 * SECOND;

/// What is known of a holder.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Holder {
    id: u64,
    in_flight: u64,
    has_probe: bool,
    /// The requests that it was granted since counting began, and what it began with.
    granted: u64,
    /// The calls that wait.
    waiting: u64,
    /// The most requests that it has lately had at once, in flight or waiting.
    tasks: u64,
    /// When it last waited, and when it last reported.
    asked: LedgerTime,
    seen: LedgerTime,
    /// The number of its outcomes that were recorded.
    outcomes: u64,
}

/// All holders of a ledger.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Holders(Vec<Holder>);

impl Holder {
    /// Takes over the figures of a report: the requests in flight, whether one of them is a probe, and the calls that
    /// wait.
    pub(crate) fn update(
        &mut self,
        in_flight: u64,
        has_probe: bool,
        waiting: u64,
        now: LedgerTime,
    ) {
        (self.in_flight, self.has_probe, self.waiting) = (in_flight, has_probe, waiting);
        self.seen = now;
        if waiting > 0 {
            self.tasks = in_flight.saturating_add(waiting);
            self.asked = now;
        }
    }

    /// Returns how many of its outcomes up to a number were recorded. All of them are now.
    pub(crate) fn record_outcomes(&mut self, last: u64) -> u64 {
        let recorded = self.outcomes;
        self.outcomes = recorded.max(last);
        recorded
    }

    /// Records that it was granted requests.
    pub(crate) fn grant(&mut self, requests: u64, is_probe: bool) {
        self.in_flight = self.in_flight.saturating_add(requests);
        self.waiting = self.waiting.saturating_sub(requests);
        self.granted = self.granted.saturating_add(requests);
        self.has_probe |= is_probe;
    }

    /// Records that it waits for the end of a block. Until then, it needs nothing of what is left.
    pub(crate) fn wait_for_block(&mut self) {
        self.tasks = 0;
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(crate) fn granted(&self) -> u64 {
        self.granted
    }

    pub(crate) fn waiting(&self) -> u64 {
        self.waiting
    }

    pub(crate) fn tasks(&self) -> u64 {
        self.tasks
    }

    fn competes(&self, now: LedgerTime) -> bool {
        self.tasks > 0 && now.since(self.asked) < COMPETES
    }
}

impl Holders {
    pub(crate) fn get(&self, id: u64) -> Option<&Holder> {
        self.0.iter().find(|holder| holder.id == id)
    }

    /// Returns a holder. A new one begins one request ahead of the least of those that compete: otherwise, a
    /// stream of short-lived holders would always go before one that stays.
    pub(crate) fn enter(&mut self, id: u64, now: LedgerTime) -> &mut Holder {
        if let Some(index) = self.0.iter().position(|holder| holder.id == id) {
            return &mut self.0[index];
        }
        let competing = self.0.iter().filter(|holder| holder.competes(now));
        let least = competing.map(|holder| holder.granted).min();
        let granted = least.map_or(0, |least| least.saturating_add(1));
        self.0.push(Holder {
            id,
            granted,
            ..Holder::default()
        });
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.0.retain(|holder| holder.id != id);
    }

    /// Removes dead holders. Returns how many requests they had in flight. Holder `id` is alive.
    pub(crate) fn bury_dead(&mut self, id: u64, now: LedgerTime) -> u64 {
        let mut lost: u64 = 0;
        self.0.retain(|holder| {
            let is_dead = holder.id != id && now.since(holder.seen) > LEASE;
            if is_dead {
                lost = lost.saturating_add(holder.in_flight);
            }
            !is_dead
        });
        lost
    }

    /// Records that all holders are alive.
    pub(crate) fn keep_alive(&mut self, now: LedgerTime) {
        for holder in &mut self.0 {
            holder.seen = now;
        }
    }

    /// Resets what holders were granted. `kept` maps each lead over the lowest to what remains.
    pub(crate) fn restart_counts(&mut self, kept: impl Fn(u64) -> u64) {
        let least = self.0.iter().map(|holder| holder.granted).min();
        let least = least.unwrap_or(0);
        for holder in &mut self.0 {
            holder.granted = kept(holder.granted.saturating_sub(least));
        }
    }

    pub(crate) fn in_flight(&self) -> u64 {
        let in_flight = self.0.iter().map(|holder| holder.in_flight);
        in_flight.fold(0, u64::saturating_add)
    }

    pub(crate) fn have_probe(&self) -> bool {
        self.0.iter().any(|holder| holder.has_probe)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns all but one of those that compete.
    pub(crate) fn rivals(&self, id: u64, now: LedgerTime) -> impl Iterator<Item = &Holder> {
        let competes = move |holder: &&Holder| holder.id != id && holder.competes(now);
        self.0.iter().filter(competes)
    }

    /// Returns whether another holder than `id` waits or has requests in flight.
    pub(crate) fn has_active_other(&self, id: u64, now: LedgerTime) -> bool {
        let is_active = |holder: &Holder| holder.in_flight > 0 || holder.competes(now);
        self.0
            .iter()
            .any(|holder| holder.id != id && is_active(holder))
    }
}
