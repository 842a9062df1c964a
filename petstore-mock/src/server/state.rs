//! The shared state of one connection: what it waits for, its time limits, its speed, and how it
//! ends.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::Notify,
};

use crate::{
    clock::{Clock, real_time},
    fault::{EndMode, Pace},
    http::ErrorCode,
};

/// The maximum number of connections, and time limits for slow clients.
///
/// The limits use real time, not the mock's clock or the runtime's. They do not run while the mock
/// processes a request. Zero disables a time limit.
///
/// ```
/// use std::time::Duration;
/// use petstore_mock::Limits;
///
/// let head = Duration::from_secs(1);
/// let strict = Limits { connections: 100, head, ..Limits::default() };
/// assert_eq!(strict.idle, Duration::from_secs(120));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of connections, at least 1 (default: 4,096). Others are answered 503
    /// `overloaded` and closed. Up to 64 such connections can exist at once.
    pub connections: usize,
    /// The time from the first byte of a request to the end of its header fields (default: 10 s).
    /// After that, it is answered 408 `request_timeout`.
    pub head: Duration,
    /// The time from the end of the header fields to the end of the body (default: 30 s). After
    /// that, it is answered 408 `request_timeout`.
    pub body: Duration,
    /// The time between requests, and before the first (default: 120 s). Then the connection is
    /// closed without a response.
    pub idle: Duration,
    /// After this time (default: 30 s), a connection is reset if its client does not read the response.
    pub write: Duration,
    /// How long a stopping server waits for requests in flight (default: 5 s). Zero closes their
    /// connections immediately.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4_096,
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            idle: Duration::from_secs(120),
            write: Duration::from_secs(30),
            grace: Duration::from_secs(5),
        }
    }
}

/// A stream over a socket.
pub(super) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {
    fn socket(&self) -> &TcpStream;
}

impl Transport for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

/// How many bytes of a head are stored, for the record of a refusal.
const MAX_REMEMBERED_BYTES: usize = 256;

/// The state of one connection, shared by its clones.
#[derive(Clone)]
pub(super) struct Shared(Arc<(Mutex<ConnectionState>, Notify)>);

/// The state of one connection.
pub(super) struct ConnectionState {
    /// The number of requests in flight, from their head to the end of their response.
    in_flight: u32,
    /// If no request is in flight: since when, and whether the head of the next one has begun.
    since: Instant,
    in_head: bool,
    /// The start of that head.
    pub(super) head: Vec<u8>,
    /// Since when the client does not read.
    blocked_since: Option<Instant>,
    /// The number of response bodies that HTTP/2's flow control holds back, and since when.
    held_bodies: u32,
    held_since: Instant,
    /// Whether it is HTTP/2, where bytes need not belong to a request, and requests are separate
    /// tasks.
    pub(super) is_http2: bool,
    /// Whether the body of the request in flight is long and has not been read completely.
    pub(super) has_unread_body: bool,
    /// Whether a response was sent before its request was read completely.
    pub(super) must_drain: bool,
    /// The unwritten error of a request that hyper refused, or whose head took too long.
    pub(super) refused: Option<ErrorCode>,
    /// The speed that a fault sets for written bytes.
    pub(super) throttle: Option<Throttle>,
    /// How a fault ends the connection when everything before the end is written.
    pub(super) end: Option<EndMode>,
    /// The stream after hyper has dropped it.
    pub(super) stream: Option<Box<dyn Transport>>,
}

