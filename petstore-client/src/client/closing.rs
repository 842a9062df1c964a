//! Closes a client: calls that wait end, and those in flight finish.

use tokio::sync::{RwLock, RwLockReadGuard, watch};

use crate::error::{Error, ErrorKind};

/// Whether a client is closed, and its requests in flight.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    is_closed: watch::Sender<bool>,
    /// Each request in flight holds a read lock.
    in_flight: RwLock<()>,
}

impl Closing {
    /// Ends the calls that wait, and all later ones.
    pub(super) fn begin(&self) {
        self.is_closed.send_replace(true);
    }

    /// Waits until no request is in flight.
    pub(super) async fn drained(&self) {
        drop(self.in_flight.write().await);
    }

    /// Counts a request as in flight, until the result is dropped. Fails if the client is closed.
    pub(crate) fn send(&self) -> Result<RwLockReadGuard<'_, ()>, Error> {
        // Only a client that is being closed holds, or waits for, the write lock.
        match self.in_flight.try_read() {
            Ok(in_flight) if !*self.is_closed.borrow() => Ok(in_flight),
            _ => Err(closed()),
        }
    }

    /// Awaits `work`, unless the client is closed first.
    pub(crate) async fn unless_closed<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        if *self.is_closed.borrow() {
            return Err(closed());
        }
        // Work that is done at once need not watch.
        let until_closed = async {
            let mut is_closed = self.is_closed.subscribe();
            _ = is_closed.wait_for(|is_closed| *is_closed).await;
        };
        tokio::select! {
            biased;
            result = work => result,
            () = until_closed => Err(closed()),
        }
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the client is closed")
}
