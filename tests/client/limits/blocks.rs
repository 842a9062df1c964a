//! Tests that a 429 blocks all calls with the key, also of later clients, and that every block
//! ends.

use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::rate_limit::BlockReason;
use petstore_client::{Client, ErrorKind, Method};
use tokio::time::{Instant, sleep, timeout};

use crate::client::kit::{answer, client, http, millis, no_pets, once, secs, serve};
use crate::client::service::{get, impatient, patient, within};
use crate::client::wire::{Act, Seen, Wire};

const LIMIT: Duration = secs(10);
const HOUR: Duration = secs(3_600);
/// After this time, a longer block is ended by a probe.
const LONGEST_BLOCK: Duration = secs(25 * 3_600);
const FOR_YEARS: (&str, &str) = ("Retry-After", "99999999");

/// Starts a service that answers 429 with `Retry-After` until 30 s have passed.
fn blocked() -> Wire {
    let start = Instant::now();
    let refuse = move |_: &Seen| {
        let left = secs(30).saturating_sub(start.elapsed());
        match left.as_millis().div_ceil(1_000) {
            0 => no_pets(),
            seconds => answer(429, &[("Retry-After", &seconds.to_string())], ""),
        }
    };
    Wire::reading(refuse)
}

/// Sends this many concurrent calls, and ignores their results.
async fn calls(client: &Client, tasks: usize) {
    timeout(LIMIT, join_all((0..tasks).map(|_| get(client))))
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_built_for_each_request_obeys_an_earlier_429() {
    for tasks in [1, 16, 64] {
        let server = blocked();
        for _ in 0..29 {
            let client = impatient(&server.base()).build().unwrap();
            calls(&client, tasks).await;
            drop(client);
            sleep(secs(1)).await;
        }
        assert_eq!(
            server.count(),
            1,
            "{tasks} tasks: each further request may get the key banned"
        );
        sleep(secs(5)).await;
        let client = impatient(&server.base()).build().unwrap();
        timeout(LIMIT, get(&client)).await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_429_that_blocks_for_years_is_probed_after_25_hours() {
    for tasks in [1, 16, 64] {
        let server = Wire::of(vec![
            answer(429, &[FOR_YEARS], ""),
            Act::Later(secs(2), http(200, &[], "[]")),
            no_pets(),
        ]);
        let client = impatient(&server.base()).build().unwrap();
        let start = Instant::now();
        timeout(LIMIT, get(&client)).await.unwrap().unwrap_err();
        for _ in 0..24 {
            sleep(HOUR).await;
            calls(&client, tasks).await;
        }
        assert_eq!(server.count(), 1, "nothing is sent within a day");
        sleep(LONGEST_BLOCK + secs(60) - start.elapsed()).await;
        // These calls may wait for each other.
        let client = patient(&server.base()).build().unwrap();
        let calls = join_all((0..tasks).map(|_| get(&client)));
        within(&client, LIMIT, calls)
            .await
            .into_iter()
            .for_each(|call| call.unwrap());
        let seen = server.seen();
        let response = seen[1].at + secs(2);
        assert!(
            seen[2..].iter().all(|seen| seen.at >= response),
            "one request goes first"
        );
    }
}

/// Starts a server that refuses the first request, and a client that has received that 429.
async fn refused() -> (Wire, Client, Instant) {
    let (server, client) = serve(vec![answer(429, &[("Retry-After", "30")], ""), no_pets()]);
    client.pets().list().options(&once()).await.unwrap_err();
    (server, client, Instant::now())
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_wait_ends_with_its_time_sends_nothing() {
    let banned = answer(429, &[("Retry-After", "5")], r#"{"code":"key_banned"}"#);
    let (server, client) = serve(vec![banned, no_pets()]);
    client.pets().list().options(&once()).await.unwrap_err();
    let blocked = client.rate_limits().blocked.map(|blocked| blocked.reason);
    assert_eq!(blocked, Some(BlockReason::Ban));
    let error = client
        .pets()
        .list()
        .options(&once().timeout(secs(5)))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), server.count()),
        (ErrorKind::Timeout, 1),
        "{error}"
    );
    assert!(!error.may_have_been_processed());
    let limits = client.rate_limits();
    assert_eq!((limits.in_flight, limits.unresolved), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_429_holds_back_every_call_with_its_key_and_no_other() {
    let (server, told, at) = refused().await;
    let other = Client::builder(server.base())
        .api_key("another-key")
        .build()
        .unwrap();
    assert!(other.pets().list().await.unwrap().meta().waited().is_zero());
    let same = client(&server.base());
    let clients = (0..5).map(|_| told.clone()).chain([same]);
    let send = |client: Client| [Method::GET, Method::POST].map(|it| client.request(it, "/x"));
    let calls = clients.flat_map(send).map(|call| tokio::spawn(call.send()));
    for call in calls.collect::<Vec<_>>() {
        let answer = call.await.unwrap().unwrap();
        assert_eq!(
            answer.meta().attempts(),
            1,
            "a wait for a limit does not count as an attempt"
        );
        assert!(
            answer.meta().waited() >= secs(29),
            "{:?}",
            answer.meta().waited()
        );
    }
    for seen in &server.seen()[2..] {
        assert!(seen.at - at >= millis(29_990), "{:?}", seen.at - at);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_comes_while_waiting_is_waited_out_as_well() {
    // After a refusal, a probe is sent; it is refused again, for longer.
    let (server, client) = serve(vec![
        answer(429, &[("Retry-After", "10")], ""),
        Act::Later(secs(5), http(429, &[("Retry-After", "40")], "")),
        no_pets(),
    ]);
    let start = Instant::now();
    let (one, two) = tokio::join!(client.pets().list().send(), client.pets().list().send());
    assert_eq!(
        (
            one.unwrap().meta().attempts(),
            two.unwrap().meta().attempts()
        ),
        (3, 1)
    );
    for seen in &server.seen()[2..] {
        assert!(seen.at - start >= secs(55), "{:?}", seen.at - start);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_behind_one_that_hangs_keeps_its_own_time_limit() {
    let (_server, client) = serve(vec![Act::Stall(vec![])]);
    let hanging = tokio::spawn({
        let client = client.clone();
        async move { client.pets().list().await }
    });
    tokio::time::sleep(secs(1)).await;
    let start = Instant::now();
    let error = client.pets().list().timeout(secs(5)).await.unwrap_err();
    assert!(error.is_timeout() && error.attempts() == 0, "{error}");
    assert!(start.elapsed() < secs(6), "{:?}", start.elapsed());
    hanging.abort();
}

#[tokio::test(start_paused = true)]
async fn the_time_behind_own_requests_is_not_counted_against_max_wait() {
    let (server, client) = serve(vec![
        Act::Later(secs(20), http(200, &[], "[]")),
        answer(429, &[("Retry-After", "5")], ""),
        no_pets(),
    ]);
    let calls = [(); 2].map(|()| client.pets().list().max_wait(secs(10)).send());
    for page in futures_util::future::join_all(calls).await {
        page.unwrap();
    }
    assert_eq!(server.seen().len(), 3);
}
