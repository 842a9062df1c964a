//! What is known about a running call. Code that does not poll the call can read it too.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
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
    began: Instant,
    latest: Mutex<Latest>,
}

struct Latest {
    stats: CallStats,
    /// Whether the request of the current attempt was sent.
    mark: Option<SendMark>,
}

impl CallRecord {
    /// Creates the record of a call that begins now.
    pub(super) fn new(operation: Cow<'static, str>, idempotent: bool, now: Instant) -> Self {
        let stats = CallStats {
            idempotent,
            ..CallStats::default()
        };
        Self {
            id: next_call_id(),
            operation,
            began: now,
            latest: Mutex::new(Latest { stats, mark: None }),
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

    /// Adds a wait for a permit, or before another attempt.
    pub(super) fn waited(&self, duration: Duration) {
        self.latest().stats.waited += duration;
    }

    /// Counts an attempt. Returns its number.
    pub(super) fn begin_attempt(&self) -> u32 {
        let stats = &mut self.latest().stats;
        stats.attempts += 1;
        stats.attempts
    }

    /// Returns the mark that the transport sets before the service can receive the request.
    pub(super) fn mark_sending(&self) -> SendMark {
        let mark = SendMark::not_sent();
        self.latest().mark = Some(mark.clone());
        mark
    }

    /// Records the end of an attempt, and whether the service may have acted on it.
    pub(super) fn end_attempt(&self, may_have_acted: bool) {
        let mut latest = self.latest();
        latest.stats.may_have_acted |= may_have_acted;
        latest.mark = None;
    }

    pub(super) fn stats(&self) -> CallStats {
        let latest = self.latest();
        let may_be_sent = latest.mark.as_ref().is_some_and(SendMark::may_be_sent);
        CallStats {
            may_have_acted: may_be_sent || latest.stats.may_have_acted,
            ..latest.stats
        }
    }

    /// Adds the operation and the statistics of the call to an error.
    pub(super) fn complete(&self, error: Error) -> Error {
        error
            .with_operation(self.operation.clone())
            .with_stats(self.stats())
    }

    /// Completes the error of a call that did not run to its end. From now on, its request is not
    /// sent any more.
    pub(super) fn cut_short(&self, error: Error) -> Error {
        if let Some(mark) = &self.latest().mark {
            mark.revoke();
        }
        self.complete(error)
    }

    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[tokio::test(start_paused = true)]
    async fn a_request_of_an_ended_call_is_not_sent_any_more() {
        for is_sent in [false, true] {
            let record = CallRecord::new("createPet".into(), false, clock::now());
            let mark = record.mark_sending();
            if is_sent {
                mark.sent();
            }
            let error = record.cut_short(Error::new(ErrorKind::Interrupted, "dropped"));
            assert_eq!(error.may_have_been_processed(), is_sent);
            mark.sent();
            assert_eq!(mark.may_be_sent(), is_sent, "the mark is revoked");
        }
    }
}
