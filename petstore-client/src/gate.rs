//! Lets requests through one by one: acquire, send, observe.
//!
//! The deciding is `quota`'s; this only waits for its verdict and keeps the lock short. All clones
//! of a client share one gate, so a refusal that one task received holds back every other.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::clock;
use crate::quota::{Answer, Block, State};

#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
}

/// The right to send one request.
#[derive(Debug)]
#[must_use = "a permit is for sending a request"]
pub(crate) struct Permit<'g> {
    gate: &'g Gate,
}

impl Gate {
    /// Waits until a request may go, or returns at once what holds it back beyond `latest`. What
    /// it waits for is added to `waited`.
    pub(crate) async fn acquire(
        &self,
        latest: Instant,
        waited: &mut Duration,
    ) -> Result<Permit<'_>, Block> {
        // Another refusal may have come while this one was waited out: look again.
        while let Some(block) = self.blocked() {
            if block.until > latest {
                return Err(block);
            }
            let start = clock::now();
            sleep_until(block.until).await;
            *waited += clock::now() - start;
        }
        Ok(Permit { gate: self })
    }

    /// Returns whether a permit from before should not be used now.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked().is_some()
    }

    /// Returns what holds requests back now.
    pub(crate) fn blocked(&self) -> Option<Block> {
        self.state().blocked(clock::now())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit<'_> {
    /// Takes the answer in; returns the block that it asks for.
    pub(crate) fn observe(self, answer: &Answer<'_>) -> Option<Block> {
        self.gate.state().observe(answer)
    }
}
