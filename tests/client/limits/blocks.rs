//! Tests that a 429 blocks all calls with the key, also of later clients, and that every block
//! ends.

use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::http::Method;
use petstore_client::limits::{BlockReason, Limits};
use petstore_client::{Client, ErrorKind};
use tokio::time::{Instant, sleep, timeout};

use crate::client::kit::{
    answer, builder, client, http, list_meta, millis, no_pets, once, secs, serve,
};
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
    let blocked = client
        .limits()
        .snapshot()
        .blocked
        .map(|blocked| blocked.reason);
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
    let limits = client.limits().snapshot();
    assert_eq!((limits.in_flight, limits.unresolved), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_429_holds_back_every_call_with_its_key_and_no_other() {
    let (server, told, at) = refused().await;
    let other = Client::builder(server.base())
        .api_key("another-key")
        .build()
        .unwrap();
    assert!(list_meta(&other).await.waited().is_zero());
    let same = client(&server.base());
    let clients = (0..5).map(|_| told.clone()).chain([same]);
    let send = |client: Client| [Method::GET, Method::POST].map(|it| client.request(it, "/x"));
    let calls = clients.flat_map(send).map(|call| tokio::spawn(call.send()));
    for call in calls.collect::<Vec<_>>() {
        let answer = call.await.unwrap().unwrap();
        assert_eq!(
            answer.meta.attempts(),
            1,
            "a wait for a limit does not count as an attempt"
        );
        assert!(
            answer.meta.waited() >= secs(29),
            "{:?}",
            answer.meta.waited()
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
    let (one, two) = tokio::join!(
        client.pets().list().with_meta(),
        client.pets().list().with_meta()
    );
    assert_eq!(
        (one.unwrap().meta.attempts(), two.unwrap().meta.attempts()),
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
    assert!(error.is_timeout(), "{error}");
    assert!(start.elapsed() < secs(6), "{:?}", start.elapsed());
    hanging.abort();
}

/// A service whose first response comes after this time.
fn late(first: Duration) -> Wire {
    Wire::of(vec![Act::Later(first, http(200, &[], "[]")), no_pets()])
}

#[tokio::test(start_paused = true)]
async fn max_wait_bounds_waits_for_own_requests_and_first_answers() {
    for (most_in_flight, latency, max_wait) in [
        (Some(1), secs(20), secs(10)),
        (None, millis(900), millis(500)),
    ] {
        let server = late(latency);
        let builder = builder(&server.base()).max_wait(max_wait);
        let client = match most_in_flight {
            Some(requests) => builder.limits(Limits::new().max_in_flight(requests)),
            None => builder,
        };
        let client = client.build().unwrap();
        let start = Instant::now();
        let list = || client.pets().list().send();
        let second = async {
            let error = list().await.unwrap_err();
            (error, start.elapsed())
        };
        let (first, (error, took)) = tokio::join!(list(), second);
        first.unwrap();
        assert!(error.is_rate_limited(), "{error}");
        assert_eq!((error.blocked(), error.attempts()), (None, 0), "{error}");
        assert_eq!(error.retry_after(), Some(secs(1)));
        assert!(!error.may_have_been_processed());
        assert!(
            (max_wait..max_wait + millis(100)).contains(&took),
            "{took:?}"
        );
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_not_wait_is_sent_now_or_not_at_all() {
    let server = late(secs(20));
    let client = impatient(&server.base())
        .limits(Limits::new().max_in_flight(1))
        .build()
        .unwrap();
    let first = tokio::spawn(get(&client));
    sleep(millis(10)).await;
    for _ in 0..3 {
        let start = Instant::now();
        let error = get(&client).await.unwrap_err();
        assert!(
            error.is_rate_limited() && error.blocked().is_none(),
            "{error}"
        );
        assert_eq!(error.retry_after(), Some(secs(1)));
        assert!(start.elapsed() < millis(5), "{:?}", start.elapsed());
    }
    first.await.unwrap().unwrap();
    get(&client).await.unwrap();
    assert_eq!(server.count(), 2);
}
