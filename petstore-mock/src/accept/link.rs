//! What the parts of one connection share: what it is doing, since when, and by when it must be done.
//! Reading and writing are left to `wire`, the requests to `connection`.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use super::stage::Stage;
use crate::{alarm, limits::Limits};

/// The state of one connection. Times are milliseconds since it began.
#[derive(Debug)]
pub(super) struct Link {
    born: Instant,
    /// How many requests are at hand: from their head to the end of their answer.
    at_hand: AtomicU32,
    /// While none is: since when, and whether the head of the next one has begun.
    since: AtomicU64,
    in_head: AtomicBool,
    /// Since when the client takes nothing of what is written, plus one; 0 while it does.
    stuck: AtomicU64,
    /// Whether this is HTTP/2, where bytes need not belong to a request.
    multiplexed: AtomicBool,
    /// Whether an answer left bytes of its request unread.
    unread: AtomicBool,
    /// Whether the head took too long.
    late: AtomicBool,
    stage: Stage,
}

impl Link {
    pub(super) fn new() -> Self {
        Self {
            born: alarm::now(),
            at_hand: AtomicU32::new(0),
            since: AtomicU64::new(0),
            in_head: AtomicBool::new(false),
            stuck: AtomicU64::new(0),
            multiplexed: AtomicBool::new(false),
            unread: AtomicBool::new(false),
            late: AtomicBool::new(false),
            stage: Stage::default(),
        }
    }

    /// Returns what faults do to the connection.
    pub(super) fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Notes that bytes came.
    pub(super) fn received(&self, bytes: &[u8]) {
        if self.at_hand.load(Relaxed) == 0 && !self.in_head.load(Relaxed) && !bytes.is_empty() {
            // No method of HTTP/1.1 is called like this (RFC 9113, section 3.4).
            if bytes.starts_with(b"PRI ") {
                self.multiplexed.store(true, Relaxed);
            }
            if !self.multiplexed.load(Relaxed) {
                self.in_head.store(true, Relaxed);
                self.since.store(self.age_ms(), Relaxed);
            }
        }
    }

    /// Notes that a request is at hand.
    pub(super) fn begin(&self) {
        self.at_hand.fetch_add(1, Relaxed);
        self.in_head.store(false, Relaxed);
    }

    /// Notes that a request has been answered.
    pub(super) fn end(&self) {
        self.since.store(self.age_ms(), Relaxed);
        self.at_hand.fetch_sub(1, Relaxed);
    }

    /// Notes whether the client takes what is written.
    pub(super) fn wrote(&self, taken: bool) {
        let stuck = self.stuck.load(Relaxed);
        if taken && stuck != 0 {
            self.stuck.store(0, Relaxed);
        } else if !taken && stuck == 0 {
            self.stuck.store(self.age_ms() + 1, Relaxed);
        }
    }

    /// Notes that an answer left bytes of its request unread.
    pub(super) fn leave_unread(&self) {
        self.unread.store(true, Relaxed);
    }

    pub(super) fn has_unread(&self) -> bool {
        self.unread.load(Relaxed)
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.stuck.load(Relaxed) != 0
    }

    pub(super) fn is_in_head(&self) -> bool {
        self.in_head.load(Relaxed)
    }

    pub(super) fn is_multiplexed(&self) -> bool {
        self.multiplexed.load(Relaxed)
    }

    pub(super) fn is_late(&self) -> bool {
        self.late.load(Relaxed)
    }

    /// Waits until a limit is passed, and notes whether it was that of the head.
    pub(super) async fn overtime(&self, limits: Limits) {
        let times = [limits.head, limits.idle, limits.write];
        // What begins after a look is not over before the next one.
        let Some(pause) = times.into_iter().filter(|limit| !limit.is_zero()).min() else {
            return std::future::pending().await;
        };
        loop {
            let left = self.due(limits).map(|due| due.saturating_sub(self.age()));
            if left == Some(Duration::ZERO) {
                self.late.store(!self.is_stuck() && self.in_head.load(Relaxed), Relaxed);
                return;
            }
            alarm::ring_after(left.unwrap_or(pause).min(pause)).await;
        }
    }

    /// Returns how old the connection must not grow as things are, if there is a limit.
    fn due(&self, limits: Limits) -> Option<Duration> {
        let (since, limit) = match self.stuck.load(Relaxed).checked_sub(1) {
            Some(stuck) => (stuck, limits.write),
            None if self.at_hand.load(Relaxed) > 0 || self.stage.holds_back() => return None,
            None if self.in_head.load(Relaxed) => (self.since.load(Relaxed), limits.head),
            None => (self.since.load(Relaxed), limits.idle),
        };
        (!limit.is_zero()).then(|| Duration::from_millis(since).saturating_add(limit))
    }

    fn age(&self) -> Duration {
        alarm::now().saturating_duration_since(self.born)
    }

    fn age_ms(&self) -> u64 {
        // Rounded up, so that no limit is passed too early.
        u64::try_from(self.age().as_millis()).unwrap_or(u64::MAX - 2) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(link: &Link) -> Option<u64> {
        let due = link.due(Limits::default()).map(|due| due.as_secs());
        // The rest is what the test itself takes.
        due.map(|seconds| seconds.next_multiple_of(10))
    }

    #[test]
    fn what_is_waited_for_says_how_long() {
        let link = Link::new();
        assert_eq!(due(&link), Some(120), "before the first byte");
        link.received(b"GE");
        assert_eq!(due(&link), Some(10), "in the head");
        link.begin();
        assert_eq!(due(&link), None, "while it is being answered");
        link.wrote(false);
        assert_eq!(due(&link), Some(30), "while the client takes nothing");
        link.wrote(true);
        assert_eq!(due(&link), None);
        link.end();
        assert_eq!(due(&link), Some(120), "between two requests");
        assert_eq!(link.due(Limits::default().with_idle(Duration::ZERO)), None);
    }

    #[test]
    fn bytes_of_http_2_begin_no_head() {
        let link = Link::new();
        link.received(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        link.received(b"\0\0\x08\x06");
        assert_eq!(due(&link), Some(120));
    }

    #[tokio::test]
    async fn a_limit_that_begins_later_is_kept_as_exactly() {
        let limits = Limits::default().with_head(Duration::from_millis(30));
        let link = Link::new();
        let begun = async {
            alarm::ring_after(Duration::from_millis(45)).await;
            link.received(b"G");
            alarm::now()
        };
        let ((), begun) = tokio::join!(link.overtime(limits), begun);
        assert!(begun.elapsed() >= Duration::from_millis(30) && link.is_late());
    }

    #[tokio::test]
    async fn times_of_zero_are_no_limits() {
        let zero = Duration::ZERO;
        let limits = Limits::default().with_head(zero).with_idle(zero).with_write(zero);
        let link = Link::new();
        for step in
            [|_: &Link| {}, |link: &Link| link.received(b"G"), |link: &Link| link.wrote(false)]
        {
            step(&link);
            assert_eq!(link.due(limits), None);
        }
        let overtime = tokio::time::timeout(Duration::ZERO, link.overtime(limits));
        assert!(overtime.await.is_err());
    }
}
