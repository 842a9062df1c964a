//! The shared state of one connection: its speed, and how it ends.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::Notify,
};

use crate::{
    clock::Clock,
    fault::{EndMode, Pace},
    lock::lock,
};

/// A stream over a socket.
pub(super) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {
    fn socket(&self) -> &TcpStream;
}

impl Transport for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

/// The state of one connection, shared by its clones.
#[derive(Clone, Default)]
pub(super) struct Shared(Arc<(Mutex<ConnectionState>, Notify)>);

/// The state of one connection.
#[derive(Default)]
pub(super) struct ConnectionState {
    /// The number of requests in flight, from their head to the end of their response.
    in_flight: u32,
    is_http2: bool,
    /// Whether the last response closes the connection, perhaps before its request was read.
    pub(super) must_drain: bool,
    /// The speed that a fault sets for written bytes.
    pub(super) throttle: Option<Throttle>,
    /// How a fault ends the connection when everything before the end is written.
    pub(super) end: Option<EndMode>,
    /// The stream after hyper has dropped it.
    pub(super) stream: Option<Box<dyn Transport>>,
}

impl ConnectionState {
    /// Whether no request is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        lock(&self.0.0)
    }

    /// Begins a request.
    pub(super) fn begin(&self, is_http2: bool) -> InFlight {
        let mut state = self.lock();
        state.in_flight += 1;
        state.is_http2 = is_http2;
        drop(state);
        InFlight(self.clone())
    }

    /// Waits until a fault ends the connection. With HTTP/2, requests are separate tasks, which
    /// must wake the connection's task.
    pub(super) async fn ended(&self) {
        loop {
            self.0.1.notified().await;
            let state = self.lock();
            if state.is_http2 && matches!(state.end, Some(EndMode::Reset | EndMode::Close)) {
                return;
            }
        }
    }
}

/// A request in flight, until it is dropped.
pub(super) struct InFlight(Shared);

impl InFlight {
    /// Returns the state of its connection.
    pub(super) fn connection(&self) -> MutexGuard<'_, ConnectionState> {
        self.0.lock()
    }

    /// Lets a fault end the connection.
    pub(super) fn end(&self, how: EndMode) {
        // A hanging body calls this at each poll. Notifying each time would be an endless loop.
        if self.connection().end.replace(how).is_none() {
            self.0.0.1.notify_one();
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.lock().in_flight -= 1;
    }
}

/// A speed limit on the mock's clock.
pub(super) struct Throttle {
    pace: Pace,
    clock: Clock,
    began: Duration,
    sent: u64,
    sleep: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Throttle {
    pub(super) fn new(pace: Pace, clock: Clock) -> Self {
        Self {
            pace,
            began: clock.since_epoch(),
            clock,
            sent: 0,
            sleep: None,
        }
    }

    /// Counts written bytes.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes as u64);
    }

    /// Returns how many of the `wanted` bytes may be written now.
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
