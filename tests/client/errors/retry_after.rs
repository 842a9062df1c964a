//! Tests of `Retry-After` in every form, on the service's clock, and never shortened.

use std::time::{Duration, SystemTime};

use petstore_client::RequestOptions;
use petstore_client::limits::{BlockReason, Limits, Quota};
use petstore_client::retry::{Backoff, RetryPolicy};

use crate::client::kit::{
    DATE, answer, builder, client, http, list_meta, millis, no_pets, once, reason, secs,
};
use crate::client::wire::{Act, Wire};

fn refusing_once(status: u16, headers: &[(&'static str, &'static str)]) -> Wire {
    let headers = headers.to_vec();
    Wire::of(vec![answer(status, &headers, "not now"), no_pets()])
}

fn long() -> RequestOptions {
    RequestOptions::new()
        .max_wait(secs(4_000))
        .timeout(secs(5_000))
}

/// Returns the time between the first request and the second one.
async fn pause(status: u16, headers: &[(&'static str, &'static str)]) -> Duration {
    let server = refusing_once(status, headers);
    let page = client(&server.base())
        .pets()
        .list()
        .options(&long())
        .with_meta()
        .await
        .unwrap();
    let seen = server.seen();
    let pause = seen[1].at - seen[0].at;
    assert_eq!((seen.len(), page.meta.attempts()), (2, 2));
    assert!(page.meta.waited() <= pause);
    pause
}

