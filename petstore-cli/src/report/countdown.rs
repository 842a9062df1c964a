//! How long a wait still takes, counted down in one line of a terminal.

use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, interval_at};

use super::printer::Inner;

/// A line that counts down until it is dropped, or the wait is over.
#[derive(Debug)]
pub(super) struct Countdown(JoinHandle<()>);

impl Countdown {
    /// Takes the cursor to the beginning of the line, and wipes it.
    pub(super) const CLEAR: &str = "\r\u{1b}[K";

    pub(super) fn start(inner: Weak<Mutex<Inner>>, seconds: u64, reason: String) -> Self {
        Self(tokio::spawn(async move {
            let second = Duration::from_secs(1);
            let mut ticks = interval_at(Instant::now(), second);
            for left in (1..=seconds).rev() {
                ticks.tick().await;
                let Some(inner) = inner.upgrade() else { return };
                let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
                inner.rewrite(&format!("waiting {left} s: {reason}"));
            }
            ticks.tick().await;
            if let Some(inner) = inner.upgrade() {
                inner.lock().unwrap_or_else(PoisonError::into_inner).rewrite("");
            }
        }))
    }
}

impl Drop for Countdown {
    fn drop(&mut self) {
        self.0.abort();
    }
}
