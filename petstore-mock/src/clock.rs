//! The mock's clock.
//!
//! Everything that depends on time (quotas, bans, `Date`, delays, the removal of an operation) gets
//! `now` as an argument. Only this module reads the time. Inside the crate, an instant is the
//! [`Duration`] since the Unix epoch.

pub(crate) mod real_time;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Serialize, Serializer};
use tokio::sync::watch;

/// The last second of the year 9999, the maximum of an HTTP date and of every clock.
pub(crate) const END: Duration = Duration::from_secs(253_402_300_799);

/// 11 days in a second.
const MAX_PACE: f64 = 1_000_000.0;

/// The setting of a clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockState {
    /// The source's time when the clock was set.
    read: Duration,
    /// The clock's time then, since the Unix epoch.
    shown: Duration,
    /// The clock's speed relative to the source: 0 to [`MAX_PACE`].
    pace: f64,
}

impl ClockState {
    /// Returns the clock's time when the source shows `now`.
    fn at(&self, now: Duration) -> Duration {
        let passed = now.saturating_sub(self.read);
        // Avoids rounding at the source's speed.
        let passed = if self.pace == 1.0 {
            passed
        } else {
            times(passed, self.pace)
        };
        self.shown.saturating_add(passed).min(END)
    }

    /// Returns the source's time that passes while the clock advances by `left`; `None` if it is
    /// frozen.
    fn source_time(&self, left: Duration) -> Option<Duration> {
        (self.pace > 0.0).then(|| {
            let exact = if self.pace == 1.0 {
                left
            } else {
                times(left, 1.0 / self.pace)
            };
            // Rounding down would repeatedly wake the waiter too early.
            exact.saturating_add(Duration::from_micros(1))
        })
    }

    /// Rebases the clock on the time when the source shows `now`, and then changes it.
    fn set(&mut self, now: Duration, change: impl FnOnce(&mut Self)) {
        (self.shown, self.read) = (self.at(now), now);
        change(self);
    }
}

/// Clamps a speed to the possible range; 0 for NaN.
fn possible(pace: f64) -> f64 {
    if pace.is_nan() {
        0.0
    } else {
        pace.clamp(0.0, MAX_PACE)
    }
}

fn times(time: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

/// The time that a clock follows.
enum Source {
    /// The machine's time. Holds the latest reading in nanoseconds since the Unix epoch (enough
    /// until the year 2554), because the mock's clock must not go back if the machine's clock does.
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
        Self::new(Source::system(), Some(start), possible(factor))
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
            state: watch::Sender::new(ClockState { read, shown, pace }),
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
        self.0.state.borrow().pace
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
        self.set(|state| state.pace = possible(factor));
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

    /// Waits until the clock shows `at`, since the Unix epoch, or its end.
    pub(crate) async fn wait_until(&self, at: Duration) {
        let at = at.min(END);
        let mut changes = self.0.state.subscribe();
        loop {
            // Marked as seen before it is read, so that any later change ends the wait below.
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
        // Locked while the source is read, because a state that is set in between would show an
        // earlier time.
        let state = self.0.state.borrow();
        state.at(self.0.source.read())
    }

    /// Returns a receiver that is notified each time the clock is set.
    pub(crate) fn subscribe(&self) -> watch::Receiver<ClockState> {
        self.0.state.subscribe()
    }

    fn set(&self, change: impl FnOnce(&mut ClockState)) {
        self.0
            .state
            .send_modify(|state| state.set(self.0.source.read(), change));
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

/// Returns the time this long after the Unix epoch, at most the clock's maximum.
pub(crate) fn instant(since_epoch: Duration) -> SystemTime {
    UNIX_EPOCH + since_epoch.min(END)
}

/// Converts seconds to a duration, from 0 to 253,402,300,799 (1970 to the end of 9999).
pub(crate) fn time(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|time| *time <= END)
}

/// Durations in JSON: numbers of seconds with fractions.
pub(crate) mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(
        time: &(impl Into<Option<Duration>> + Copy),
        to: S,
    ) -> Result<S::Ok, S::Error> {
        (*time).into().map(|time| time.as_secs_f64()).serialize(to)
    }

    pub(crate) fn deserialize<'de, T: From<Duration>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<T, D::Error> {
        let error = "a time is a number of seconds from 0 to 253402300799, such as 1.5";
        let time = super::time(f64::deserialize(from)?);
        time.map(T::from).ok_or_else(|| D::Error::custom(error))
    }
}

/// Serializes an optional time as seconds since the Unix epoch.
pub(crate) fn serialize_seconds<S: Serializer>(
    at: &(impl Into<Option<SystemTime>> + Copy),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    (*at)
        .into()
        .map(|at| since_epoch(at).as_secs_f64())
        .serialize(serializer)
}

fn since_epoch(at: SystemTime) -> Duration {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().min(END)
}

/// Parses a time: `2030-12-05T00:00:00Z` (RFC 3339; a date means its first second), or seconds
/// since the Unix epoch.
pub(crate) fn parse_date(text: &str) -> Result<SystemTime, ParseDateError> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds = text
            .parse()
            .map(Duration::from_secs)
            .map_err(|_| ParseDateError)?;
        return if seconds <= END {
            Ok(instant(seconds))
        } else {
            Err(ParseDateError)
        };
    }
    let midnight = format!("{text}T00:00:00Z");
    let date = if text.len() == "2030-12-05".len() {
        &midnight
    } else {
        text
    };
    humantime::parse_rfc3339_weak(date).map_err(|_| ParseDateError)
}

