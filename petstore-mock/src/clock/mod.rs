//! The mock's clock.
//!
//! Everything that depends on time (quotas, bans, `Date`, delays, the removal of an operation) gets
//! `now` as an argument. Only this module reads the time. Inside the crate, an instant is the
//! [`Duration`] since the Unix epoch.

mod instant;
pub(crate) mod real_time;

use std::{
    fmt,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::sync::watch;

use self::instant::since_epoch;
pub(crate) use self::instant::{
    END, instant, parse_date, seconds, seconds_until, serialize_seconds, time,
};

/// A clock that can be moved forward and stopped. Clones share one time.
///
/// Quotas, bans, `Date`, `Retry-After`, delays and the removal of the deprecated operation follow
/// it, so a test can skip a day. It never goes back, and stops at the end of the year 9999, the
/// maximum of an HTTP date.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use petstore_mock::Clock;
///
/// let clock = Clock::frozen(SystemTime::UNIX_EPOCH);
/// let same = clock.clone();
/// clock.advance(Duration::from_secs(86_400));
/// assert_eq!(same.now(), SystemTime::UNIX_EPOCH + Duration::from_secs(86_400));
/// ```
#[derive(Clone)]
pub struct Clock {
    source: Arc<Source>,
    /// Waiting tasks watch it, and recompute their wait when the clock is set.
    state: watch::Sender<ClockState>,
}

/// The setting of a clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockState {
    /// The source's time when the clock was set.
    read: Duration,
    /// The clock's time then, since the Unix epoch.
    shown: Duration,
    is_frozen: bool,
}

impl ClockState {
    /// Returns the clock's time when the source shows `now`.
    fn at(&self, now: Duration) -> Duration {
        if self.is_frozen {
            return self.shown;
        }
        let passed = now.saturating_sub(self.read);
        self.shown.saturating_add(passed).min(END)
    }
}

impl Clock {
    /// Returns a clock that follows the machine's clock. If that is set back, this clock stops
    /// until the machine's clock has caught up.
    #[must_use]
    pub fn system() -> Self {
        Self::new(Source::system(), None, false)
    }

    /// Returns a clock that is stopped at `at`, until it is advanced or [resumed](Self::resume).
    ///
    /// A time before 1970 or after the year 9999 becomes the nearest possible one.
    #[must_use]
    pub fn frozen(at: SystemTime) -> Self {
        Self::new(Source::system(), Some(at), true)
    }

    /// Returns a clock that shows `start` now and then follows the machine's clock.
    #[must_use]
    pub fn starting_at(start: SystemTime) -> Self {
        Self::new(Source::system(), Some(start), false)
    }

    /// Returns a clock that shows `start` now and then follows the time of the tokio runtime,
    /// including paused time (`tokio::time::pause`).
    ///
    /// Call it on the runtime that it should follow.
    #[must_use]
    pub fn runtime(start: SystemTime) -> Self {
        Self::new(Source::runtime(), Some(start), false)
    }

    fn new(source: Source, start: Option<SystemTime>, is_frozen: bool) -> Self {
        let read = source.read();
        let state = ClockState {
            read,
            shown: start.map_or(read, since_epoch),
            is_frozen,
        };
        Self {
            source: Arc::new(source),
            state: watch::Sender::new(state),
        }
    }

    /// Returns the current time, between 1970 and the end of the year 9999.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        UNIX_EPOCH + self.since_epoch()
    }

    /// Returns whether the clock is stopped.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.state.borrow().is_frozen
    }

    /// Moves the clock and its clones forward.
    pub fn advance(&self, by: Duration) {
        self.set(|state| state.shown = state.shown.saturating_add(by).min(END));
    }

    /// Moves the clock forward to `at`, unless it is already past that.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use petstore_mock::Clock;
    ///
    /// let removal = SystemTime::UNIX_EPOCH + Duration::from_secs(1_922_659_200);
    /// let clock = Clock::frozen(SystemTime::UNIX_EPOCH);
    /// clock.advance_to(removal);
    /// clock.advance_to(SystemTime::UNIX_EPOCH);
    /// assert_eq!(clock.now(), removal);
    /// ```
    pub fn advance_to(&self, at: SystemTime) {
        self.set(|state| state.shown = state.shown.max(since_epoch(at)));
    }

    /// Stops the clock and its clones.
    pub fn freeze(&self) {
        self.set(|state| state.is_frozen = true);
    }

    /// Starts the clock again.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use petstore_mock::Clock;
    ///
    /// let clock = Clock::system();
    /// clock.freeze();
    /// assert_eq!(clock.now(), clock.now());
    /// clock.resume();
    /// assert!(!clock.is_frozen());
    /// ```
    pub fn resume(&self) {
        self.set(|state| state.is_frozen = false);
    }

    /// Waits until the clock shows `at`, since the Unix epoch, or reaches its maximum, by itself or
    /// because it was moved. A clock that follows the machine's clock waits in real time, even if the
    /// runtime's time is paused.
    pub(crate) async fn wait_until(&self, at: Duration) {
        let at = at.min(END);
        let mut changes = self.state.subscribe();
        loop {
            // The state is marked as seen when it is read, so that any later change ends the wait
            // below.
            let state = *changes.borrow_and_update();
            let left = at.saturating_sub(state.at(self.source.read()));
            if left.is_zero() {
                return;
            }
            let pass = async {
                if state.is_frozen {
                    pending::<()>().await;
                }
                self.source.pass(left).await;
            };
            tokio::select! {
                biased;
                _ = changes.changed() => {}
                () = pass => {}
            }
        }
    }

    /// Returns the time since the Unix epoch.
    pub(crate) fn since_epoch(&self) -> Duration {
        // The state stays locked while the source is read. If another state was set in between,
        // this would return an earlier time.
        let state = self.state.borrow();
        state.at(self.source.read())
    }

    /// Returns a receiver that is notified each time the clock is set.
    pub(crate) fn subscribe(&self) -> watch::Receiver<ClockState> {
        self.state.subscribe()
    }

    /// Changes the setting from now on.
    fn set(&self, change: impl FnOnce(&mut ClockState)) {
        self.state.send_modify(|state| {
            let now = self.source.read();
            (state.shown, state.read) = (state.at(now), now);
            change(state);
        });
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock")
            .field("is_frozen", &self.is_frozen())
            .field("now", &httpdate::HttpDate::from(self.now()).to_string())
            .finish()
    }
}

