//! What happens while the service fails: nothing is sent, a request that reads asks from time to
//! time, and then one row goes alone.

use std::time::Duration;

use tokio::time::Instant;

/// After this many failures in a row, nothing is sent.
const MAX_FAILURES: u32 = 5;
/// The first pause. Each one after it is twice as long, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// What may be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Rows may be sent.
    Send,
    /// Nothing may be sent until this time.
    Wait(Instant),
    /// A request that reads may ask whether the service works again.
    Ask,
    /// The service answers again. One row may be sent alone.
    SendOne,
}

/// Failures of the service, as long as they follow each other.
#[derive(Debug)]
pub(super) struct Outage {
    retry_for: Duration,
    failures: u32,
    first_failure: Option<Instant>,
    pause: Option<Pause>,
}

#[derive(Debug)]
struct Pause {
    length: Duration,
    until: Instant,
    /// Whether the service has answered since.
    has_answered: bool,
}

impl Outage {
    pub(super) fn new(retry_for: Duration) -> Self {
        Self {
            retry_for,
            failures: 0,
            first_failure: None,
            pause: None,
        }
    }

    pub(super) fn next(&self) -> Next {
        match &self.pause {
            None => Next::Send,
            Some(pause) if pause.has_answered => Next::SendOne,
            Some(pause) if pause.until > Instant::now() => Next::Wait(pause.until),
            Some(_) => Next::Ask,
        }
    }

    /// Notes that a row had an outcome. During an outage, only that of the row that went alone
    /// counts.
    pub(super) fn succeeded(&mut self) {
        if self.pause.as_ref().is_none_or(|pause| pause.has_answered) {
            self.failures = 0;
            self.first_failure = None;
            self.pause = None;
        }
    }

    /// Notes that the service has answered the request that asked.
    pub(super) fn answered(&mut self) {
        if let Some(pause) = &mut self.pause {
            pause.has_answered = true;
        }
    }

    /// Notes a failure. `told` is the wait that the service asks for. Returns how long the import has
    /// waited for the service, if it must not wait any longer.
    pub(super) fn failed(&mut self, told: Option<Duration>) -> Option<Duration> {
        let now = Instant::now();
        self.failures += 1;
        let first = *self.first_failure.get_or_insert(now);
        let length = match &self.pause {
            // The row was sent before the pause began.
            Some(pause) if pause.until > now && !pause.has_answered => match told {
                Some(_) => pause.length,
                None => return None,
            },
            Some(pause) => LONGEST_PAUSE.min(pause.length * 2),
            None if self.failures < MAX_FAILURES && told.is_none() => return None,
            None => FIRST_PAUSE,
        };
        let left = (first + self.retry_for).saturating_duration_since(now);
        let told = told.unwrap_or_default();
        if left.is_zero() || told > left {
            let has_waited = self.pause.is_some();
            return Some(if has_waited {
                now.duration_since(first)
            } else {
                Duration::ZERO
            });
        }
        self.pause = Some(Pause {
            length,
            until: now + length.min(left).max(told),
            has_answered: false,
        });
        None
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_the_row_that_goes_alone_ends_the_outage() {
        let mut outage = Outage::new(Duration::from_secs(60));
        for _ in 0..MAX_FAILURES {
            assert_eq!(outage.failed(None), None);
        }
        // A row that was in flight before.
        outage.succeeded();
        assert_eq!(outage.next(), Next::Wait(Instant::now() + FIRST_PAUSE));
        advance(FIRST_PAUSE).await;
        outage.answered();
        assert_eq!(outage.next(), Next::SendOne);
        outage.succeeded();
        assert_eq!(outage.next(), Next::Send);
    }
}
