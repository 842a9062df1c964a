//! Tests of `Retry-After`: on the service's clock, never shortened, and within `max_wait`.

use std::time::Duration;

use petstore_client::RequestOptions;
use petstore_client::limits::{BlockReason, Limits, Quota};
use petstore_client::retry::{Backoff, RetryPolicy};

use crate::client::kit::{
    DATE, START, answer, at, builder, client, http, list_meta, list_with, millis, no_pets, reason,
    secs, serve,
};
use crate::client::wire::{Act, Wire};

type Headers<'h> = &'h [(&'static str, &'static str)];

/// Returns the time between a refused request and the next one.
async fn pause(status: u16, headers: Headers<'_>) -> Duration {
    let (server, client) = serve(vec![answer(status, headers, "not now"), no_pets()]);
    let long = RequestOptions::new()
        .max_wait(secs(4_000))
        .timeout(secs(5_000));
    let meta = list_meta(&client.with_options(&long)).await;
    let seen = server.seen();
    let pause = seen[1].at - seen[0].at;
    assert_eq!((seen.len(), meta.attempts()), (2, 2));
    assert!(meta.waited() <= pause);
    pause
}

#[tokio::test(start_paused = true)]
async fn a_429_is_waited_out_as_long_as_it_asks() {
    let reset = [
        ("X-RateLimit-Limit", "60"),
        ("X-RateLimit-Remaining", "0"),
        ("X-RateLimit-Reset", "1800000017"),
    ];
    for (seconds, headers) in [
        (3_600, &[("Retry-After", "3600")][..]),
        (45, &[("Retry-After", "Fri, 15 Jan 2027 08:00:45 GMT")]),
        // The wait is at least a second. Of several values, the longest counts.
        (1, &[("Retry-After", "0")]),
        (9, &[("Retry-After", "3"), ("Retry-After", "9")]),
        (20, &[("Retry-After", "20"), ("Retry-After-Ms", "1250")]),
        // If no value is readable, the wait is a minute.
        (60, &[("Retry-After", "soon")]),
        // Other clients may use the key, so the client waits for another second after a reset.
        (18, &reset),
    ] {
        let headers = [&[("Date", DATE)], headers].concat();
        let pause = pause(429, &headers).await;
        let expected = secs(seconds)..=secs(seconds) + millis(100);
        assert!(expected.contains(&pause), "{headers:?}: {pause:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_service_is_left_alone_as_long_as_it_asks() {
    let pause = pause(503, &[("Retry-After", "30")]).await;
    // A random back-off follows, so that clients do not all retry at the same time.
    assert!((30_000..=30_200).contains(&pause.as_millis()), "{pause:?}");
    let late = answer(504, &[("Retry-After", "130")], "");
    let (_server, client) = serve(vec![late, no_pets()]);
    let error = client.pets().list().await.unwrap_err();
    assert_eq!(error.attempts(), 1, "longer than `max_wait`");
    let waited = list_meta(&client).await.waited();
    assert!(waited.is_zero(), "it delays that call alone");
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_or_impossible_wait_of_a_failed_service_is_none() {
    for value in ["soon", "90001"] {
        let server = Wire::start(move |_| answer(503, &[("Retry-After", value)], ""));
        let retry = RetryPolicy::new().backoff(Backoff::new().initial(secs(8)));
        let client = builder(&server.base()).retry(retry).build().unwrap();
        let twice = RequestOptions::new().max_attempts(2);
        let error = list_with(&client, &twice).await.unwrap_err();
        assert_eq!(error.attempts(), 2, "{value}");
        assert!(error.waited() <= secs(8), "{value}: the back-off alone");
        assert_eq!((error.retry_after(), error.retry_at()), (None, None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_429_is_believed_for_25_hours_at_most_and_says_so() {
    let headers = [("Date", DATE), ("Retry-After", "999999999")];
    let (_server, client) = serve(vec![answer(429, &headers, "")]);
    let error = client.pets().list().await.unwrap_err();
    assert_eq!(error.retry_after(), Some(secs(25 * 3_600)));
    let end = "until Sat, 16 Jan 2027 09:00:00 GMT (another 25 h)";
    assert!(error.to_string().contains(end), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_comes_slowly_does_not_shorten_the_wait() {
    let head = b"HTTP/1.1 429 X\r\nRetry-After: 40\r\nContent-Length: 9\r\n\r\n{";
    let (server, client) = serve(vec![Act::Stall(head.to_vec()), no_pets()]);
    client.pets().list().await.unwrap();
    let seen = server.seen();
    assert!(seen[1].at - seen[0].at >= secs(40));
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
    let (server, client) = serve(vec![answer(429, &headers, "not now"), no_pets()]);
    let start = tokio::time::Instant::now();
    let refused = client.pets().list().await.unwrap_err();
    assert_eq!(refused.attempts(), 1);
    assert_eq!(refused.response().unwrap().body(), "not now");
    // During the block, nothing is sent, and each call fails with the same error.
    let blocked = client.store().orders().await.unwrap_err();
    assert_eq!((blocked.attempts(), blocked.status()), (0, None));
    assert!(start.elapsed() < millis(100), "{:?}", start.elapsed());
    assert_eq!(server.count(), 1);
    for error in [refused, blocked] {
        assert!(error.is_rate_limited() && !error.is_timeout());
        assert_eq!(error.retry_at(), Some(at(START + 121)));
        assert_eq!(reason(&error), Some(BlockReason::Quota(Quota::Unknown)));
        assert_eq!(error.retry_after().unwrap().as_secs_f64().round(), 121.0);
        assert!(!error.may_have_been_processed());
    }
    tokio::time::advance(secs(121)).await;
    client.pets().list().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn max_wait_and_the_number_of_attempts_are_for_the_whole_call() {
    for (wait, attempts) in [("50", 3), ("10", 4)] {
        let server = Wire::start(move |_| answer(429, &[("Retry-After", wait)], ""));
        let error = client(&server.base()).pets().list().await.unwrap_err();
        assert!(error.is_rate_limited(), "{error}");
        assert_eq!(
            (error.attempts(), server.count()),
            (attempts, attempts as usize)
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
        let options = RequestOptions::new()
            .attempt_timeout(secs(200))
            .max_wait(secs(max_wait))
            .timeout(secs(600));
        let client = builder(&server.base())
            .limits(Limits::new().max_in_flight(1))
            .options(&options)
            .build()
            .unwrap();
        let list = || client.pets().list().send();
        let (first, second) = tokio::join!(list(), list());
        first.unwrap();
        match second {
            Ok(_) => assert_eq!(max_wait, 161, "100 s and 60 s"),
            Err(error) => assert!(error.waited() <= secs(max_wait + 1), "{error}"),
        }
        assert_eq!(server.count(), 1 + attempts, "{max_wait} s");
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
    let expected = [1, 1, 2, 3].map(|limit| format!("/v1/pets?limit={limit}"));
    assert_eq!(server.targets(), expected);
}
