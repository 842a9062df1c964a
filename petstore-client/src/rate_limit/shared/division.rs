//! How members divide the free requests: max-min fair shares, with a part reserved for members that
//! do not wait yet. Towards the end of a window, requests that nobody waits for are free for all.

use super::slot::{MemberId, Slot};

/// In this last part of a window, nothing is reserved for members that do not wait.
const UNRESERVED_PART: f64 = 0.05;

/// What one member asks for, with the slots of all members.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'s> {
    slots: &'s [Slot],
    me: MemberId,
    want: u64,
    prefetch: u64,
}

/// The open window of the minute's quota.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenWindow {
    limit: u64,
    /// The part of its time that is left, from 0 to 1.
    rest: f64,
}

impl OpenWindow {
    pub(crate) fn new(limit: u64, rest: f64) -> Self {
        Self { limit, rest }
    }
}

impl<'s> Claim<'s> {
    /// Creates the claim of a member. Its calls wait for `want` requests, and it would reserve
    /// `prefetch` more in advance.
    pub(crate) fn new(slots: &'s [Slot], me: MemberId, want: u64, prefetch: u64) -> Self {
        Self {
            slots,
            me,
            want,
            prefetch,
        }
    }

    /// Returns the member's part of the free requests. In a minute's window, a part is reserved for
    /// members that do not wait yet.
    pub(crate) fn fair_part(&self, free: u64, window: Option<OpenWindow>) -> u64 {
        let members = self.slots.len() as u64;
        let (equal_part, rest) = match window {
            Some(window) => (window.limit / members, window.rest),
            None => (0, 0.0),
        };
        let rest = ((rest - UNRESERVED_PART) / (1.0 - UNRESERVED_PART)).max(0.0);
        self.level(free, |slot| slot.demand(equal_part, rest))
    }

    /// Returns the member's part of the free requests if the others only get what they wait for.
    pub(crate) fn part_of_waiting(&self, free: u64) -> u64 {
        self.level(free, Slot::want)
    }

    /// Returns whether a member waits that comes before this one.
    pub(crate) fn is_behind(&self) -> bool {
        let Some(own) = self.slots.iter().find(|slot| slot.id() == self.me) else {
            return false;
        };
        let order = |slot: &Slot| (slot.weighted_use(), slot.id());
        self.slots
            .iter()
            .any(|slot| slot.want() > 0 && order(slot) < order(own))
    }

    /// Divides the free requests: max-min fair shares (water-filling), for each member up to its
    /// demand. Returns the part of this member.
    fn level(&self, free: u64, demand_of: impl Fn(&Slot) -> u64) -> u64 {
        let own = self.want + self.prefetch.min(free / (4 * self.slots.len() as u64));
        let demands: Vec<_> = self
            .slots
            .iter()
            .map(|slot| Demand {
                slot,
                requests: if slot.id() == self.me {
                    own
                } else {
                    demand_of(slot)
                },
            })
            .collect();
        if demands.iter().map(|demand| demand.requests).sum::<u64>() <= free {
            return own;
        }
        let level = highest_level(&demands, free);
        let Some(mine) = demands.iter().find(|demand| demand.slot.id() == self.me) else {
            return 0;
        };
        mine.to_level(level) + u64::from(self.gets_one_more(&demands, level, free))
    }

    /// Returns whether this member gets one of the requests that remain when all are filled to a
    /// level. These go to one member each, the lowest weighted use first.
    fn gets_one_more(&self, demands: &[Demand<'_>], level: u64, free: u64) -> bool {
        let mut in_order: Vec<_> = demands
            .iter()
            .filter(|demand| demand.exceeds(level))
            .map(|demand| (demand.slot.weighted_use(), demand.slot.id()))
            .collect();
        in_order.sort_unstable();
        let remainder = free - filled(demands, level);
        match in_order.iter().position(|(_, id)| *id == self.me) {
            Some(rank) => (rank as u64) < remainder,
            None => false,
        }
    }
}

/// How many requests a member wants, known or expected.
struct Demand<'s> {
    slot: &'s Slot,
    requests: u64,
}

impl Demand<'_> {
    /// Returns how many requests fill the member to a level.
    fn to_level(&self, level: u64) -> u64 {
        level.saturating_sub(self.slot.got()).min(self.requests)
    }

    /// Returns whether the member, filled to a level, would take one more.
    fn exceeds(&self, level: u64) -> bool {
        self.slot.got() <= level && self.slot.got() + self.requests > level
    }
}

/// Returns how many requests fill all members to a level.
fn filled(demands: &[Demand<'_>], level: u64) -> u64 {
    demands.iter().map(|demand| demand.to_level(level)).sum()
}

/// Returns the highest level to which the free requests fill all members.
fn highest_level(demands: &[Demand<'_>], free: u64) -> u64 {
    let highest = |demand: &Demand<'_>| demand.slot.got() + demand.requests;
    let (mut low, mut high) = (0, demands.iter().map(highest).max().unwrap_or(0));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if filled(demands, middle) <= free {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}
