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

/// A call that was woken.
pub(super) trait Watched: Send + Sync {
    /// Looks at whether the call is polled. At the second look without a poll, moves it to its own task. Returns whether
    /// to look again.
    fn look(self: Arc<Self>) -> bool;
}

struct Round {
    runtime: runtime::Id,
    calls: Vec<Weak<dyn Watched>>,
}

/// Adds a call that was just woken.
pub(super) fn watch(call: Weak<dyn Watched>, runtime: &Handle) {
    let mut rounds = rounds();
    if let Some(round) = rounds.iter_mut().find(|one| one.runtime == runtime.id()) {
        round.calls.push(call);
        return;
    }
    rounds.push(Round {
        runtime: runtime.id(),
        calls: vec![call],
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
        let mut left = self.take();
        left.retain(|call| call.upgrade().is_some_and(Watched::look));
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

    fn take(&self) -> Vec<Weak<dyn Watched>> {
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
