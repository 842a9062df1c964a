//! Tests of hostile headers: what is read is within bounds, and the limiter neither panics nor makes a
//! call wait too long.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::waiting::{acquire, limiter_with};
use crate::cases::cases;
use crate::clock;
use crate::rate_limit::quota::reading::ResponseHead;
use crate::rate_limit::{Acquire, Plan, Policy, QuotaWindow, TimeSource};
use crate::wire::headers::{numbers, retry_after};

const MAX_WAIT: Duration = Duration::from_secs(120);

/// Sends one request after another, and gives them these answers.
async fn all_waits_end_in_time(
    answers: Vec<(u16, HeaderMap)>,
    policy: Policy,
) -> Result<(), TestCaseError> {
    let limiter = limiter_with(TimeSource::default(), policy);
    for (status, headers) in answers {
        let start = clock::now();
        let request = Acquire {
            max_wait: MAX_WAIT,
            deadline: start + 2 * MAX_WAIT,
            ..acquire()
        };
        let acquired = limiter.acquire(request, |_| ()).await;
        let waited = start.elapsed();
        let longest = MAX_WAIT + Duration::from_millis(1);
        prop_assert!(waited <= longest, "{:?}", waited);
        match acquired {
            Ok(permit) => {
                permit.observe(StatusCode::from_u16(status).unwrap(), &headers);
            }
            Err(refused) => {
                let remaining = refused
                    .wait
                    .unwrap()
                    .blocked
                    .map(|blocked| blocked.remaining);
                let is_in_time = remaining.is_some_and(|left| waited + left <= MAX_WAIT);
                prop_assert!(!is_in_time, "failed although the block ends in time");
                tokio::time::advance(MAX_WAIT).await;
            }
        }
        limiter.view();
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn no_headers_make_a_call_wait_longer_than_it_may(
        answers in vec(hostile_answer(), 1..20),
        plan in option::of(Just(Plan::FREE)),
    ) {
        let mut policy = Policy::default();
        policy.terms_mut().set_plan(plan);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(all_waits_end_in_time(answers, policy))?;
    }
}

/// Generates numbers at every bound, numbers as people write them, lists, dates, and any bytes.
fn header_value() -> impl Strategy<Value = Vec<u8>> {
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
fn hostile_answer() -> impl Strategy<Value = (u16, HeaderMap)> {
    let status = select(vec![200_u16, 201, 401, 404, 429, 500, 503]);
    let values = vec(vec(option::of(header_value()), 2), 5);
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

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn what_is_read_from_any_headers_is_within_bounds(
        (status, headers) in hostile_answer(),
        now in 0..4_000_000_000_u64,
    ) {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(now);
        if let Some(window) = QuotaWindow::read_at(&headers, now) {
            let name = HeaderName::from_static("x-ratelimit-limit");
            let least = numbers(&headers, &name).min();
            prop_assert_eq!(Some(window.limit), least, "the most restrictive counts");
            prop_assert!(window.remaining <= window.limit);
            let since = window.reset.duration_since(SystemTime::UNIX_EPOCH);
            prop_assert!(since.unwrap().as_secs() < 253_370_764_800);
        }
        let wait = retry_after(&headers, now);
        prop_assert!(wait.is_none_or(|wait| wait.as_secs() < 253_402_300_800));
        let status = StatusCode::from_u16(status).unwrap();
        let blocked = ResponseHead::read(status, &headers, now).blocked();
        prop_assert_eq!(blocked.is_some(), status == StatusCode::TOO_MANY_REQUESTS);
        let seconds = blocked.map_or(1, |blocked| blocked.remaining.as_secs());
        prop_assert!((1..=25 * 3_600).contains(&seconds), "{}", seconds);
    }
}
