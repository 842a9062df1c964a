//! The mock's clock.
//!
//! Everything that depends on time (quotas, bans, `Date`, delays, the removal of an operation) gets
//! `now` as an argument. Only this module reads the time. Inside the crate, an instant is the
//! [`Duration`] since the Unix epoch.

mod instant;
pub(crate) mod real_time;
mod setting;
mod source;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::sync::watch;

use self::{instant::since_epoch, source::Source};
pub(crate) use self::{
    instant::{END, instant, parse_date, seconds, seconds_until, serialize_seconds, time},
    setting::ClockState,
};

/// A clock that can be moved forward, stopped and accelerated. Clones share one time.
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
pub struct Clock(Arc<SharedClock>);

struct SharedClock {
    source: Source,
    /// Waiting tasks watch it, and recompute their wait when the clock is set.
    state: watch::Sender<ClockState>,
}

impl Clock {
    /// Returns a clock that follows the machine's clock. If that is set back, this clock stops
    /// until the machine's clock has caught up.
    #[must_use]
    pub fn system() -> Self {
        Self::new(Source::system(), None, 1.0)
    }

    /// Returns a clock that is stopped at `at`, until it is advanced or [resumed](Self::resume).
    ///
    /// A time before 1970 or after the year 9999 becomes the nearest possible one.
    #[must_use]
    pub fn frozen(at: SystemTime) -> Self {
        Self::new(Source::system(), Some(at), 0.0)
    }

    /// Returns a clock that shows `start` now and runs `factor` times as fast as real time. At 60,
    /// a quota per minute resets after a second.
    ///
    /// The factor is clamped to 0 to 1,000,000. NaN becomes 0.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use petstore_mock::Clock;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let clock = Clock::scaled(SystemTime::UNIX_EPOCH, 100_000.0);
    /// clock.sleep(Duration::from_secs(60)).await;
    /// assert!(clock.now() >= SystemTime::UNIX_EPOCH + Duration::from_secs(60));
    /// # }
    /// ```
    #[must_use]
    pub fn scaled(start: SystemTime, factor: f64) -> Self {
        Self::new(Source::system(), Some(start), factor)
    }

    /// Returns a clock that shows `start` now and then follows the time of the tokio runtime,
    /// including paused time (`tokio::time::pause`).
    ///
    /// Call it on the runtime that it should follow.
    #[must_use]
    pub fn runtime(start: SystemTime) -> Self {
        Self::new(Source::runtime(), Some(start), 1.0)
    }

    fn new(source: Source, start: Option<SystemTime>, pace: f64) -> Self {
        let read = source.read();
        let shown = start.map_or(read, since_epoch);
        Self(Arc::new(SharedClock {
            source,
            state: watch::Sender::new(ClockState::new(read, shown, pace)),
        }))
    }