/// The text is not a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "give a date such as 2030-12-05, 2030-12-05T00:00:00Z (UTC), or seconds since 1970 such as \
     1922659200"
)]
pub(crate) struct ParseDateError;

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Another pace from `now` on.
    fn paced(mut state: ClockState, now: Duration, pace: f64) -> ClockState {
        state.set(now, |state| state.pace = possible(pace));
        state
    }

    #[test]
    fn goes_on_from_where_it_is_at_another_pace() {
        let real = ClockState {
            read: s(100),
            shown: s(5_000),
            pace: 1.0,
        };
        let slow = paced(real, s(110), 0.5);
        assert_eq!(slow.at(s(114)), s(5_012));
        let fast = paced(slow, s(114), 60.0);
        assert_eq!(fast.at(s(115)), s(5_072));
        let frozen = paced(fast, s(115), 0.0);
        assert_eq!(frozen.at(s(1_000_000)), s(5_072));
        assert_eq!(paced(frozen, s(2_000_000), 1.0).at(s(2_000_001)), s(5_073));
    }

    #[test]
    fn never_goes_back_nor_past_the_end() {
        let state = ClockState {
            read: s(100),
            shown: s(5_000),
            pace: 1.0,
        };
        assert_eq!(state.at(s(50)), s(5_000));
        assert_eq!(paced(state, s(100), -1.0).at(s(200)), s(5_000));
        assert_eq!(paced(state, s(100), f64::NAN).at(s(200)), s(5_000));
        assert_eq!(paced(state, s(100), f64::INFINITY).at(s(101)), s(1_005_000));
        assert_eq!(paced(state, s(100), f64::INFINITY).at(Duration::MAX), END);
    }

    #[test]
    fn knows_how_long_the_source_takes() {
        let with = |pace| {
            ClockState {
                read: s(0),
                shown: s(0),
                pace,
            }
            .source_time(s(60))
        };
        let micro = Duration::from_micros(1);
        assert_eq!(with(0.0), None);
        assert_eq!(with(1.0), Some(s(60) + micro));
        assert_eq!(with(60.0), Some(s(1) + micro));
        assert_eq!(with(f64::MIN_POSITIVE), Some(Duration::MAX));
    }

    #[test]
    fn stands_still_where_the_machine_is_set_back() {
        let later = u64::try_from((system_now() + Duration::from_secs(3_600)).as_nanos()).unwrap();
        let source = Source::System(AtomicU64::new(later));
        assert_eq!(source.read(), Duration::from_nanos(later));
        assert!(Source::system().read() < Duration::from_nanos(later));
    }

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
    fn reads_dates_in_three_forms() {
        for text in [
            "2030-12-05",
            "2030-12-05T00:00:00Z",
            "2030-12-05 00:00:00",
            "1922659200",
        ] {
            assert_eq!(
                parse_date(text),
                Ok(instant(Duration::from_secs(1_922_659_200))),
                "{text}"
            );
        }
        for text in [
            "",
            "tomorrow",
            "2030-13-05",
            "-5",
            "99999999999999999999",
            "253402300800",
        ] {
            assert_eq!(parse_date(text), Err(ParseDateError), "{text}");
        }
    }

    #[test]
    fn an_instant_before_the_epoch_becomes_the_epoch() {
        let clock = Clock::frozen(UNIX_EPOCH - Duration::from_secs(5));
        assert_eq!(clock.now(), UNIX_EPOCH);
    }

    #[test]
    fn a_frozen_wait_ends_when_the_clock_is_moved_past_it_and_not_before() {
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
