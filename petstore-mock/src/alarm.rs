//! A wait in real time, whatever the time of the runtime does. A paused runtime jumps to its next timer
//! as soon as it is idle, so a timer of tokio's would ring at once there, and move the tests' time with
//! it. The mock's own time is left to `clock`.

use std::{
    collections::BTreeMap,
    io, mem,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

/// How long the thread stays when nobody waits any more: starting one for each of many short waits
/// would cost more than they do.
const LINGER: Duration = Duration::from_millis(100);

/// A wait longer than this ends here: no timer can hold any length, and callers that need more look at
/// their clock again anyway.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);

/// All waits of the process, on one thread, which is there only while there are any.
static ALARM: Alarm = Alarm { state: Mutex::new(State::new()), changed: Condvar::new() };

/// Waits this long in real time, or for 30 days if that is shorter; dropped, it leaves nothing behind.
pub(crate) async fn ring_after(wait: Duration) {
    // Without a thread the runtime's timer is the next best.
    match ALARM.set(wait) {
        // The bell rings or its thread is gone: in both cases the wait is over.
        Ok((rung, _bell)) => drop(rung.await),
        Err(_) => tokio::time::sleep(wait).await,
    }
}

struct Alarm {
    state: Mutex<State>,
    /// The first bell to ring is another one, or the thread is gone.
    changed: Condvar,
}

struct State {
    /// By the time they ring, and by a number that tells those of the same time apart.
    bells: BTreeMap<(Instant, u64), oneshot::Sender<()>>,
    next: u64,
    /// Whether the thread is there.
    running: bool,
}

/// A bell that is set, until it is dropped.
struct Bell(&'static Alarm, (Instant, u64));

impl State {
    const fn new() -> Self {
        Self { bells: BTreeMap::new(), next: 0, running: false }
    }

    fn first(&self) -> Option<(Instant, u64)> {
        self.bells.first_key_value().map(|(key, _)| *key)
    }
}

impl Alarm {
    /// Returns what ends when the time is over, and what gives the place back when it is dropped.
    fn set(&'static self, wait: Duration) -> io::Result<(oneshot::Receiver<()>, Bell)> {
        let (ring, rung) = oneshot::channel();
        let at = now() + wait.min(LONGEST);
        let mut state = self.lock();
        if !state.running {
            let thread = thread::Builder::new().name("petstore-mock-alarm".to_owned());
            thread.spawn(|| self.run())?;
            state.running = true;
        }
        let key = (at, state.next);
        state.next += 1;
        state.bells.insert(key, ring);
        if state.first() == Some(key) {
            self.changed.notify_all();
        }
        drop(state);
        Ok((rung, Bell(self, key)))
    }

    /// Rings the bells, until there are none for a while.
    fn run(&self) {
        let mut state = self.lock();
        loop {
            let now = now();
            // What rings may drop what waits, which needs the lock.
            let later = state.bells.split_off(&(now, u64::MAX));
            let due = mem::replace(&mut state.bells, later);
            if !due.is_empty() {
                drop(state);
                for ring in due.into_values() {
                    // Nobody listens where the wait was dropped.
                    let _ = ring.send(());
                }
                state = self.lock();
                continue;
            }
            let first = state.first();
            let wait = first.map_or(LINGER, |(at, _)| at.saturating_duration_since(now));
            let waited = self.changed.wait_timeout(state, wait);
            let (guard, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if outcome.timed_out() && first.is_none() && state.bells.is_empty() {
                state.running = false;
                self.changed.notify_all();
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let was_first = state.first() == Some(self.1);
        state.bells.remove(&self.1);
        if was_first {
            self.0.changed.notify_all();
        }
    }
}

/// Returns the real time.
#[expect(clippy::disallowed_methods, reason = "a wait in real time is what this is for")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[tokio::test(start_paused = true)]
    async fn paused_time_neither_shortens_it_nor_is_moved_by_it() {
        let before = tokio::time::Instant::now();
        ring_after(Duration::from_millis(1)).await;
        assert_eq!(before.elapsed(), Duration::ZERO);
        let jump = tokio::time::timeout(DAY, ring_after(DAY));
        assert!(jump.await.is_err(), "the runtime's day is over at once, the real one is not");
    }

    #[test]
    fn the_shorter_of_two_waits_rings_first_whichever_was_set_first() {
        static OWN: Alarm = Alarm { state: Mutex::new(State::new()), changed: Condvar::new() };
        let (mut day, long) = OWN.set(DAY).unwrap();
        let (moment, _short) = OWN.set(Duration::from_millis(1)).unwrap();
        assert_eq!(moment.blocking_recv(), Ok(()));
        assert!(day.try_recv().is_err());
        drop(long);
        assert_eq!(OWN.lock().bells.len(), 0);
    }

    #[test]
    fn its_thread_ends_when_the_last_wait_is_dropped() {
        static OWN: Alarm = Alarm { state: Mutex::new(State::new()), changed: Condvar::new() };
        let waits = [OWN.set(DAY).unwrap(), OWN.set(Duration::MAX).unwrap()];
        assert!(OWN.lock().running);
        drop(waits);
        let mut state = OWN.lock();
        while state.running {
            state = OWN.changed.wait(state).unwrap();
        }
    }
}
