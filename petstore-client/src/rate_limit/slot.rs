//! A member's part of the ledger.

use std::hash::{BuildHasher as _, RandomState};

use serde::{Deserialize, Serialize};

use super::clock::LocalTime;
use super::outstanding::MAX_COUNT;

/// What one request adds to a turn, which loses a quarter with each window.
const TURN_UNIT: u64 = 1_024;

/// A process that shares a key's limits with others through a store.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
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
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
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

impl Slot {
    /// Returns the slot of a member that comes after those with this turn.
    pub(super) fn new(id: MemberId, turn: u64) -> Self {
        // What it needs is not known yet.
        Self { id, turn, until: LocalTime(i64::MAX), hungry: true, ..Self::default() }
    }

    pub(super) fn is_plausible(&self) -> bool {
        let counts = [self.reserved, self.want, self.got, self.previous, self.turn / TURN_UNIT];
        counts.iter().all(|count| *count < MAX_COUNT)
    }

    /// Begins a new window. Returns whether the slot is still needed.
    pub(super) fn turn(&mut self) -> bool {
        (self.previous, self.hungry) = (self.got, self.want > 0);
        self.turn = self.turn / 4 * 3 + self.got.saturating_mul(TURN_UNIT);
        self.got = 0;
        self.reserved > 0 || self.hungry || self.previous > 0
    }

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
