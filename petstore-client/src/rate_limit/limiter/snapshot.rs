//! What callers see of a limiter: a snapshot of what is known, and a block.

use std::time::Duration;

use crate::rate_limit::quota::clock::LocalTime;
use crate::rate_limit::quota::decision::Decision;
use crate::rate_limit::quota::policy::Policy;
use crate::rate_limit::quota::reading::Block;
use crate::rate_limit::shared::engine::Engine;
use crate::rate_limit::view::{Blocked, QuotaWindow, RateLimits, WaitReason};

/// How much the end that the service named may differ from the end by the local clock, only because
/// the clocks differ.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// Returns what an engine knows and has in flight.
pub(super) fn limits(engine: &Engine, now: LocalTime, policy: &Policy) -> RateLimits {
    let (local, ledger) = (engine.local(), engine.local().ledger());
    let service_now = ledger.service_time(now);
    let (mut windows, mut ended) = (Vec::new(), Vec::new());
    for window in ledger.windows() {
        let mut view = QuotaWindow {
            quota: window.quota(),
            limit: window.limit(),
            remaining: window.limit(),
            reset: window.reset().system(),
        };
        if window.reset() > service_now {
            view.remaining = engine.left_in(window);
            windows.push(view);
        } else {
            ended.push(view);
        }
    }
    let (wait_reason, blocked) = match engine.decide(now, policy) {
        // A new call would send now, or get a reservation by updating the record.
        Decision::Send { .. } | Decision::WaitForResponse(WaitReason::Members) => (None, None),
        Decision::WaitUntil(block) => {
            let blocked = blocked(engine, &block, now);
            (Some(WaitReason::Blocked), Some(blocked))
        }
        Decision::Pause(_) => (Some(WaitReason::Members), None),
        Decision::WaitForResponse(reason) => (Some(reason), None),
    };
    RateLimits {
        windows,
        ended,
        service_time: Some(service_now.system()),
        blocked,
        wait_reason,
        in_flight: u32::try_from(local.in_flight()).unwrap_or(u32::MAX),
        unresolved: u32::try_from(local.unresolved()).unwrap_or(u32::MAX),
        throttled: local.throttled(),
        age: ledger.age(now),
        ..RateLimits::default()
    }
}

/// Returns a block as callers see it. It has the end that the service named. The limiter itself
/// ends a longer block after 25 hours, with a probe.
pub(super) fn blocked(engine: &Engine, block: &Block, now: LocalTime) -> Blocked {
    let by_local_clock = block.until.since(now);
    let by_service = block.named.since(engine.local().ledger().service_time(now));
    let is_longer = by_service > by_local_clock.saturating_add(CLOCK_TOLERANCE);
    Blocked {
        reason: block.reason,
        until: block.named.system(),
        remaining: if is_longer {
            by_service
        } else {
            by_local_clock
        },
    }
}
