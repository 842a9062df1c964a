//! The limits of connections.

use std::time::Duration;

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
    /// The time from there to the end of its body (default: 30 s). After that, it is answered 408
    /// `request_timeout`.
    pub body: Duration,
    /// The time between requests, and before the first (default: 120 s). Then the connection is
    /// closed without a response.
    pub idle: Duration,
    /// How long a client may not read its response (default: 30 s). Then the connection is reset.
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
