//! What is known about a running call. Code that does not poll the call can read it too.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::clock;
use crate::error::{CallStats, Error};
use crate::transport::SendMark;

/// The number of the next call of this process.
static NEXT_CALL: AtomicU64 = AtomicU64::new(1);

/// Returns the number of a new call.
pub(super) fn next_call_id() -> u64 {
    NEXT_CALL.fetch_add(1, Ordering::Relaxed)
}

/// The record of one call.
pub(super) struct CallRecord {
    id: u64,
    operation: Cow<'static, str>,
    idempotent: bool,
    began: Instant,
    attempts: AtomicU32,
    waited_micros: AtomicU64,
    /// Whether the service may have acted in an attempt that has ended.
    has_acted: AtomicBool,
    /// Whether the request of the current attempt was sent.
    mark: Mutex<Option<SendMark>>,
}

impl CallRecord {
    pub(super) fn new(operation: Cow<'static, str>, idempotent: bool) -> Self {
        Self {
            id: next_call_id(),
            operation,
            idempotent,
            began: clock::now(),
            attempts: AtomicU32::new(0),
            waited_micros: AtomicU64::new(0),
            has_acted: AtomicBool::new(false),
            mark: Mutex::default(),
        }
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn operation(&self) -> &str {
        &self.operation
    }

    pub(super) fn began(&self) -> Instant {
        self.began
    }

    /// Returns the time since the call began.
    pub(super) fn elapsed(&self) -> Duration {
        clock::now().saturating_duration_since(self.began)
    }

    /// Begins an attempt. Returns the mark that the transport sets before the service can receive the
    /// request.
    pub(super) fn begin_attempt(&self) -> SendMark {
        let mark = SendMark::not_sent();
        *self.mark() = Some(mark.clone());
        mark
    }

    /// Records the end of an attempt. `may_have_acted` is about all attempts so far.
    pub(super) fn end_attempt(&self, may_have_acted: bool) {
        self.has_acted.store(may_have_acted, Ordering::Release);
        *self.mark() = None;
    }

    pub(super) fn update(&self, stats: CallStats) {
        let waited = u64::try_from(stats.waited.as_micros()).unwrap_or(u64::MAX);
        self.attempts.store(stats.attempts, Ordering::Relaxed);
        self.waited_micros.store(waited, Ordering::Relaxed);
    }

    pub(super) fn stats(&self) -> CallStats {
        let mark = self.mark();
        let may_be_sent = mark.as_ref().is_some_and(SendMark::may_be_sent);
        CallStats {
            attempts: self.attempts.load(Ordering::Relaxed),
            waited: Duration::from_micros(self.waited_micros.load(Ordering::Relaxed)),
            may_have_acted: may_be_sent || self.has_acted.load(Ordering::Acquire),
            idempotent: self.idempotent,
        }
    }

    /// Completes the error of a call that did not run to its end. From now on, its request is not
    /// sent any more.
    pub(super) fn complete(&self, error: Error) -> Error {
        if let Some(mark) = &*self.mark() {
            mark.revoke();
        }
        error
            .with_operation(self.operation.clone())
            .with_stats(self.stats())
    }

    fn mark(&self) -> MutexGuard<'_, Option<SendMark>> {
        self.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[tokio::test(start_paused = true)]
    async fn a_request_of_an_ended_call_is_not_sent_any_more() {
        for is_sent in [false, true] {
            let record = CallRecord::new("createPet".into(), false);
            let mark = record.begin_attempt();
            if is_sent {
                mark.sent();
            }
            let error = record.complete(Error::new(ErrorKind::Interrupted, "dropped"));
            assert_eq!(error.may_have_been_processed(), is_sent);
            mark.sent();
            assert_eq!(mark.may_be_sent(), is_sent, "the mark is revoked");
        }
    }
}
