//! What a call waits for, and which of its waits are reported.

use std::time::SystemTime;

use crate::rate_limit::view::{Blocked, WaitReason};

/// Why a call waits, and until when if that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) reason: WaitReason,
    pub(crate) blocked: Option<Blocked>,
}

/// Passes the waits of a call to a function, each wait once.
pub(super) struct WaitReports<R> {
    report: R,
    is_first_look: bool,
    /// The reason of the last reported wait, and the end if it is a block.
    last: Option<(WaitReason, Option<SystemTime>)>,
}

impl<R: FnMut(Wait)> WaitReports<R> {
    pub(super) fn new(report: R) -> Self {
        Self {
            report,
            is_first_look: true,
            last: None,
        }
    }

    /// Reports what a call waits for when it looks at the limiter, if that is due. `is_first` says
    /// whether it is the first of its line.
    pub(super) fn see(&mut self, wait: Option<Wait>, is_first: bool) {
        let is_first_look = std::mem::replace(&mut self.is_first_look, false);
        let Some(wait) = wait else { return };
        let is_due = if wait.blocked.is_some() {
            is_first || is_first_look
        } else {
            // Most responses arrive before the second look, so such a short wait is not reported.
            is_first && !is_first_look
        };
        let key = (wait.reason, wait.blocked.map(|blocked| blocked.until));
        if is_due && self.last != Some(key) {
            self.last = Some(key);
            (self.report)(wait);
        }
    }
}
