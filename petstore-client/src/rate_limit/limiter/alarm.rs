//! When the task that makes the later exchanges of a limiter wakes.

use tokio::sync::Notify;

use super::state::{Mutex, lock};
use crate::rate_limit::quota::time::LedgerTime;

/// When the driver of a limiter wakes.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    state: Mutex<Planned>,
    is_earlier: Notify,
}

#[derive(Debug, Default)]
struct Planned {
    /// Whether there is a driver.
    is_driven: bool,
    wakes: Option<LedgerTime>,
}

impl Alarm {
    /// Wakes the driver at an instant at the latest. Returns whether it must be started.
    pub(super) fn set(&self, due: LedgerTime) -> bool {
        let mut planned = lock(&self.state);
        if planned.wakes.is_some_and(|wakes| wakes <= due) {
            return false;
        }
        planned.wakes = Some(due);
        let must_start = !std::mem::replace(&mut planned.is_driven, true);
        if !must_start {
            self.is_earlier.notify_one();
        }
        must_start
    }

    /// Returns when to wake. Without such an instant, the driver ends.
    pub(super) fn wakes(&self) -> Option<LedgerTime> {
        let mut planned = lock(&self.state);
        planned.is_driven = planned.wakes.is_some();
        planned.wakes
    }

    pub(super) fn clear(&self) {
        lock(&self.state).wakes = None;
    }

    pub(super) async fn is_earlier(&self) {
        self.is_earlier.notified().await;
    }

    /// Records that the driver has ended, maybe with its runtime.
    pub(super) fn end(&self) {
        let mut planned = lock(&self.state);
        if planned.wakes.take().is_some() {
            planned.is_driven = false;
        }
    }
}