fn assert_waits(pause: Duration, seconds: u64, what: &str) {
    let asked = secs(seconds);
    assert!(
        pause >= asked,
        "{what}: {pause:?} is shorter than {asked:?}"
    );
    assert!(
        pause <= asked + millis(100),
        "{what}: {pause:?} of {asked:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn waits_as_long_as_a_429_asks_in_any_form() {
    for (seconds, values) in [
        (1, &["1"][..]),
        (30, &["30"]),
        (3_600, &["3600"]),
        (45, &["Fri, 15 Jan 2027 08:00:45 GMT"]),
        (45, &["Friday, 15-Jan-27 08:00:45 GMT"]),
        (45, &["Fri Jan 15 08:00:45 2027"]),
        // The wait is at least a second. Of several values, the longest counts.
        (1, &["0"]),
        (1, &["Fri, 15 Jan 2027 07:00:00 GMT"]),
        (9, &["3", "9"]),
        (9, &["9, 3"]),
        // If no value is readable, the wait is a minute.
        (60, &[]),
        (60, &["soon"]),
        (60, &["-5"]),
        (60, &[""]),
        (60, &["1e3"]),
        (60, &["99999999999999999999"]),
    ] {
        let waits = values.iter().map(|value| ("Retry-After", *value));
        let headers: Vec<_> = [("Date", DATE)].into_iter().chain(waits).collect();
        assert_waits(pause(429, &headers).await, seconds, &format!("{values:?}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_429_without_retry_after_waits_for_the_reset() {
    let reset = [
        ("Date", DATE),
        ("X-RateLimit-Limit", "60"),
        ("X-RateLimit-Remaining", "0"),
        ("X-RateLimit-Reset", "1800000017"),
    ];
    // If a quota is used up at the first response, other clients may use the key, so the client
    // waits for another second after the reset.
    assert_waits(pause(429, &reset).await, 18, "reset");
}

#[tokio::test(start_paused = true)]
async fn a_failed_service_is_left_alone_as_long_as_it_asks() {
    for status in [502, 503] {
        let pause = pause(status, &[("Retry-After", "30")]).await;
        // A random back-off follows, so that clients do not all retry at the same time.
        assert!((30_000..=30_200).contains(&pause.as_millis()), "{pause:?}");
    }
    let server = refusing_once(504, &[("Retry-After", "130")]);
    let client = client(&server.base());
    let error = client.pets().list().await.unwrap_err();
    assert_eq!(
        (error.attempts(), error.waited()),
        (1, Duration::ZERO),
        "longer than `max_wait`"
    );
    assert!(list_meta(&client).await.waited().is_zero());
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_or_impossible_wait_of_a_failed_service_is_none() {
    for value in [
        "soon",
        "-5",
        "",
        "1e3",
        "999999999",
        "90001",
        "99999999999999999999",
    ] {
        let server = refusing_once(503, &[("Retry-After", value)]);
        let retry = RetryPolicy::new().backoff(Backoff::new().initial(secs(8)));
        let client = builder(&server.base()).retry(retry).build().unwrap();
        let meta = list_meta(&client).await;
        assert_eq!(meta.attempts(), 2, "{value}");
        assert!(meta.waited() <= secs(8), "{value}: the back-off alone");
        let server = Wire::start(move |_| answer(503, &[("Retry-After", value)], ""));
        let error = client_once(&server.base()).await;
        assert_eq!((error.retry_after(), error.retry_at()), (None, None));
    }
}

async fn client_once(base: &str) -> petstore_client::Error {
    let client = client(base);
    client.pets().list().options(&once()).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn a_429_is_believed_for_25_hours_at_most_and_says_so() {
    for value in ["999999999", "Fri, 31 Dec 9999 23:59:59 GMT"] {
        let server = refusing_once(429, &[("Date", DATE), ("Retry-After", value)]);
        let error = client(&server.base()).pets().list().await.unwrap_err();
        assert_eq!(error.retry_after(), Some(secs(25 * 3_600)), "{value}");
        let end = "until Sat, 16 Jan 2027 09:00:00 GMT (another 25 h)";
        assert!(error.to_string().contains(end), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn milliseconds_are_not_read() {
    for status in [429, 503] {
        let both = [("Retry-After", "20"), ("Retry-After-Ms", "1250")];
        assert_waits(pause(status, &both).await, 20, "both");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_comes_slowly_does_not_shorten_the_wait() {
    let server = Wire::start(|number| match number {
        0 => {
            Act::Stall(b"HTTP/1.1 429 X\r\nRetry-After: 40\r\nContent-Length: 9\r\n\r\n{".to_vec())
        }
        _ => no_pets(),
    });
    client(&server.base())
        .pets()
        .list()
        .options(&long())
        .with_meta()
        .await
        .unwrap();
    let seen = server.seen();
    assert!(seen[1].at - seen[0].at >= secs(40));
}

#[tokio::test(start_paused = true)]
async fn refusals_are_waited_out_up_to_the_limit_of_attempts() {
    let server = Wire::start(|_| answer(429, &[("Retry-After", "10")], ""));
    let error = client(&server.base()).pets().list().await.unwrap_err();
    assert_eq!((error.attempts(), server.count()), (4, 4));
    assert!(error.is_rate_limited() && error.status().is_some());
    for pair in server.seen().windows(2) {
        let pause = pair[1].at - pair[0].at;
        assert!(pause >= secs(10), "{pause:?}");
        assert!(pause <= secs(10) + millis(100), "{pause:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_max_wait_fails_at_once_with_all_that_is_known() {
    let headers = [
        ("Date", DATE),
        ("Retry-After", "121"),
        ("X-RateLimit-Limit", "1000"),
        ("X-RateLimit-Remaining", "0"),
        ("X-RateLimit-Reset", "1800000121"),
    ];
    let server = refusing_once(429, &headers);
    let start = tokio::time::Instant::now();
    let client = client(&server.base());
    let error = client.pets().list().await.unwrap_err();
    assert!(start.elapsed() < millis(100), "{:?}", start.elapsed());
    assert!(error.is_rate_limited() && !error.is_timeout());
    let at = SystemTime::UNIX_EPOCH + secs(1_800_000_121);
    assert_eq!(
        (error.retry_at(), reason(&error)),
        (Some(at), Some(BlockReason::Quota(Quota::Unknown)))
    );
    assert_eq!(error.retry_after().unwrap().as_secs_f64().round(), 121.0);
    assert_eq!(
        (error.attempts(), error.status().unwrap().as_u16()),
        (1, 429)
    );
    assert_eq!(error.response().unwrap().body(), "not now");

    // During the block, nothing is sent, and each call fails with the same error.
    let error = client.store().orders().await.unwrap_err();
    assert_eq!(
        (error.retry_at(), reason(&error)),
        (Some(at), Some(BlockReason::Quota(Quota::Unknown)))
    );
    assert_eq!(
        (error.attempts(), error.status(), server.count()),
        (0, None, 1)
    );
    assert!(!error.may_have_been_processed());
    tokio::time::advance(secs(121)).await;
    client.pets().list().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn max_wait_is_for_the_whole_call() {
    let server = Wire::start(|_| answer(429, &[("Retry-After", "50")], ""));
    let error = client(&server.base()).pets().list().await.unwrap_err();
    assert_eq!((error.attempts(), server.count()), (3, 3));
    // The second wait has up to 2 s of back-off added.
    let waited = error.waited().as_secs();
    assert!((100..=102).contains(&waited), "{waited}");
    assert!(error.retry_after().unwrap() >= secs(50));
}

#[tokio::test(start_paused = true)]
async fn max_wait_of_nothing_never_waits_but_sends() {
    let server = refusing_once(429, &[("Retry-After", "1")]);
    let none = RequestOptions::new().max_wait(Duration::ZERO);
    let client = client(&server.base());
    let error = client.pets().list().options(&none).await.unwrap_err();
    assert!(error.is_rate_limited());
    tokio::time::advance(secs(1)).await;
    client.pets().list().options(&none).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_the_calls_own_time_does_not_allow_fails_at_once() {
    let server = refusing_once(429, &[("Retry-After", "30")]);
    let error = client(&server.base())
        .pets()
        .list()
        .timeout(secs(20))
        .await
        .unwrap_err();
    assert!(error.is_rate_limited() && error.waited().is_zero());
    assert!(error.to_string().contains("still wait (20 s)"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_exactly_as_long_as_it_may_for_all_refusals() {
    for (status, refusals, max_wait, attempts) in [
        (429, 1, 19, 1),
        (429, 1, 20, 2),
        (503, 1, 19, 1),
        (503, 1, 20, 2),
        (503, 2, 39, 2),
        (503, 2, 40, 3),
    ] {
        let mut acts = vec![answer(status, &[("Retry-After", "20")], ""); refusals];
        acts.push(no_pets());
        let server = Wire::of(acts);
        let options = RequestOptions::new().max_wait(secs(max_wait));
        let result = client(&server.base()).pets().list().options(&options).await;
        assert_eq!(server.count(), attempts, "{status}, {max_wait} s");
        assert_eq!(
            result.is_ok(),
            attempts > refusals,
            "{status}, {max_wait} s: {result:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_other_calls_counts_as_well() {
    for (max_wait, attempts) in [(99, 0), (159, 1), (161, 2)] {
        let server = Wire::of(vec![
            Act::Later(secs(100), http(200, &[], "[]")),
            answer(429, &[("Retry-After", "60")], ""),
            no_pets(),
        ]);
        let client = builder(&server.base())
            .limits(Limits::new().max_in_flight(1))
            .options(&RequestOptions::new().attempt_timeout(secs(200)))
            .max_wait(secs(max_wait))
            .timeout(secs(600))
            .build()
            .unwrap();
        let list = || client.pets().list().with_meta();
        let (first, second) = tokio::join!(list(), list());
        first.unwrap();
        match second {
            Ok(page) => {
                assert_eq!((page.meta.attempts(), attempts), (2, 2));
                assert!(page.meta.waited() >= secs(159), "100 s and 60 s");
            }
            Err(error) => {
                assert!(error.is_rate_limited(), "{error}");
                assert_eq!(error.attempts(), attempts, "{max_wait} s: {error}");
                assert!(error.waited() <= secs(max_wait + 1), "{error}");
            }
        }
        assert_eq!(server.count(), 1 + attempts as usize);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_keeps_its_place_in_the_line() {
    let refused = answer(429, &[("Retry-After", "1")], "");
    let server = Wire::of(vec![refused, no_pets()]);
    let client = builder(&server.base())
        .limits(Limits::new().max_in_flight(1))
        .build()
        .unwrap();
    let list = |limit| client.pets().list().limit(limit).send();
    let (first, second, third) = tokio::join!(list(1), list(2), list(3));
    assert!(first.is_ok() && second.is_ok() && third.is_ok());
    let asked: Vec<_> = server.seen().iter().map(|seen| seen.line.clone()).collect();
    let limits: Vec<_> = asked
        .iter()
        .map(|line| line.split(['=', ' ']).nth(2).unwrap())
        .collect();
    assert_eq!(limits, ["1", "1", "2", "3"], "{asked:?}");
}
