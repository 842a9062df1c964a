//! The speed that a fault sets for a response.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use crate::{clock::Clock, fault::Pace};

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A speed limit on the mock's clock.
pub(super) struct Throttle {
    pace: Pace,
    clock: Clock,
    began: Duration,
    sent: u64,
    sleep: Option<Sleep>,
}

impl Throttle {
    pub(super) fn new(pace: Pace, clock: Clock) -> Self {
        Self { pace, began: clock.since_epoch(), clock, sent: 0, sleep: None }
    }

    /// Whether bytes wait to be written.
    pub(super) fn is_waiting(&self) -> bool {
        self.sleep.is_some()
    }

    /// Counts written bytes.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    /// Returns how many of `bytes` may be written now.
    pub(super) fn poll_allowance(
        &mut self,
        context: &mut Context<'_>,
        wanted: usize,
    ) -> Poll<usize> {
        loop {
            let elapsed = self.clock.since_epoch().saturating_sub(self.began);
            let allowed = self.pace.allowed(elapsed).saturating_sub(self.sent);
            if allowed > 0 {
                self.sleep = None;
                return Poll::Ready(usize::try_from(allowed).map_or(wanted, |all| all.min(wanted)));
            }
            let due = self.began.saturating_add(self.pace.due(self.sent));
            let sleep = self.sleep.get_or_insert_with(|| {
                let clock = self.clock.clone();
                Box::pin(async move { clock.wait_until(due).await })
            });
            ready!(sleep.as_mut().poll(context));
            self.sleep = None;
        }
    }
}
