//! Tests that a 429 blocks all calls with the key, also of later clients, and that every block
//! ends.

use futures_util::future::join_all;
use petstore_client::Client;
use petstore_client::http::Method;
use petstore_client::limits::Limits;
use tokio::time::{Instant, sleep};

use crate::client::kit::{
    answer, client, http, list_meta, list_with, millis, no_pets, once, secs, serve,
};
use crate::client::service::{get, impatient};
use crate::client::wire::{Act, Wire};

#[tokio::test(start_paused = true)]
async fn a_client_built_for_each_request_obeys_an_earlier_429() {
    for tasks in [1, 64] {
        let server = Wire::of(vec![answer(429, &[("Retry-After", "30")], ""), no_pets()]);
        for _ in 0..29 {
            let client = impatient(&server.base()).build().unwrap();
            for call in join_all((0..tasks).map(|_| get(&client))).await {
                call.unwrap_err();
            }
            drop(client);
            sleep(secs(1)).await;
        }
        let why = "each further request may get the key banned";
        assert_eq!(server.count(), 1, "{tasks} tasks: {why}");
        sleep(secs(5)).await;
        let client = impatient(&server.base()).build().unwrap();
        get(&client).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_429_holds_back_every_call_with_its_key_and_no_other() {
    let (server, told) = serve(vec![answer(429, &[("Retry-After", "30")], ""), no_pets()]);
    list_with(&told, &once()).await.unwrap_err();
    let at = Instant::now();
    let other = told.with_api_key("another-key").unwrap();
    assert!(list_meta(&other).await.waited().is_zero());
    let clients = [told, client(&server.base())];
    let send = |client: Client| [Method::GET, Method::POST].map(|it| client.request(it, "/x"));
    let calls = clients.into_iter().flat_map(send);
    for answer in join_all(calls.map(IntoFuture::into_future)).await {
        let meta = answer.unwrap().meta;
        let why = "a wait for a limit does not count as an attempt";
        assert_eq!(meta.attempts(), 1, "{why}");
        assert!(meta.waited() >= secs(29), "{:?}", meta.waited());
    }
    for seen in &server.seen()[2..] {
        assert!(seen.at - at >= millis(29_990), "{:?}", seen.at - at);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_behind_one_that_hangs_keeps_its_own_time_limit() {
    let (_server, client) = serve(vec![Act::Stall(vec![])]);
    let hanging = tokio::spawn(get(&client));
    sleep(secs(1)).await;
    let start = Instant::now();
    let error = client.pets().list().timeout(secs(5)).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(start.elapsed() < secs(6), "{:?}", start.elapsed());
    hanging.abort();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_not_wait_is_sent_now_or_not_at_all() {
    let slow = Act::Later(secs(20), http(200, &[], "[]"));
    let server = Wire::of(vec![slow, no_pets()]);
    let client = impatient(&server.base())
        .limits(Limits::new().max_in_flight(1))
        .build()
        .unwrap();
    let first = tokio::spawn(get(&client));
    sleep(millis(10)).await;
    let start = Instant::now();
    let error = get(&client).await.unwrap_err();
    assert!(error.is_rate_limited(), "{error}");
    assert_eq!(
        (error.blocked(), error.retry_after()),
        (None, Some(secs(1)))
    );
    assert!(start.elapsed() < millis(5), "{:?}", start.elapsed());
    first.await.unwrap().unwrap();
    get(&client).await.unwrap();
    assert_eq!(server.count(), 2);
}
