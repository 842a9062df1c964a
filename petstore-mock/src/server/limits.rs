//! How many connections a server takes, and how long clients may take.

use std::time::Duration;

/// How many connections there may be, and how long a client may keep each waiting.
///
/// They guard the machine, so they are real time, whatever the mock's clock and the runtime's do. No
/// limit runs while a request is being answered, however long that takes. A time of zero is no limit.
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
    /// How many connections are served at once, at least one: 4,096 unless set. Those beyond are answered 503
    /// `overloaded` and closed; so that the answer can be read, up to 64 of them are there as well.
    pub connections: usize,
    /// From the first byte of a request to the end of its header fields: 10 seconds unless set. What
    /// takes longer is answered 408 `request_timeout`.
    pub head: Duration,
    /// From there to the end of its body: 30 seconds unless set. What takes longer is answered 408
    /// `request_timeout`.
    pub body: Duration,
    /// Between one request and the next, and before the first: 120 seconds unless set. Then the
    /// connection is closed without a response.
    pub idle: Duration,
    /// How long the client takes nothing of an answer that is there: 30 seconds unless set. Then the
    /// connection is reset.
    pub write: Duration,
    /// How long a server that stops waits for requests in flight: 5 seconds unless set; zero cuts them
    /// at once.
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
