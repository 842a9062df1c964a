//! What the service's answers mean for the requests to come: a pure function of answers and time.
//!
//! Holds requests back while a refusal asks for it. Waiting is left to `gate`.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};
use tokio::time::Instant;

use crate::clock::after;
use crate::error::Quota;
use crate::headers::{rate_limit, retry_after};

/// How long a refusal that names no time holds requests back (specification, section 8: quotas
/// are counted by the minute).
const UNNAMED_WAIT: Duration = Duration::from_secs(60);
/// A refusal never lets the next request go at once, whatever it says.
const LEAST_WAIT: Duration = Duration::from_secs(1);
/// A reset that is further off than this is not the minute's.
const MINUTE: Duration = Duration::from_secs(90);

/// A stretch of time in which nothing may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) until: Instant,
    /// The same moment on the service's clock.
    pub(crate) until_service: SystemTime,
    pub(crate) quota: Quota,
}

/// What is known of a key's limits.
#[derive(Debug, Default)]
pub(crate) struct State {
    block: Option<Block>,
}

/// What of an answer matters here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer<'a> {
    pub(crate) status: StatusCode,
    pub(crate) headers: &'a HeaderMap,
    /// The service's code for the error, where it sent one.
    pub(crate) code: Option<&'a str>,
    /// When it came.
    pub(crate) at: Instant,
    /// When it came, on the service's clock.
    pub(crate) service_time: SystemTime,
}

impl State {
    /// Returns what holds a request back at `now`.
    pub(crate) fn blocked(&self, now: Instant) -> Option<Block> {
        self.block.filter(|block| block.until > now)
    }

    /// Takes an answer in. A later block replaces an earlier one, never the other way round.
    pub(crate) fn observe(&mut self, answer: &Answer<'_>) -> Option<Block> {
        let block = refusal(answer)?;
        if self.block.is_none_or(|known| known.until < block.until) {
            self.block = Some(block);
        }
        Some(block)
    }
}

/// Returns the block that a 429, or a 503 with `Retry-After`, asks for.
fn refusal(answer: &Answer<'_>) -> Option<Block> {
    let asked = retry_after(answer.headers, answer.service_time);
    let wait = match answer.status {
        StatusCode::TOO_MANY_REQUESTS => {
            asked.or_else(|| until_reset(answer)).unwrap_or(UNNAMED_WAIT).max(LEAST_WAIT)
        }
        StatusCode::SERVICE_UNAVAILABLE => asked?.max(LEAST_WAIT),
        _ => return None,
    };
    Some(Block {
        until: after(answer.at, wait),
        until_service: answer.service_time.checked_add(wait)?,
        quota: which(answer, wait),
    })
}

fn until_reset(answer: &Answer<'_>) -> Option<Duration> {
    let quota = rate_limit(answer.headers, answer.service_time)?;
    // A refusal with requests left, or after the reset, does not come from this quota.
    let left = quota.reset.duration_since(answer.service_time).ok()?;
    (quota.remaining == 0).then_some(left)
}

/// Tells which limit a refusal is about: the ban by its code, a quota by its horizon, and only
/// where the headers describe a quota that is used up and whose reset is the wait's end.
fn which(answer: &Answer<'_>, wait: Duration) -> Quota {
    if answer.code == Some("key_banned") {
        return Quota::Banned;
    }
    match until_reset(answer) {
        Some(left) if left.abs_diff(wait) > Duration::from_secs(2) => Quota::Unknown,
        Some(left) if left <= MINUTE => Quota::Minute,
        Some(_) => Quota::Day,
        None => Quota::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn block(
        status: u16,
        code: Option<&str>,
        lines: &[(&'static str, &str)],
    ) -> Option<(u64, Quota)> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        let at = Instant::now();
        let mut state = State::default();
        state.observe(&Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: &headers,
            code,
            at,
            service_time: SystemTime::UNIX_EPOCH + Duration::from_secs(NOW),
        });
        let block = state.blocked(at)?;
        Some(((block.until - at).as_secs(), block.quota))
    }

    #[test]
    fn a_429_holds_back_for_its_retry_after() {
        assert_eq!(block(429, None, &[("retry-after", "30")]), Some((30, Quota::Unknown)));
    }

    #[test]
    fn a_429_without_a_usable_time_holds_back_until_the_reset_or_a_minute() {
        let reset = [
            ("x-ratelimit-limit", "60"),
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "1800000017"),
        ];
        assert_eq!(block(429, None, &reset), Some((17, Quota::Minute)));
        assert_eq!(block(429, None, &[("retry-after", " ")]), Some((60, Quota::Unknown)));
    }

    #[test]
    fn a_429_never_lets_the_next_request_go_at_once() {
        assert_eq!(block(429, None, &[("retry-after", "0")]), Some((1, Quota::Unknown)));
    }

    #[test]
    fn only_a_503_with_retry_after_holds_back() {
        assert_eq!(block(503, None, &[]), None);
        assert_eq!(block(503, None, &[("retry-after", "5")]), Some((5, Quota::Unknown)));
        assert_eq!(block(500, None, &[("retry-after", "5")]), None);
    }

    #[test]
    fn tells_the_quota_by_code_or_horizon() {
        let quota = |reset, wait| {
            let lines = [
                ("x-ratelimit-limit", "1000"),
                ("x-ratelimit-remaining", "0"),
                ("x-ratelimit-reset", reset),
                ("retry-after", wait),
            ];
            block(429, None, &lines).unwrap().1
        };
        assert_eq!(quota("1800000040", "40"), Quota::Minute);
        assert_eq!(quota("1800040000", "40000"), Quota::Day);
        assert_eq!(quota("1800000040", "300"), Quota::Unknown);
        let banned = block(429, Some("key_banned"), &[("retry-after", "300")]);
        assert_eq!(banned, Some((300, Quota::Banned)));
    }

    #[test]
    fn an_earlier_block_never_replaces_a_later_one() {
        let at = Instant::now();
        let mut state = State::default();
        for seconds in ["30", "5"] {
            let mut headers = HeaderMap::new();
            headers.insert("retry-after", seconds.parse().unwrap());
            state.observe(&Answer {
                status: StatusCode::TOO_MANY_REQUESTS,
                headers: &headers,
                code: None,
                at,
                service_time: SystemTime::UNIX_EPOCH + Duration::from_secs(NOW),
            });
        }
        let until = state.blocked(at).unwrap().until;
        assert_eq!(until - at, Duration::from_secs(30));
        assert_eq!(state.blocked(until), None);
    }
}
