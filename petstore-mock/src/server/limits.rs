//! What the server grants its clients: so many connections, and so much time. Holding them to it is
//! left to `accept`.

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
/// let strict = Limits::default().with_connections(100).with_head(Duration::from_secs(1));
/// assert_eq!(strict.idle, Duration::from_secs(120));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How many connections are served at once: 4,096 unless set. Those beyond are answered 503
    /// `overloaded` and closed; so that the answer can be read, up to 64 of them are there as well.
    pub connections: usize,
    /// From the first byte of a request to the end of its header fields: 10 seconds unless set. What
    /// takes longer is answered 408 `request_timeout`.
    pub head: Duration,
    /// From there to the end of its body: 30 seconds unless set. What takes longer is answered 408
    /// `request_timeout`.
    pub body: Duration,
    /// Between one request and the next, and before the first: 120 seconds unless set. Then the
    /// connection is closed, without a word.
    pub idle: Duration,
    /// How long the client takes nothing of an answer that is there: 30 seconds unless set. Then the
    /// connection is reset.
    pub write: Duration,
    /// How long a server that stops waits for requests at hand: 5 seconds unless set; zero cuts them
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

impl Limits {
    /// Sets how many connections are served at once; none is as good as one.
    #[must_use]
    pub const fn with_connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Sets how long the head of a request may take.
    #[must_use]
    pub const fn with_head(mut self, head: Duration) -> Self {
        self.head = head;
        self
    }

    /// Sets how long the body of a request may take.
    #[must_use]
    pub const fn with_body(mut self, body: Duration) -> Self {
        self.body = body;
        self
    }

    /// Sets how long a connection may be idle.
    #[must_use]
    pub const fn with_idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// Sets how long a client may take nothing of an answer.
    #[must_use]
    pub const fn with_write(mut self, write: Duration) -> Self {
        self.write = write;
        self
    }

    /// Sets how long a server that stops waits for requests at hand.
    #[must_use]
    pub const fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }
}
