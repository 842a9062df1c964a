//! Looks after calls that were woken, and moves those that nobody polls to tasks of their own. One task
//! of each runtime looks at all of them, because a task for each call would cost more than the call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::{self, Handle};
use tokio::time::sleep;

/// A woken call that is not polled moves to its own task after one to two intervals.
const PATIENCE: Duration = Duration::from_millis(5);

/// The woken calls of each runtime of this process.
static ROUNDS: Mutex<Vec<Round>> = Mutex::new(Vec::new());

/// A call that can be woken.
pub(super) trait Wakeable: Send + Sync {
    /// Looks at how its caller answers when it is woken, a while after the last look, at which it had
    /// been polled this often.
    fn look(&self, polls: Option<u32>) -> WhenWoken;

    /// Starts the call's own task, unless it has one or was dropped.
    fn move_to_task(self: Arc<Self>);
}

/// How a caller answers when its call is woken.
pub(super) enum WhenWoken {
    /// It has polled the call, which waits again.
    Answered,
    /// It has polled the call this often, but the call was woken again.
    Polled(u32),
    /// It has not polled the call since the last look.
    Ignored,
}

struct Round {
    runtime: runtime::Id,
    calls: Vec<Watched>,
}

struct Watched {
    call: Weak<dyn Wakeable>,
    /// How often the call had been polled at the last look; `None` before the first one.
    polls: Option<u32>,
}

/// Adds a call that was just woken.
pub(super) fn watch(call: Weak<dyn Wakeable>, runtime: &Handle) {
    let watched = Watched { call, polls: None };
    let mut rounds = rounds();
    if let Some(round) = rounds.iter_mut().find(|one| one.runtime == runtime.id()) {
        round.calls.push(watched);
        return;
    }
    rounds.push(Round {
        runtime: runtime.id(),
        calls: vec![watched],
    });
    // A runtime that was shut down drops the task at once, which needs the lock.
    drop(rounds);
    let task = Rounds {
        runtime: runtime.id(),
        has_ended: false,
    };
    runtime.spawn(task.run());
}

fn rounds() -> MutexGuard<'static, Vec<Round>> {
    ROUNDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The task that looks after the calls of a runtime.
struct Rounds {
    runtime: runtime::Id,
    has_ended: bool,
}

impl Rounds {
    async fn run(mut self) {
        while !self.has_ended {
            sleep(PATIENCE).await;
            self.look();
        }
    }

    /// Looks at each call once. Ends the task if none is left.
    fn look(&mut self) {
        let mut left = Vec::new();
        for Watched { call, polls } in self.take() {
            let Some(woken) = call.upgrade() else {
                continue;
            };
            match woken.look(polls) {
                WhenWoken::Answered => {}
                WhenWoken::Polled(polls) => {
                    let polls = Some(polls);
                    left.push(Watched { call, polls });
                }
                WhenWoken::Ignored => woken.move_to_task(),
            }
        }
        let mut rounds = rounds();
        rounds.retain_mut(|round| {
            if round.runtime != self.runtime {
                return true;
            }
            round.calls.append(&mut left);
            self.has_ended = round.calls.is_empty();
            !self.has_ended
        });
    }

    fn take(&self) -> Vec<Watched> {
        let mut rounds = rounds();
        let round = rounds.iter_mut().find(|one| one.runtime == self.runtime);
        round.map_or_else(Vec::new, |round| std::mem::take(&mut round.calls))
    }
}

impl Drop for Rounds {
    /// If its runtime has ended the task, the calls cannot go on there either.
    fn drop(&mut self) {
        if !self.has_ended {
            rounds().retain(|one| one.runtime != self.runtime);
        }
    }
}
