//! The members that share a key: what each has and wants, pure.

use std::hash::{BuildHasher as _, RandomState};

use serde::{Deserialize, Serialize};

use super::clock::LocalTime;

/// A record holds so many members.
pub(super) const MAX_MEMBERS: usize = 64;
/// What one request adds to a turn, which loses a quarter with each window.
const TURN_UNIT: u64 = 1_024;

/// A process that shares a key's limits with others through a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MemberId(pub(crate) u64);

impl MemberId {
    pub(crate) fn random() -> Self {
        Self(RandomState::new().hash_one("member"))
    }

    /// Returns the number, which no other member is likely to have.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

/// One member's part of the ledger.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Slot {
    pub(super) id: MemberId,
    /// Requests drawn ahead, in flight, or answered and not told yet.
    pub(super) reserved: u64,
    /// Calls that wait for a reservation.
    pub(super) want: u64,
    /// What it got in this window, and in the one before.
    pub(super) got: u64,
    pub(super) previous: u64,
    /// Whether calls waited at the end of the window before.
    hungry: bool,
    /// What it got in all windows, the older the less: the smallest goes first.
    pub(super) turn: u64,
    /// When it is taken to be dead.
    pub(super) until: LocalTime,
}

/// All members, by the order in which they came.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Slots(Vec<Slot>);

impl Slots {
    /// Returns a member's slot; a new one comes last.
    pub(super) fn slot(&mut self, id: MemberId) -> &mut Slot {
        let place = self.0.iter().position(|slot| slot.id == id).unwrap_or_else(|| {
            let turn = self.0.iter().map(|slot| slot.turn).max().unwrap_or(0);
            self.0.push(Slot {
                id,
                reserved: 0,
                want: 0,
                got: 0,
                previous: 0,
                // What it needs is not known yet.
                hungry: true,
                turn,
                until: LocalTime(i64::MAX),
            });
            self.0.len() - 1
        });
        &mut self.0[place]
    }

    pub(super) fn get(&self, id: MemberId) -> Option<&Slot> {
        self.0.iter().find(|slot| slot.id == id)
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Slot> {
        self.0.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Slot> {
        self.0.iter_mut()
    }

    /// Returns how many members are alive.
    pub(super) fn alive(&self, now: LocalTime) -> usize {
        self.0.iter().filter(|slot| now < slot.until).count()
    }

    /// Returns whether there is room for a member; the dead make room.
    pub(super) fn admits(&mut self, id: MemberId, now: LocalTime) -> bool {
        if self.0.len() >= MAX_MEMBERS && self.get(id).is_none() {
            self.0.retain(|slot| now < slot.until);
        }
        self.0.len() < MAX_MEMBERS || self.get(id).is_some()
    }

    /// Begins a new window for all members.
    pub(super) fn turn(&mut self) {
        for slot in &mut self.0 {
            (slot.previous, slot.hungry) = (slot.got, slot.want > 0);
            slot.turn = slot.turn / 4 * 3 + slot.got.saturating_mul(TURN_UNIT);
            slot.got = 0;
        }
        self.0.retain(|slot| slot.reserved > 0 || slot.hungry || slot.previous > 0);
    }
}

impl Slot {
    /// Returns what another member is expected to ask for; `rest` is what is left of the window.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a part of a limit: rounding down is meant, and `as` saturates"
    )]
    pub(super) fn demand(&self, share: u64, rest: f64) -> u64 {
        let expected = match (self.want > 0 || self.hungry, self.previous) {
            (true, previous) => (2 * previous + 1).max(share),
            (false, 0) => 0,
            (false, previous) => 2 * previous + 1,
        };
        let missing = expected.saturating_sub(self.got);
        if rest == 0.0 {
            self.want
        } else if self.want > 0 {
            self.want.max(missing)
        } else {
            missing.min((expected as f64 * rest + 0.9) as u64)
        }
    }
}
