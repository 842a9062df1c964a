//! What every answer has: the mock's own time and, under `/v1`, the quota.

use std::{
    cell::RefCell,
    time::{Duration, UNIX_EPOCH},
};

use http::{HeaderMap, HeaderName, HeaderValue, header::DATE};
use httpdate::HttpDate;

use crate::quota::Rate;

const RATE_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const RATE_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RATE_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Adds it to an answer.
pub(crate) fn stamp(headers: &mut HeaderMap, now: Duration, rate: Option<Rate>) {
    LATEST.with_borrow_mut(|latest| {
        headers.insert(DATE, latest.date.of(now.as_secs(), date));
        if let Some(rate) = rate {
            headers.insert(RATE_LIMIT, latest.limit.of(rate.limit.into(), HeaderValue::from));
            headers.insert(RATE_REMAINING, rate.remaining.into());
            headers.insert(RATE_RESET, latest.reset.of(rate.reset, HeaderValue::from));
        }
    });
}

fn date(second: u64) -> HeaderValue {
    let date = HttpDate::from(UNIX_EPOCH + Duration::from_secs(second)).to_string();
    // Letters, digits, commas and colons: a date is a header.
    HeaderValue::try_from(date).unwrap_or(HeaderValue::from_static(""))
}

thread_local! {
    /// The values that the last answer of this thread had: most likely the next one has the same.
    static LATEST: RefCell<Latest> = RefCell::default();
}

#[derive(Default)]
struct Latest {
    date: Kept,
    limit: Kept,
    reset: Kept,
}

/// A number and its value as a header.
#[derive(Default)]
struct Kept(Option<(u64, HeaderValue)>);

impl Kept {
    fn of(&mut self, number: u64, render: fn(u64) -> HeaderValue) -> HeaderValue {
        match &self.0 {
            Some((same, value)) if *same == number => value.clone(),
            _ => self.0.insert((number, render(number))).1.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_it_is_told_each_time() {
        for (second, date, limit) in
            [(0, "Thu, 01 Jan 1970 00:00:00 GMT", 7), (1, "Thu, 01 Jan 1970 00:00:01 GMT", 8)]
        {
            let rate = Rate { limit, remaining: limit - 1, reset: second + 60 };
            let mut headers = HeaderMap::new();
            stamp(&mut headers, Duration::from_secs(second), Some(rate));
            assert_eq!(headers[DATE], date);
            let rate = ["limit", "remaining", "reset"].map(|name| {
                headers[format!("x-ratelimit-{name}")].to_str().unwrap().parse::<u64>().unwrap()
            });
            assert_eq!(rate, [limit.into(), (limit - 1).into(), second + 60]);
        }
    }
}