impl Shared {
    pub(super) fn new() -> Self {
        let state = ConnectionState {
            in_flight: 0,
            since: real_time::now(),
            in_head: false,
            head: Vec::new(),
            blocked_since: None,
            held_bodies: 0,
            held_since: real_time::now(),
            is_http2: false,
            has_unread_body: false,
            must_drain: false,
            refused: None,
            throttle: None,
            end: None,
            stream: None,
        };
        Self(Arc::new((Mutex::new(state), Notify::new())))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        // Every change is a few assignments, so a panic does no harm.
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a fault end the connection.
    pub(super) fn end(&self, how: EndMode) {
        // A stalled body calls this at each poll. Notifying each time would be an endless loop.
        if self.lock().end.replace(how).is_none() {
            self.0.1.notify_one();
        }
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

    /// Waits until a time limit is exceeded. Sets the error if it was the limit of a head.
    pub(super) async fn overdue(&self, limits: Limits) {
        let limits_in_use = [limits.head, limits.idle, limits.write]
            .into_iter()
            .filter(|limit| !limit.is_zero());
        // The shortest limit is the interval of the checks: a wait that begins after a check cannot
        // be overdue before the next one.
        let Some(pause) = limits_in_use.min() else {
            return std::future::pending().await;
        };
        loop {
            let left = {
                let mut state = self.lock();
                let left = state.time_left(limits, real_time::now());
                if left == Some(Duration::ZERO) {
                    if !state.is_blocked() && state.in_head {
                        state.refused = Some(ErrorCode::RequestTimeout);
                    }
                    return;
                }
                left
            };
            real_time::sleep(left.unwrap_or(pause).min(pause)).await;
        }
    }
}

/// A request in flight, until it is dropped.
pub(super) struct InFlightGuard {
    state: Shared,
    is_http2: bool,
    /// Whether HTTP/2's flow control may hold back a part of the body of the response.
    is_held: bool,
}

impl InFlightGuard {
    pub(super) fn begin(state: Shared) -> Self {
        let is_http2 = {
            let mut state = state.lock();
            state.begin();
            state.is_http2
        };
        Self {
            state,
            is_http2,
            is_held: false,
        }
    }

    /// Records that a part of the body waits until the client accepts more.
    pub(super) fn hold_body(&mut self) {
        if self.is_http2 && !std::mem::replace(&mut self.is_held, true) {
            let mut state = self.state.lock();
            state.held_bodies += 1;
            state.held_since = real_time::now();
        }
    }

    /// Records that the part was sent or dropped.
    pub(super) fn release_body(&mut self) {
        if std::mem::take(&mut self.is_held) {
            let mut state = self.state.lock();
            state.held_bodies -= 1;
            state.held_since = real_time::now();
        }
    }

    /// Lets a fault end the connection.
    pub(super) fn end(&self, how: EndMode) {
        self.state.end(how);
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.release_body();
        self.state.lock().finish();
    }
}

impl ConnectionState {
    /// Records bytes that were read.
    pub(super) fn received(&mut self, bytes: &[u8]) {
        if self.in_flight > 0 || self.in_head || self.is_http2 || bytes.is_empty() {
            return;
        }
        // HTTP/1.1 has no method with this name (RFC 9113, section 3.4).
        if bytes.starts_with(b"PRI ") {
            self.is_http2 = true;
            return;
        }
        (self.in_head, self.since) = (true, real_time::now());
        self.head.clear();
        self.head
            .extend_from_slice(&bytes[..bytes.len().min(MAX_REMEMBERED_BYTES)]);
    }

    /// Records that a request begins.
    pub(super) fn begin(&mut self) {
        self.in_flight += 1;
        self.in_head = false;
        self.head.clear();
    }

    /// Records that a request has ended.
    pub(super) fn finish(&mut self) {
        self.in_flight -= 1;
        self.since = real_time::now();
    }

    /// Records whether the client reads.
    pub(super) fn wrote(&mut self, is_read: bool) {
        if is_read {
            self.blocked_since = None;
        } else if self.blocked_since.is_none() {
            self.blocked_since = Some(real_time::now());
        }
    }

    /// Whether the client does not read.
    pub(super) fn is_blocked(&self) -> bool {
        self.unread_since().is_some()
    }

    fn unread_since(&self) -> Option<Instant> {
        self.blocked_since
            .or_else(|| (self.held_bodies > 0).then_some(self.held_since))
    }

    /// Whether no request is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    /// Whether a stopping server may close the connection without waiting.
    pub(super) fn can_be_cut(&self) -> bool {
        self.in_head || matches!(self.end, Some(EndMode::Hang))
    }

    /// Returns the time left until a limit, if any.
    fn time_left(&self, limits: Limits, now: Instant) -> Option<Duration> {
        let is_throttled = self.throttle.as_ref().is_some_and(Throttle::is_waiting);
        let (since, limit) = match self.unread_since() {
            Some(since) => (since, limits.write),
            None if self.in_flight > 0 || is_throttled => return None,
            None if self.in_head => (self.since, limits.head),
            None => (self.since, limits.idle),
        };
        let passed = now.saturating_duration_since(since);
        (!limit.is_zero()).then(|| limit.saturating_sub(passed))
    }
}

pub(super) type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

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
        Self {
            pace,
            began: clock.since_epoch(),
            clock,
            sent: 0,
            sleep: None,
        }
    }

    /// Whether bytes wait to be written.
    pub(super) fn is_waiting(&self) -> bool {
        self.sleep.is_some()
    }

    /// Counts written bytes.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.sent = self
            .sent
            .saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn left(state: &ConnectionState) -> Option<u64> {
        let left = state.time_left(Limits::default(), state.since);
        left.map(|left| left.as_secs())
    }

    #[test]
    fn each_kind_of_wait_has_its_limit() {
        let shared = Shared::new();
        let mut state = shared.lock();
        assert_eq!(left(&state), Some(120), "before the first byte");
        state.received(b"GE");
        assert_eq!(left(&state), Some(10), "in the head");
        assert_eq!(state.head, b"GE");
        state.begin();
        assert_eq!(left(&state), None, "while it is being answered");
        state.wrote(false);
        assert_eq!(left(&state), Some(30), "while the client takes nothing");
        state.wrote(true);
        assert_eq!(left(&state), None);
        state.finish();
        assert_eq!(left(&state), Some(120), "between two requests");
        let unlimited = Limits {
            idle: Duration::ZERO,
            ..Limits::default()
        };
        assert_eq!(state.time_left(unlimited, state.since), None);
    }

    #[test]
    fn bytes_of_http_2_begin_no_head() {
        let shared = Shared::new();
        let mut state = shared.lock();
        state.received(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        state.received(b"\0\0\x08\x06");
        assert_eq!(left(&state), Some(120));
    }

    #[tokio::test]
    async fn a_limit_that_begins_later_is_kept_as_exactly() {
        let limits = Limits {
            head: Duration::from_millis(30),
            ..Limits::default()
        };
        let shared = Shared::new();
        let begun = async {
            real_time::sleep(Duration::from_millis(45)).await;
            shared.lock().received(b"G");
            real_time::now()
        };
        let ((), begun) = tokio::join!(shared.overdue(limits), begun);
        assert!(begun.elapsed() >= Duration::from_millis(30));
        assert_eq!(shared.lock().refused, Some(ErrorCode::RequestTimeout));
    }

    #[tokio::test]
    async fn times_of_zero_mean_no_limit() {
        let zero = Duration::ZERO;
        let limits = Limits {
            head: zero,
            idle: zero,
            write: zero,
            ..Limits::default()
        };
        let shared = Shared::new();
        let steps: [fn(&mut ConnectionState); 3] = [
            |_| {},
            |state| state.received(b"G"),
            |state| state.wrote(false),
        ];
        for step in steps {
            step(&mut shared.lock());
            assert_eq!(shared.lock().time_left(limits, real_time::now()), None);
        }
        assert!(
            tokio::time::timeout(zero, shared.overdue(limits))
                .await
                .is_err()
        );
    }
}