    /// Returns the current time, between 1970 and the end of the year 9999.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        UNIX_EPOCH + self.since_epoch()
    }

    /// Returns the clock's speed relative to its source: 0 if it is frozen, 1 if it simply follows
    /// the machine or the runtime.
    #[must_use]
    pub fn pace(&self) -> f64 {
        self.0.state.borrow().pace()
    }

    /// Moves the clock and its clones forward.
    pub fn advance(&self, by: Duration) {
        self.set(|state, now| state.advance(now, by));
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
        self.set(|state, now| state.advance_to(now, since_epoch(at)));
    }

    /// Stops the clock and its clones.
    pub fn freeze(&self) {
        self.scale(0.0);
    }

    /// Starts the clock again, at the speed of the machine or the runtime.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use petstore_mock::Clock;
    ///
    /// let clock = Clock::system();
    /// clock.freeze();
    /// assert_eq!(clock.now(), clock.now());
    /// clock.resume();
    /// assert_eq!(clock.pace(), 1.0);
    /// ```
    pub fn resume(&self) {
        self.scale(1.0);
    }

    /// Runs the clock `factor` times as fast as its source; see [`Clock::scaled`].
    pub fn scale(&self, factor: f64) {
        self.set(|state, now| state.scale(now, factor));
    }

    /// Waits until `time` has passed on the clock, by itself or because it was moved.
    ///
    /// If the clock is frozen, this waits until it is advanced. A clock that follows the machine's
    /// clock waits in real time, even if the runtime's time is paused.
    pub async fn sleep(&self, time: Duration) {
        self.wait_until(self.since_epoch().saturating_add(time))
            .await;
    }

    /// Waits until the clock shows `at`, like [`Clock::sleep`]. Returns immediately if it is past
    /// that.
    pub async fn sleep_until(&self, at: SystemTime) {
        self.wait_until(since_epoch(at)).await;
    }

    /// Waits until the clock shows `at`, since the Unix epoch, or reaches its maximum.
    pub(crate) async fn wait_until(&self, at: Duration) {
        let at = at.min(END);
        let mut changes = self.0.state.subscribe();
        loop {
            // The state is marked as seen when it is read, so that any later change ends the wait
            // below.
            let state = *changes.borrow_and_update();
            let left = at.saturating_sub(state.at(self.0.source.read()));
            if left.is_zero() {
                return;
            }
            let pass = async {
                match state.source_time(left) {
                    Some(wait) => self.0.source.pass(wait).await,
                    None => std::future::pending().await,
                }
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
        let state = self.0.state.borrow();
        state.at(self.0.source.read())
    }

    /// Returns a receiver that is notified each time the clock is set.
    pub(crate) fn subscribe(&self) -> watch::Receiver<ClockState> {
        self.0.state.subscribe()
    }

    /// Changes the setting. `change` gets it and the source's time.
    fn set(&self, change: impl FnOnce(&mut ClockState, Duration)) {
        self.0
            .state
            .send_modify(|state| change(state, self.0.source.read()));
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
            .field("pace", &self.pace())
            .field("now", &httpdate::HttpDate::from(self.now()).to_string())
            .finish()
    }
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
        assert!(is_over(pin!(clock.sleep(Duration::MAX))));
    }

    #[test]
    fn an_instant_before_the_epoch_becomes_the_epoch() {
        let clock = Clock::frozen(UNIX_EPOCH - Duration::from_secs(5));
        assert_eq!(clock.now(), UNIX_EPOCH);
    }

    #[test]
    fn a_frozen_wait_ends_when_the_clock_passes_it() {
        let clock = Clock::frozen(UNIX_EPOCH);
        let mut wait = pin!(clock.sleep(DAY));
        assert!(!is_over(wait.as_mut()));
        clock.advance(DAY - Duration::from_nanos(1));
        assert!(!is_over(wait.as_mut()));
        clock.clone().advance(Duration::from_nanos(1));
        assert!(is_over(wait));
        assert!(is_over(pin!(clock.sleep(Duration::ZERO))));
        assert!(is_over(pin!(clock.sleep_until(UNIX_EPOCH))));
    }

    #[tokio::test]
    async fn every_way_to_set_the_clock_wakes_the_waiting_tasks() {
        let faster = [
            |clock: &Clock| clock.advance(DAY),
            |clock: &Clock| clock.advance_to(UNIX_EPOCH + DAY),
            |clock: &Clock| clock.scale(f64::MAX),
        ];
        for faster in faster {
            let clock = Clock::frozen(UNIX_EPOCH);
            let waits = tokio::spawn({
                let clock = clock.clone();
                async move { clock.sleep(DAY).await }
            });
            tokio::task::yield_now().await;
            clock.resume();
            tokio::task::yield_now().await;
            clock.freeze();
            tokio::task::yield_now().await;
            assert!(!waits.is_finished());
            faster(&clock);
            waits.await.unwrap();
        }
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
        clock.scale(10.0);
        let before = tokio::time::Instant::now();
        clock.sleep(DAY).await;
        let took = before.elapsed();
        assert!(
            took >= DAY / 10 && took < DAY / 10 + Duration::from_secs(1),
            "{took:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn real_time_is_not_shortened_by_the_paused_time_of_the_runtime() {
        let before = tokio::time::Instant::now();
        Clock::system().sleep(Duration::from_millis(2)).await;
        assert_eq!(before.elapsed(), Duration::ZERO);
        let day = tokio::time::timeout(DAY, async { Clock::system().sleep(DAY).await });
        assert!(day.await.is_err());
    }

    #[tokio::test]
    async fn a_dropped_wait_leaves_no_state() {
        let clock = Clock::frozen(UNIX_EPOCH);
        for _ in 0..10 {
            assert!(!is_over(pin!(clock.sleep(DAY))));
        }
        assert_eq!(clock.0.state.receiver_count(), 0);
    }
}
