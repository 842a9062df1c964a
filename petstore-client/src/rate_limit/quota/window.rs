//! One window of a quota, as the service counts it.

use serde::{Deserialize, Serialize};

use super::instant::{LedgerTime, SECOND, ServiceTime};
use super::reading::Reading;
use crate::rate_limit::view::Quota;

/// Resets this close together belong to the same window, because servers round them.
const SAME_WINDOW: i64 = 2 * SECOND;
/// If the reset moves by less than this, the window is a sliding one.
const MIN_FIXED_WINDOW: i64 = 50 * SECOND;
/// The share of further holders is not limited, so that a ledger stays small.
const MAX_SHARERS: usize = 64;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Window {
    quota: Quota,
    limit: u64,
    /// The lowest reading. Within a window, the service's figure only falls.
    remaining: u64,
    reset: ServiceTime,
    /// The reset when the window was opened. In a sliding window, the reset moves.
    anchor: ServiceTime,
    opened_at: LedgerTime,
    /// How many requests were left before the first own one.
    start: u64,
    /// The own requests that the service has counted in this window.
    own: u64,
    /// Whether only the configured plan says that there is such a quota.
    is_planned: bool,
    /// Of a planned window: the own requests at its very end, which may count in the next one.
    late: u64,
    /// What holders that may only use a share have used of it.
    uses: Vec<Use>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Use {
    holder: u64,
    requests: u64,
}

/// When a response came, and what it may include.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Receipt {
    /// When the request was sent, and when its response came.
    pub(crate) sent: LedgerTime,
    pub(crate) at: LedgerTime,
    /// The earliest time that the service's clock may have shown then.
    pub(crate) service_now: ServiceTime,
    /// How many requests the service has counted: none if it refused this one.
    pub(crate) counted: u64,
    /// The holder that sent it, if it may only use a share of each window.
    pub(crate) sharer: Option<u64>,
}

impl Window {
    /// Opens a window of a quota that was not known. What is used of it besides this response's request counts as
    /// used by others.
    pub(crate) fn open(reading: &Reading, receipt: &Receipt) -> Self {
        let mut window = Self {
            quota: reading.quota(receipt.service_now),
            limit: reading.limit,
            remaining: reading.remaining,
            reset: reading.reset,
            anchor: reading.reset,
            opened_at: receipt.at,
            start: reading.limit,
            own: 0,
            is_planned: false,
            late: 0,
            uses: Vec::new(),
        };
        window.count_answered(receipt);
        window
    }

    /// Opens a window of a planned quota, which may include late requests of the one before.
    pub(crate) fn planned(
        quota: Quota,
        limit: u64,
        reset: ServiceTime,
        at: LedgerTime,
        late: u64,
    ) -> Self {
        let remaining = limit.saturating_sub(late);
        Self {
            quota,
            limit,
            remaining,
            reset,
            anchor: reset,
            opened_at: at,
            start: remaining,
            own: 0,
            is_planned: true,
            late: 0,
            uses: Vec::new(),
        }
    }

    /// Returns whether a reading is of this quota. The limit alone is not enough: 1,000 is a day's quota in
    /// one plan and a minute's in another.
    pub(crate) fn describes(&self, reading: &Reading, service_now: ServiceTime) -> bool {
        let is_same_quota = self.is_minute() == (reading.quota(service_now) == Quota::Minute);
        let is_same_window = reading.reset.after(self.anchor).saturating_abs() <= SAME_WINDOW;
        self.limit == reading.limit && !self.is_planned && (is_same_quota || is_same_window)
    }

    /// Records a reading of this quota. Responses may be late, so one of this window only lowers what is
    /// known. Returns whether it has opened another window.
    pub(crate) fn record(&mut self, reading: &Reading, receipt: &Receipt) -> bool {
        let ahead = reading.reset.after(self.anchor);
        if ahead.saturating_abs() <= SAME_WINDOW {
            self.remaining = self.remaining.min(reading.remaining);
            self.reset = self.reset.max(reading.reset);
            self.count_answered(receipt);
            return false;
        }
        // If the request was sent after this window was opened, the service's clock was set back.
        if ahead < 0 && receipt.sent <= self.opened_at && receipt.service_now < self.reset {
            return false;
        }
        let next = Self::open(reading, receipt);
        // Near its reset, a day's quota looks like a minute's.
        let quota = self.quota.longer(next.quota);
        let uses = std::mem::take(&mut self.uses);
        *self = Self { quota, ..next };
        if ahead < MIN_FIXED_WINDOW {
            // The window slides.
            self.ignore_others(0);
            self.uses = uses;
            return false;
        }
        true
    }

    /// Counts an answered request whose response does not describe this quota.
    pub(crate) fn record_undescribed(&mut self, receipt: &Receipt) {
        self.remaining = self.remaining.saturating_sub(receipt.counted);
        self.count_answered(receipt);
        if self.is_planned && self.reset.after(receipt.service_now) <= SECOND {
            self.late = self.late.saturating_add(receipt.counted);
        }
    }

    /// Counts lost requests. `is_described` says whether the reading includes them already.
    pub(crate) fn count_lost(&mut self, requests: u64, is_described: bool) {
        self.own = self.own.saturating_add(requests);
        if !is_described {
            self.remaining = self.remaining.saturating_sub(requests);
        }
    }

    fn count_answered(&mut self, receipt: &Receipt) {
        self.own = self.own.saturating_add(receipt.counted);
        let Some(sharer) = receipt.sharer else {
            return;
        };
        if let Some(used) = self.uses.iter_mut().find(|used| used.holder == sharer) {
            used.requests = used.requests.saturating_add(receipt.counted);
        } else if self.uses.len() < MAX_SHARERS {
            self.uses.push(Use {
                holder: sharer,
                requests: receipt.counted,
            });
        }
    }

    /// Returns how many requests a holder has used.
    pub(crate) fn used_by(&self, sharer: u64) -> u64 {
        let used = self.uses.iter().find(|used| used.holder == sharer);
        used.map_or(0, |used| used.requests)
    }

    /// Returns how many requests of others the service has certainly counted in this window, if these many of
    /// our own are outstanding.
    pub(crate) fn by_others(&self, outstanding: u64) -> u64 {
        let used = self.start.saturating_sub(self.remaining);
        used.saturating_sub(self.own.saturating_add(outstanding))
    }

    /// Forgets what others have used so far, if these many of our own requests are outstanding.
    pub(crate) fn ignore_others(&mut self, outstanding: u64) {
        self.start = self.start.saturating_sub(self.by_others(outstanding));
    }

    pub(crate) fn quota(&self) -> Quota {
        self.quota
    }

    pub(crate) fn is_minute(&self) -> bool {
        self.quota == Quota::Minute
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn remaining(&self) -> u64 {
        self.remaining
    }

    pub(crate) fn reset(&self) -> ServiceTime {
        self.reset
    }

    pub(crate) fn own(&self) -> u64 {
        self.own
    }

    pub(crate) fn is_planned(&self) -> bool {
        self.is_planned
    }

    pub(crate) fn opened_at(&self) -> LedgerTime {
        self.opened_at
    }

    /// Returns how many requests may count in the window that begins at this reset.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }

    #[cfg(any(feature = "file-store", feature = "redis"))]
    pub(crate) fn is_plausible(&self) -> bool {
        self.remaining <= self.limit && self.limit > 0 && self.uses.len() <= MAX_SHARERS
    }
}
