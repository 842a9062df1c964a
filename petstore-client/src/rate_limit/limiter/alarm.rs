//! When the task that makes the later exchanges of a limiter wakes.

use tokio::sync::Notify;

use super::state::{Mutex, lock};
use crate::rate_limit::quota::instant::{LedgerTime, SECOND};

/// If the driver is this late, nobody runs its runtime, and another one is started.
const OVERDUE: i64 = SECOND;

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
    pub(super) fn set(&self, due: LedgerTime, now: LedgerTime) -> bool {
        let mut planned = lock(&self.state);
        let is_stuck = planned
            .wakes
            .is_some_and(|wakes| now.since(wakes) > OVERDUE);
        if is_stuck {
            planned.wakes = Some(due);
            return true;
        }
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

    /// Marks the driver as gone.
    pub(super) fn reset(&self) {
        *lock(&self.state) = Planned::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> LedgerTime {
        LedgerTime(seconds * SECOND)
    }

    #[test]
    fn a_driver_that_ends_is_replaced_and_one_that_is_late_too() {
        let alarm = Alarm::default();
        assert!(alarm.set(at(5), at(0)), "the first alarm starts a driver");
        assert!(!alarm.set(at(7), at(0)) && !alarm.set(at(3), at(0)));
        assert_eq!(alarm.wakes(), Some(at(3)));
        alarm.clear();
        assert_eq!(alarm.wakes(), None, "the driver ends by itself");
        assert!(alarm.set(at(4), at(3)));
        assert!(!alarm.set(at(9), at(5)));
        assert!(alarm.set(at(9), at(6)), "nobody runs its runtime");
        alarm.reset();
        assert!(alarm.set(at(20), at(6)), "its runtime has ended");
    }
}
