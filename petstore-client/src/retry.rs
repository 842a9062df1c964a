//! Whether a failed attempt is worth another: pure verdicts, and the budget for retries.
//!
//! How long to wait is left to `backoff` and `quota`; waiting to `pipeline`.

use http::{Method, StatusCode};

/// How an attempt ended, as far as a retry depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// No connection came about, so nothing was sent.
    NeverLeft,
    /// It was sent, and no whole answer came: lost, cut short or too slow.
    Lost,
    /// A whole answer with this status.
    Answered(StatusCode),
}

/// What to do after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The answer, good or bad, is the caller's.
    Done,
    /// Another attempt after a back-off, if the budget allows it.
    BackOff,
    /// Another attempt as soon as the rate limit lets it through.
    HeldBack,
    /// Another attempt with another key, if the key's provider has one.
    Rekey,
}

/// Judges an attempt. `told_to_wait` says whether the answer carried a `Retry-After`.
pub(crate) fn verdict(method: &Method, outcome: Outcome, told_to_wait: bool) -> Verdict {
    // RFC 9110, section 9.2.2: sending these twice is the same as sending them once.
    let repeatable = method.is_idempotent();
    match outcome {
        Outcome::NeverLeft => Verdict::BackOff,
        Outcome::Lost if repeatable => Verdict::BackOff,
        Outcome::Answered(StatusCode::TOO_MANY_REQUESTS) => Verdict::HeldBack,
        Outcome::Answered(StatusCode::UNAUTHORIZED) => Verdict::Rekey,
        Outcome::Answered(StatusCode::SERVICE_UNAVAILABLE) if repeatable && told_to_wait => {
            Verdict::HeldBack
        }
        Outcome::Answered(status) if repeatable && is_transient(status) => Verdict::BackOff,
        Outcome::Lost | Outcome::Answered(_) => Verdict::Done,
    }
}

/// Returns whether the service may have acted on a request that ended so.
pub(crate) fn may_have_acted(outcome: Outcome) -> bool {
    match outcome {
        Outcome::NeverLeft => false,
        Outcome::Lost => true,
        // Only a refusal is proof. A 303 may mean "done, look there", and an unheard-of status
        // anything.
        Outcome::Answered(status) => {
            !status.is_client_error() || status == StatusCode::REQUEST_TIMEOUT
        }
    }
}

fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 500 | 502 | 503 | 504)
}

/// Keeps retries a small part of all traffic while a service is down: a retry costs one token,
/// and a success earns a tenth of one.
#[derive(Debug)]
pub(crate) struct Budget {
    tenths: u32,
}

impl Budget {
    const MOST: u32 = 100;
    const COST: u32 = 10;

    pub(crate) fn new() -> Self {
        Self { tenths: Self::MOST }
    }

    /// Takes a retry out of the budget, if there is one left.
    pub(crate) fn spend(&mut self) -> bool {
        let left = self.tenths.checked_sub(Self::COST);
        self.tenths = left.unwrap_or(self.tenths);
        left.is_some()
    }

    pub(crate) fn earn(&mut self) {
        self.tenths = (self.tenths + 1).min(Self::MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(method: &Method, status: u16) -> Verdict {
        let outcome = Outcome::Answered(StatusCode::from_u16(status).unwrap());
        verdict(method, outcome, false)
    }

    #[test]
    fn repeats_a_get_after_what_passes() {
        for status in [408, 500, 502, 503, 504] {
            assert_eq!(answered(&Method::GET, status), Verdict::BackOff, "{status}");
        }
        for status in [200, 201, 302, 400, 403, 404, 405, 410, 422, 501, 505] {
            assert_eq!(answered(&Method::GET, status), Verdict::Done, "{status}");
        }
        assert_eq!(verdict(&Method::GET, Outcome::Lost, false), Verdict::BackOff);
    }

    #[test]
    fn repeats_a_post_only_where_the_first_cannot_have_been_processed() {
        for status in [200, 408, 500, 502, 503, 504] {
            assert_eq!(answered(&Method::POST, status), Verdict::Done, "{status}");
        }
        assert_eq!(verdict(&Method::POST, Outcome::Lost, false), Verdict::Done);
        assert_eq!(verdict(&Method::POST, Outcome::NeverLeft, false), Verdict::BackOff);
        assert_eq!(answered(&Method::POST, 429), Verdict::HeldBack);
        let busy = Outcome::Answered(StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(verdict(&Method::POST, busy, true), Verdict::Done);
        assert_eq!(verdict(&Method::GET, busy, true), Verdict::HeldBack);
    }

    #[test]
    fn knows_what_may_have_been_processed() {
        assert!(!may_have_acted(Outcome::NeverLeft));
        assert!(may_have_acted(Outcome::Lost));
        for (status, expected) in
            [(201, true), (303, true), (400, false), (429, false), (408, true), (502, true)]
        {
            let outcome = Outcome::Answered(StatusCode::from_u16(status).unwrap());
            assert_eq!(may_have_acted(outcome), expected, "{status}");
        }
    }

    #[test]
    fn ten_successes_earn_a_retry() {
        let mut budget = Budget::new();
        for _ in 0..10 {
            assert!(budget.spend());
        }
        assert!(!budget.spend());
        for _ in 0..10 {
            budget.earn();
        }
        assert!(budget.spend());
        assert!(!budget.spend());
    }
}
