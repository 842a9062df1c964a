//! Finds calls that are woken and not polled, and moves each to a separate task.
//!
//! A call normally runs in the task that polls it, which is cheapest. That task may do something
//! else meanwhile, for example in the body of a `select!`. The call would then keep its permit and
//! block every other call with the key. So one task per runtime checks all woken calls, as long as
//! there are any.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::{self, Handle};
use tokio::time::sleep;

use super::drivers::Drivers;

/// A woken call that is not polled moves to a separate task after one to two intervals.
const INTERVAL: Duration = Duration::from_millis(5);

/// The watches of all runtimes with calls.
static WATCHES: Mutex<Vec<Arc<Watch>>> = Mutex::new(Vec::new());

/// A call that can be left unpolled.
pub(super) trait Watched: Send + Sync {
    /// Returns how many times the call has been polled.
    fn polls(&self) -> u32;

    /// Starts the call's own task, unless it has one or has ended.
    fn move_to_task(self: Arc<Self>);
}

/// The woken calls of one runtime.
pub(super) struct Watch {
    runtime: runtime::Id,
    drivers: Drivers,
    state: Mutex<WatchState>,
}

#[derive(Default)]
struct WatchState {
    woken: Vec<Woken>,
    /// Whether the watch's task is running.
    is_running: bool,
}

/// A call, and how many times it had been polled when it was woken.
struct Woken {
    call: Arc<dyn Watched>,
    polls: u32,
}

impl Woken {
    fn is_unpolled(&self) -> bool {
        self.call.polls() == self.polls
    }
}

impl Watch {
    /// Returns the watch of the current runtime.
    pub(super) fn of(runtime: &Handle) -> Arc<Self> {
        let id = runtime.id();
        if let Some(watch) = find(&watches(), id) {
            return watch;
        }
        // Without the lock: a panic hook of the program may run, and may make calls.
        let drivers = Drivers::of_this_runtime();
        let mut known = watches();
        if let Some(watch) = find(&known, id) {
            return watch;
        }
        // A watch to which only this list refers has no calls any more.
        known.retain(|watch| Arc::strong_count(watch) > 1);
        let watch = Arc::new(Self {
            runtime: id,
            drivers,
            state: Mutex::default(),
        });
        known.push(Arc::clone(&watch));
        watch
    }

    pub(super) fn drivers(&self) -> Drivers {
        self.drivers
    }

    /// Adds a woken call of this runtime, and starts the watch's task if it is not running.
    pub(super) fn add(self: &Arc<Self>, call: Arc<dyn Watched>, runtime: &Handle) {
        let polls = call.polls();
        let mut state = self.lock();
        state.woken.push(Woken { call, polls });
        let is_running = std::mem::replace(&mut state.is_running, true);
        drop(state);
        if !is_running {
            let running = RunningWatch(Arc::clone(self));
            runtime.spawn(running.run());
        }
    }

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn watches() -> MutexGuard<'static, Vec<Arc<Watch>>> {
    WATCHES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn find(watches: &[Arc<Watch>], runtime: runtime::Id) -> Option<Arc<Watch>> {
    let found = watches.iter().find(|watch| watch.runtime == runtime);
    found.cloned()
}

/// The task of a watch.
struct RunningWatch(Arc<Watch>);

impl RunningWatch {
    /// Runs until no call was woken during an interval.
    async fn run(self) {
        let mut unpolled: Vec<Woken> = Vec::new();
        loop {
            sleep(INTERVAL).await;
            for woken in unpolled.drain(..) {
                if woken.is_unpolled() {
                    woken.call.move_to_task();
                }
            }
            unpolled = std::mem::take(&mut self.0.lock().woken);
            if unpolled.is_empty() {
                let mut state = self.0.lock();
                if state.woken.is_empty() {
                    state.is_running = false;
                    return;
                }
            }
            unpolled.retain(Woken::is_unpolled);
        }
    }
}

impl Drop for RunningWatch {
    /// Also runs if the runtime ends: the next call that is woken starts the task again.
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_running = false;
        let woken = std::mem::take(&mut state.woken);
        drop(state);
        drop(woken);
    }
}
