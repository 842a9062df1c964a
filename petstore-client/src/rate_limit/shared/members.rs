//! The members that share a record: what each one has reserved, and whose probe is in flight.

use serde::{Deserialize, Serialize};

use super::slot::{MEMBER_LEASE, MemberId, Slot};
use crate::rate_limit::quota::clock::LocalTime;
use crate::rate_limit::quota::decision::Processes;
use crate::rate_limit::quota::outstanding::MAX_COUNT;

/// The maximum number of members in a record. With a million requests a minute, this many still fit
/// into it.
pub(crate) const MAX_MEMBERS: usize = 100;
/// A record that is moved away and back may have been updated this many times by members that did
/// not see the restored one.
const MAX_LATE_UPDATES: u64 = 1_000;

/// A probe: the only request in flight while the quota is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Probe {
    member: MemberId,
    granted: LocalTime,
    until: LocalTime,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Members {
    /// Oldest first.
    slots: Vec<Slot>,
    probe: Option<Probe>,
    /// How many times the record was updated.
    updates: u64,
}

impl Members {
    /// Returns whether a member can have written these values. A store may return anything.
    pub(crate) fn is_plausible(&self) -> bool {
        self.slots.len() <= MAX_MEMBERS
            && self.slots.iter().all(Slot::is_plausible)
            && self.updates < MAX_COUNT
    }

    /// Returns how many times the record was updated. A member that has seen more updates knows a
    /// newer record than this one.
    pub(crate) fn updates(&self) -> u64 {
        self.updates
    }

    pub(crate) fn count_update(&mut self) {
        self.updates = (self.updates + 1).min(MAX_COUNT - 1);
    }

    /// Merges the members of another record. Each member's entry comes from the record to which the
    /// member reported last.
    pub(crate) fn merge(&mut self, other: Self) {
        for slot in other.slots {
            let place = self.slots.iter().position(|known| known.id() == slot.id());
            match place {
                Some(place) if self.slots[place].end() < slot.end() => self.slots[place] = slot,
                None if self.slots.len() < MAX_MEMBERS => self.slots.push(slot),
                Some(_) | None => {}
            }
        }
        if self.probe_granted() < other.probe.map(|probe| probe.granted) {
            self.probe = other.probe;
        }
        self.updates = self.updates.max(other.updates);
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Returns a member's slot. Adds one for a new member.
    pub(crate) fn slot(&mut self, id: MemberId) -> &mut Slot {
        let known = self.slots.iter().position(|slot| slot.id() == id);
        let place = known.unwrap_or_else(|| {
            let last = self.slots.iter().map(Slot::weighted_use).max();
            self.slots.push(Slot::new(id, last.unwrap_or(0)));
            self.slots.len() - 1
        });
        &mut self.slots[place]
    }

    /// Makes the record newer than a lost one, even if that is moved back and updated a few times.
    pub(crate) fn replace_lost(&mut self) {
        self.updates = (self.updates + MAX_LATE_UPDATES).min(MAX_COUNT - 1);
    }

    /// Records that the record was restored from a member's copy. The others must report before
    /// more is granted.
    pub(crate) fn await_reports(&mut self, now: LocalTime) {
        for slot in &mut self.slots {
            slot.await_report(now.plus(MEMBER_LEASE));
        }
    }

    /// Returns whether the member must still report what the restored record may lack.
    pub(crate) fn awaits_report_of(&self, id: MemberId) -> bool {
        let own = self.slots.iter().find(|slot| slot.id() == id);
        own.is_some_and(Slot::awaits_report)
    }

    /// Returns whether another member must still report what the restored record may lack.
    pub(crate) fn awaits_reports_beside(&self, me: MemberId, now: LocalTime) -> bool {
        self.slots
            .iter()
            .any(|slot| slot.id() != me && slot.awaits_report() && slot.is_alive(now))
    }

    /// Returns how many members are alive.
    pub(crate) fn alive(&self, now: LocalTime) -> usize {
        self.slots.iter().filter(|slot| slot.is_alive(now)).count()
    }

    /// Returns how many processes share the quota, for a decision.
    pub(crate) fn processes(&self, now: LocalTime) -> Processes {
        match self.alive(now) {
            0 | 1 => Processes::One,
            members => Processes::Several(members),
        }
    }

    /// Returns how many requests all members have reserved or in flight.
    pub(crate) fn reserved(&self) -> u64 {
        self.slots.iter().map(Slot::reserved).sum()
    }

    /// Returns whether there is room for a member. If there is none, first removes dead members.
    pub(crate) fn admits(&mut self, id: MemberId, now: LocalTime) -> bool {
        let is_known = self.slots.iter().any(|slot| slot.id() == id);
        if self.slots.len() >= MAX_MEMBERS && !is_known {
            self.slots.retain(|slot| slot.is_alive(now));
        }
        self.slots.len() < MAX_MEMBERS || is_known
    }

    /// Removes dead members, and ends their probes. Returns how many requests were reserved for
    /// them and for silent members.
    pub(crate) fn expire(&mut self, now: LocalTime, is_alive: impl Fn(MemberId) -> bool) -> u64 {
        let (mut lost, probe) = (0, &mut self.probe);
        self.slots.retain_mut(|slot| {
            let runs = is_alive(slot.id());
            if runs && slot.is_alive(now) {
                return true;
            }
            lost += slot.silence(now);
            *probe = probe.filter(|probe| probe.member != slot.id());
            // A silent member may still run, so its use is remembered.
            runs
        });
        lost
    }

    /// Removes a member.
    pub(crate) fn remove(&mut self, id: MemberId) {
        self.slots.retain(|slot| slot.id() != id);
    }

    /// Starts a new window, and drops the slots that are no longer needed.
    pub(crate) fn open_window(&mut self) {
        self.slots.retain_mut(Slot::open_window);
    }

    /// Returns whether a member's probe is in flight.
    pub(crate) fn is_probing(&self, now: LocalTime) -> bool {
        self.probe.is_some_and(|probe| now < probe.until)
    }

    /// Returns when the probe was granted.
    pub(crate) fn probe_granted(&self) -> Option<LocalTime> {
        self.probe.map(|probe| probe.granted)
    }

    /// Records a member's probe.
    pub(crate) fn set_probe(&mut self, member: MemberId, granted: LocalTime, until: LocalTime) {
        self.probe = Some(Probe {
            member,
            granted,
            until,
        });
    }

    /// Moves the end of the probe, if it is this member's.
    pub(crate) fn extend_probe(&mut self, member: MemberId, end: LocalTime) {
        if let Some(probe) = &mut self.probe
            && probe.member == member
        {
            probe.until = end;
        }
    }

    /// Ends the probe, if it is this member's.
    pub(crate) fn end_probe(&mut self, member: MemberId) {
        self.probe = self.probe.filter(|probe| probe.member != member);
    }

    /// Returns the member whose probe is in flight, and its end.
    #[cfg(test)]
    pub(crate) fn probe(&self) -> Option<(MemberId, LocalTime)> {
        self.probe.map(|probe| (probe.member, probe.until))
    }
}
