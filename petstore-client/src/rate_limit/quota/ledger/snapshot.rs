//! What programs see of a ledger.

use super::Ledger;
use crate::rate_limit::quota::instant::{LedgerTime, duration};
use crate::rate_limit::quota::report::Report;
use crate::rate_limit::view::{QuotaWindow, RateLimits};

impl Ledger {
    /// Returns what a holder would learn by a report, and by a call that waits, when the store's clock shows this
    /// time.
    pub(crate) fn snapshot(mut self, report: &Report, store_now: LedgerTime) -> RateLimits {
        self.exchange(report, store_now);
        let now = self.time(store_now);
        let service_now = self.clock.service_time(now);
        let (mut windows, mut ended) = (Vec::new(), Vec::new());
        for window in self.windows.iter().filter(|window| !window.is_planned()) {
            let mut shown = QuotaWindow {
                quota: window.quota(),
                limit: window.limit(),
                remaining: window.limit(),
                reset: window.reset().system(),
            };
            if window.reset() > service_now {
                shown.remaining = self.left_in(window, report);
                windows.push(shown);
            } else {
                ended.push(shown);
            }
        }
        let unresolved = self.lost.count();
        let call = Report {
            outcomes: Vec::new(),
            waiting: 1,
            ..report.clone()
        };
        let answer = self.exchange(&call, store_now);
        let pause = (answer.granted == 0).then_some(answer.pause);
        RateLimits {
            windows,
            ended,
            service_time: self.clock.is_known().then(|| service_now.system()),
            blocked: pause.and_then(|pause| pause.blocked(pause.length())),
            wait_reason: pause.map(|pause| pause.reason()),
            unresolved: u32::try_from(unresolved).unwrap_or(u32::MAX),
            throttled: self.refusals,
            age: self.described_at.map(|at| duration(now.since(at))),
            ..RateLimits::default()
        }
    }

    /// Returns the number of holders.
    pub(crate) fn holder_count(&self) -> u32 {
        u32::try_from(self.holders.len()).unwrap_or(u32::MAX)
    }
}
