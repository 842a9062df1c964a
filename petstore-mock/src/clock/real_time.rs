//! Waits in real time, even if the caller's runtime is paused. The mock's time is in `clock`.

use std::{
    future::pending,
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

use tokio::{
    runtime::{Builder, Handle},
    time::Sleep,
};

/// A runtime that only drives timers. A `Sleep` belongs to the runtime that creates it. On the
/// caller's runtime, paused time would jump to the end of the sleep at once.
static TIMERS: LazyLock<Option<Handle>> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_time().build().ok()?;
    let handle = runtime.handle().clone();
    let run = move || runtime.block_on(pending::<()>());
    thread::Builder::new()
        .name("petstore-mock-timers".to_owned())
        .spawn(run)
        .ok()?;
    Some(handle)
});

/// Creates a timer in real time. If no thread can be started, it is one of the caller's runtime.
pub(crate) fn within<T>(create: impl FnOnce() -> T) -> T {
    let _entered = TIMERS.as_ref().map(Handle::enter);
    create()
}

/// Sleeps in real time.
pub(crate) fn sleep(duration: Duration) -> Sleep {
    within(|| tokio::time::sleep(duration))
}

/// Returns the real time.
#[expect(clippy::disallowed_methods, reason = "this module provides real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn sleeps_for_real_under_paused_time_and_does_not_move_it() {
        let (real, paused) = (now(), tokio::time::Instant::now());
        sleep(Duration::from_millis(30)).await;
        assert!(real.elapsed() >= Duration::from_millis(30));
        assert_eq!(paused.elapsed(), Duration::ZERO);
    }
}
