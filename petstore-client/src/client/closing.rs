//! Closes a client: calls that wait end, and those in flight finish.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

use crate::error::{Error, ErrorKind};

/// Whether a client is closed, and how many of its requests are in flight.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    is_closed: AtomicBool,
    in_flight: AtomicUsize,
    changed: Notify,
}

/// A request in flight.
#[must_use = "a request is in flight until this is dropped"]
pub(crate) struct InFlight<'c>(&'c Closing);

impl Closing {
    /// Ends the calls that wait, and all later ones.
    pub(super) fn begin(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// Counts a request, until the result is dropped. Fails if the client is closed.
    pub(crate) fn send(&self) -> Result<InFlight<'_>, Error> {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let in_flight = InFlight(self);
        if self.is_closed() {
            return Err(closed());
        }
        Ok(in_flight)
    }

    /// Waits until no request is in flight.
    pub(super) async fn drained(&self) {
        self.wait_for(|| self.in_flight.load(Ordering::SeqCst) == 0)
            .await;
    }

    /// Awaits `work`, unless the client is closed first.
    pub(crate) async fn unless_closed<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            biased;
            () = self.wait_for(|| self.is_closed()) => Err(closed()),
            result = work => result,
        }
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    async fn wait_for(&self, holds: impl Fn() -> bool) {
        loop {
            let mut changed = pin!(self.changed.notified());
            if holds() {
                return;
            }
            changed.as_mut().enable();
            if holds() {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
        if self.0.is_closed() {
            self.0.changed.notify_waiters();
        }
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the client is closed")
}