/// The time that a clock follows.
enum Source {
    /// The machine's time. Keeps the latest reading, because the mock's clock must not go back if
    /// the machine's clock does. It is in nanoseconds since the Unix epoch, which is enough until
    /// the year 2554.
    System(AtomicU64),
    /// The time of a tokio runtime.
    Runtime(tokio::time::Instant),
}

impl Source {
    const fn system() -> Self {
        Self::System(AtomicU64::new(0))
    }

    fn runtime() -> Self {
        Self::Runtime(tokio::time::Instant::now())
    }

    /// Returns the time since a fixed instant. It never goes back.
    fn read(&self) -> Duration {
        match self {
            Self::System(latest) => {
                let now = u64::try_from(system_now().as_nanos()).unwrap_or(u64::MAX);
                Duration::from_nanos(now.max(latest.fetch_max(now, Ordering::Relaxed)))
            }
            Self::Runtime(anchor) => tokio::time::Instant::now().saturating_duration_since(*anchor),
        }
    }

    /// Waits for this long, but for a few weeks at most.
    async fn pass(&self, wait: Duration) {
        match self {
            Self::System(_) => real_time::sleep(wait).await,
            Self::Runtime(_) => tokio::time::sleep(wait).await,
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "only this module reads the machine's clock"
)]
fn system_now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    /// Whether a wait is over, without waiting.
    fn is_over(wait: std::pin::Pin<&mut impl Future<Output = ()>>) -> bool {
        wait.poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    #[test]
    fn stops_at_the_end_of_the_year_9999() {
        let clock = Clock::frozen(UNIX_EPOCH);
        clock.advance(Duration::MAX);
        clock.advance(Duration::MAX);
        assert_eq!(clock.since_epoch(), END);
        assert_eq!(
            httpdate::fmt_http_date(clock.now()),
            "Fri, 31 Dec 9999 23:59:59 GMT"
        );
        assert!(is_over(pin!(clock.wait_until(Duration::MAX))));
    }

    #[test]
    fn goes_on_from_where_it_was_stopped_and_never_back() {
        let s = Duration::from_secs;
        let state = ClockState {
            read: s(100),
            shown: s(5_000),
            is_frozen: false,
        };
        let is_frozen = true;
        for (now, shown) in [(s(50), s(5_000)), (s(110), s(5_010)), (Duration::MAX, END)] {
            assert_eq!(state.at(now), shown);
            assert_eq!(ClockState { is_frozen, ..state }.at(now), s(5_000));
        }
    }

    #[test]
    fn an_instant_before_the_epoch_becomes_the_epoch() {
        let clock = Clock::frozen(UNIX_EPOCH - Duration::from_secs(5));
        assert_eq!(clock.now(), UNIX_EPOCH);
    }

    #[test]
    fn a_frozen_wait_ends_when_the_clock_passes_it() {
        let clock = Clock::frozen(UNIX_EPOCH);
        let mut wait = pin!(clock.wait_until(DAY));
        assert!(!is_over(wait.as_mut()));
        clock.advance(DAY - Duration::from_nanos(1));
        assert!(!is_over(wait.as_mut()));
        clock.clone().advance(Duration::from_nanos(1));
        assert!(is_over(wait));
        assert!(is_over(pin!(clock.wait_until(Duration::ZERO))));
    }

    #[tokio::test(start_paused = true)]
    async fn follows_the_paused_time_of_the_runtime() {
        let clock = Clock::runtime(UNIX_EPOCH);
        tokio::time::sleep(Duration::from_secs(90)).await;
        clock.advance(Duration::from_secs(10));
        assert_eq!(clock.now(), UNIX_EPOCH + Duration::from_secs(100));
        clock.freeze();
        tokio::time::sleep(DAY).await;
        assert_eq!(clock.now(), UNIX_EPOCH + Duration::from_secs(100));
        clock.resume();
        let before = tokio::time::Instant::now();
        clock.wait_until(Duration::from_secs(100) + DAY).await;
        let took = before.elapsed();
        assert!(
            took >= DAY && took < DAY + Duration::from_secs(1),
            "{took:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn real_time_is_not_shortened_by_the_paused_time_of_the_runtime() {
        let before = tokio::time::Instant::now();
        let clock = Clock::starting_at(UNIX_EPOCH);
        clock.wait_until(Duration::from_millis(2)).await;
        assert_eq!(before.elapsed(), Duration::ZERO);
        let day = tokio::time::timeout(DAY, clock.wait_until(DAY));
        assert!(day.await.is_err());
    }

    #[test]
    fn stands_still_where_the_machine_is_set_back() {
        let later = u64::try_from((system_now() + Duration::from_secs(3_600)).as_nanos()).unwrap();
        let source = Source::System(AtomicU64::new(later));
        assert_eq!(source.read(), Duration::from_nanos(later));
        assert!(Source::system().read() < Duration::from_nanos(later));
    }
}
