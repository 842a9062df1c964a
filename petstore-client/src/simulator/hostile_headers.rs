//! Tests of hostile headers: the limiter neither panics nor makes a call wait too long.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::world::scenarios::check;
use crate::clock;
use crate::http::headers::retry_after;
use crate::rate_limit::{Acquire, Limiter, Plan, Policy, Priority, QuotaWindow, TimeSource};

const MAX_WAIT: Duration = Duration::from_secs(120);

/// Generates numbers at every bound, numbers as people write them, lists, dates, and any bytes.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let bounds = [
        "0",
        "1",
        "60",
        "999999999",
        "1000000000",
        "99999999999",
        "100000000000",
        "253370764799",
        "253370764800000",
        "9223372036854775807",
        "18446744073709551615",
        "18446744073709551616",
        "1e30",
        "inf",
        "NaN",
        "-1",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Friday, 15-Jan-27 08:00:30 GMT",
    ];
    prop_oneof![
        4 => select(bounds.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        2 => "[0-9]{1,20}".prop_map(String::into_bytes),
        2 => "[0-9]{1,4}(, ?[0-9]{0,12}){1,3}".prop_map(String::into_bytes),
        1 => "[ -~]{0,30}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..20),
    ]
}

/// Generates a status, and each header at most twice.
fn answer() -> impl Strategy<Value = (u16, HeaderMap)> {
    let status = select(vec![200_u16, 201, 401, 404, 429, 500, 503]);
    let values = vec(vec(option::of(value()), 2), 5);
    (status, values).prop_map(|(status, values)| {
        let names = [
            "x-ratelimit-limit",
            "x-ratelimit-remaining",
            "x-ratelimit-reset",
        ];
        let names = names.map(header::HeaderName::from_static);
        let names = names.into_iter().chain([header::RETRY_AFTER, header::DATE]);
        let mut headers = HeaderMap::new();
        for (name, values) in names.zip(values) {
            let values = values.into_iter().flatten();
            for value in values.filter_map(|value| HeaderValue::from_bytes(&value).ok()) {
                headers.append(name.clone(), value);
            }
        }
        (status, headers)
    })
}

/// Sends one request after another, and gives them these answers.
async fn all_waits_end_in_time(
    answers: Vec<(u16, HeaderMap)>,
    policy: Policy,
) -> Result<(), TestCaseError> {
    let limiter = Limiter::new(TimeSource::default());
    for (status, headers) in answers {
        let start = clock::now();
        let latest = start + MAX_WAIT;
        let priority = Priority::Normal;
        let request = Acquire {
            place: None,
            priority,
            policy,
            latest,
            forced: false,
            lease: Duration::from_secs(30),
        };
        let acquired = tokio::time::timeout(2 * MAX_WAIT, limiter.acquire(request, |_| ())).await;
        let waited = start.elapsed();
        prop_assert!(
            waited <= MAX_WAIT + Duration::from_millis(1),
            "{:?}",
            waited
        );
        match acquired.expect("that is less than the time-out") {
            Ok(permit) => {
                permit.observe(StatusCode::from_u16(status).unwrap(), &headers);
            }
            Err(blocked) => {
                let end = clock::now() + blocked.remaining;
                prop_assert!(end > latest, "failed although the block ends in time");
                tokio::time::advance(MAX_WAIT).await;
            }
        }
        limiter.view(&policy);
    }
    Ok(())
}

#[test]
fn no_headers_make_a_call_wait_longer_than_it_may() {
    let plan = option::of(Just(Plan::FREE));
    check((vec(answer(), 1..20), plan), (150, 5), |(answers, plan)| {
        let policy = Policy {
            plan,
            ..Policy::default()
        };
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(all_waits_end_in_time(answers, policy))
    });
}

#[test]
fn what_is_read_from_any_headers_is_within_bounds() {
    check(
        (answer(), 0..4_000_000_000_u64),
        (2_000, 6),
        |((_, headers), now)| {
            let now = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(now);
            if let Some(rate) = QuotaWindow::read_at(&headers, now) {
                prop_assert!(rate.remaining <= rate.limit);
                let since = rate.reset.duration_since(std::time::SystemTime::UNIX_EPOCH);
                prop_assert!(since.unwrap().as_secs() < 253_370_764_800);
            }
            let wait = retry_after(&headers, now);
            prop_assert!(wait.is_none_or(|wait| wait.as_secs() < 253_402_300_800));
            Ok(())
        },
    );
}
