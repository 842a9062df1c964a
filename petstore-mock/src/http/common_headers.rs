//! The headers of every response: `Date`, the quota under `/v1`, and the announced removal on `GET
//! /pets/{petId}`.

use std::{
    cell::RefCell,
    time::{Duration, UNIX_EPOCH},
};

use http::{
    HeaderMap, HeaderValue,
    header::{DATE, LINK},
};
use httpdate::HttpDate;

use crate::{
    exchange::Rate,
    operation::{Operation, RATE_HEADERS},
};

/// Adds the headers to a response.
pub(crate) fn add(
    headers: &mut HeaderMap,
    now: Duration,
    rate: Option<Rate>,
    operation: Option<Operation>,
) {
    if operation == Some(Operation::GetPet) {
        // This also reserves space for further headers, to reallocate only once.
        headers.reserve(8);
        // RFC 9745. Its date, 5 December 2025, is an assumption: the specification does not say when
        // the deprecation began.
        headers.insert("deprecation", HeaderValue::from_static("@1764892800"));
        // RFC 8594; specification, section 9.
        let removed_on = HeaderValue::from_static("Thu, 05 Dec 2030 00:00:00 GMT");
        headers.insert("sunset", removed_on);
        // RFC 5829.
        let successor = HeaderValue::from_static("</v1/pets>; rel=\"successor-version\"");
        headers.append(LINK, successor);
    }
    LATEST.with_borrow_mut(|[date, limit, reset]| {
        headers.insert(DATE, date.of(now.as_secs(), http_date));
        if let Some(rate) = rate {
            let [limit_name, remaining_name, reset_name] = RATE_HEADERS;
            headers.insert(limit_name, limit.of(rate.limit.into(), HeaderValue::from));
            headers.insert(remaining_name, rate.remaining.into());
            headers.insert(reset_name, reset.of(rate.reset, HeaderValue::from));
        }
    });
}

fn http_date(second: u64) -> HeaderValue {
    let date = HttpDate::from(UNIX_EPOCH + Duration::from_secs(second)).to_string();
    // A date is always a valid header value.
    HeaderValue::try_from(date).unwrap_or(HeaderValue::from_static(""))
}

thread_local! {
    /// The date, limit and reset of this thread's last response. The next one probably has the same.
    static LATEST: RefCell<[Cached; 3]> = RefCell::default();
}

/// A number and its value as a header.
#[derive(Default)]
struct Cached(Option<(u64, HeaderValue)>);

impl Cached {
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
    use crate::operation::REMOVAL;

    #[test]
    fn have_the_values_given_each_time() {
        for (second, date, limit) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT", 7),
            (1, "Thu, 01 Jan 1970 00:00:01 GMT", 8),
        ] {
            let rate = Rate {
                limit,
                remaining: limit - 1,
                reset: second + 60,
            };
            let mut headers = HeaderMap::new();
            add(&mut headers, Duration::from_secs(second), Some(rate), None);
            assert_eq!(headers[DATE], date);
            let rate = ["limit", "remaining", "reset"].map(|name| {
                headers[format!("x-ratelimit-{name}")]
                    .to_str()
                    .unwrap()
                    .parse::<u64>()
                    .unwrap()
            });
            assert_eq!(rate, [limit.into(), (limit - 1).into(), second + 60]);
        }
    }

    #[test]
    fn the_dates_of_the_removal_agree_with_one_another() {
        let mut headers = HeaderMap::new();
        add(&mut headers, Duration::ZERO, None, Some(Operation::GetPet));
        assert_eq!(
            headers["sunset"],
            httpdate::fmt_http_date(UNIX_EPOCH + REMOVAL)
        );
        let since = headers["deprecation"]
            .to_str()
            .unwrap()
            .trim_start_matches('@')
            .parse()
            .unwrap();
        let since = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(since));
        assert_eq!(since, "Fri, 05 Dec 2025 00:00:00 GMT");
    }
}
