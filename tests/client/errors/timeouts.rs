//! Tests of time limits: for connecting, an attempt, a call, and a single call.

use std::time::Duration;

use petstore_client::retry::{Backoff, RetryPolicy};
use petstore_client::transport::Connection;
use petstore_client::{Client, Error, ErrorKind, RequestOptions, TimeoutKind};
use tokio::time::Instant;

use crate::client::kit::{answer, builder, client, create, list_with, millis, no_pets, once, secs};
use crate::client::wire::{Act, Wire};

fn stalling(bytes: &'static [u8]) -> Wire {
    Wire::start(|_| Act::Stall(bytes.to_vec()))
}

async fn list(client: &Client, options: RequestOptions) -> (Error, Duration) {
    let start = Instant::now();
    let error = list_with(client, &options).await.unwrap_err();
    (error, start.elapsed())
}

fn assert_took(took: Duration, seconds: u64) {
    let off = took.abs_diff(secs(seconds));
    assert!(off < millis(100), "{took:?} for {seconds} s");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_ends_after_30_seconds_and_a_stalled_body_after_10() {
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[";
    for (stall, seconds, kind) in [
        (&b""[..], 30, TimeoutKind::Attempt),
        (b"HTTP/1.1 200 OK\r\nX-A:", 30, TimeoutKind::Attempt),
        (half, 10, TimeoutKind::Read),
    ] {
        let server = stalling(stall);
        let (error, took) = list(&client(&server.base()), once()).await;
        assert_took(took, seconds);
        assert_eq!(error.timeout_kind(), Some(kind), "{error}");
        let unlimited = once().read_timeout(secs(999));
        assert_took(list(&client(&server.base()), unlimited).await.1, 30);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_after_its_time_however_many_attempts_remain() {
    let server = stalling(b"");
    let options = RequestOptions::new().timeout(secs(70));
    let (error, took) = list(&client(&server.base()), options).await;
    assert_took(took, 70);
    assert_eq!((error.attempts(), server.count()), (3, 3));
    assert_eq!(error.timeout_kind(), Some(TimeoutKind::Call), "{error}");
}

#[tokio::test(start_paused = true)]
async fn does_not_wait_for_an_attempt_that_there_is_no_time_for() {
    let server = Wire::start(|_| answer(500, &[], ""));
    let slow = Backoff::new().initial(secs(1_000_000)).max(Duration::MAX);
    let slow = builder(&server.base()).retry(RetryPolicy::new().backoff(slow));
    let (error, took) = list(&slow.build().unwrap(), RequestOptions::new()).await;
    let why = "the last answer says more than a time-out";
    assert_eq!(error.kind(), ErrorKind::Server, "{why}: {error}");
    assert!(took < secs(300));
}

#[tokio::test]
async fn a_call_without_time_sends_nothing() {
    let server = Wire::start(|_| no_pets());
    let none = RequestOptions::new().timeout(Duration::ZERO);
    let client = client(&server.base()).with_options(&none);
    let error = create(&client).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(!error.may_have_been_processed(), "{error}");
    assert_eq!((error.attempts(), server.count()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn one_call_differs_and_the_others_stay_as_they_are() {
    let server = stalling(b"");
    let defaults = once().attempt_timeout(secs(5));
    let client = builder(&server.base()).options(&defaults).build().unwrap();
    let longer = RequestOptions::new().attempt_timeout(secs(9));
    let (error, took) = list(&client, longer).await;
    assert_took(took, 9);
    let why = "options that are not set keep the client's values";
    assert_eq!(error.attempts(), 1, "{why}");
    assert_took(list(&client, RequestOptions::new()).await.1, 5);
}

#[tokio::test(start_paused = true)]
async fn limits_of_any_size_neither_panic_nor_end_a_call_early() {
    let server = Wire::start(|_| no_pets());
    let endless = RequestOptions::new()
        .timeout(Duration::MAX)
        .attempt_timeout(Duration::MAX)
        .max_wait(Duration::MAX)
        .max_attempts(u32::MAX)
        .max_response_bytes(usize::MAX);
    let connection = Connection::new().connect_timeout(Duration::MAX);
    let client = builder(&server.base()).connection(connection);
    list_with(&client.build().unwrap(), &endless).await.unwrap();
}
