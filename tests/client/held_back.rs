//! What one task is told holds back every clone.

use std::time::Duration;

use petstore_client::{Client, NewPet, RequestOptions};
use tokio::time::Instant;

use super::kit::{REX, answer, client, http, no_pets, once};
use super::wire::{Act, Wire};

/// Starts a server that refuses the first request, and a client that has been told.
async fn told() -> (Wire, Client, Instant) {
    let server = Wire::of(vec![answer(429, &[("Retry-After", "30")], ""), no_pets()]);
    let client = client(&server.base());
    client.pets().list().options(&once()).await.unwrap_err();
    (server, client, Instant::now())
}

#[tokio::test(start_paused = true)]
async fn a_429_that_one_task_received_holds_back_all_clones() {
    let (server, client, told) = told().await;
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.pets().list().await.unwrap() })
        })
        .collect();
    for task in tasks {
        let page = task.await.unwrap();
        assert_eq!(page.meta().attempts(), 1, "waiting at the gate is no attempt");
        assert!(page.meta().waited() >= Duration::from_secs(29), "{:?}", page.meta().waited());
    }
    for seen in &server.seen()[1..] {
        assert!(seen.at - told >= Duration::from_millis(29_990), "{:?}", seen.at - told);
    }
}

#[tokio::test(start_paused = true)]
async fn another_operation_and_a_post_are_held_back_as_well() {
    let server = Wire::of(vec![answer(429, &[("Retry-After", "30")], ""), answer(201, &[], REX)]);
    let client = client(&server.base());
    client.store().orders().options(&once()).await.unwrap_err();
    let pet = client.pets().create(&NewPet::new("Rex", 7)).await.unwrap();
    assert!(pet.meta().waited() >= Duration::from_secs(29));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_comes_while_waiting_is_waited_out_as_well() {
    // After a refusal one request goes ahead and asks; it is refused again, for longer.
    let server = Wire::of(vec![
        answer(429, &[("Retry-After", "10")], ""),
        Act::Later(Duration::from_secs(5), http(429, &[("Retry-After", "40")], "")),
        no_pets(),
    ]);
    let client = client(&server.base());
    let start = Instant::now();
    let (one, two) = tokio::join!(client.pets().list().send(), client.pets().list().send());
    assert_eq!((one.unwrap().meta().attempts(), two.unwrap().meta().attempts()), (3, 1));
    for seen in &server.seen()[2..] {
        assert!(seen.at - start >= Duration::from_secs(55), "{:?}", seen.at - start);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_of_its_own_is_held_back_with_the_same_key_only() {
    let (server, _told, told) = told().await;
    let other = Client::builder(server.base()).api_key("another-key").build().unwrap();
    assert!(other.pets().list().await.unwrap().meta().waited().is_zero());
    let same = client(&server.base()).pets().list().await.unwrap();
    assert!(same.meta().waited() >= Duration::from_secs(29), "{:?}", same.meta().waited());
    assert!(server.seen()[2].at - told >= Duration::from_millis(29_990));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_while_held_back_sends_nothing() {
    let (server, client, _) = told().await;
    let call = client.pets().list();
    tokio::time::timeout(Duration::from_secs(5), call.send()).await.unwrap_err();
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(server.count(), 1);
    client.pets().list().await.unwrap();
    assert_eq!(server.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_behind_one_that_hangs_keeps_its_own_time_limit() {
    let server = Wire::start(|_| Act::Stall(vec![]));
    let client = client(&server.base());
    let hanging = tokio::spawn({
        let client = client.clone();
        async move { client.pets().list().await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let start = Instant::now();
    let short = RequestOptions::new().timeout(Duration::from_secs(5));
    let error = client.pets().list().options(&short).await.unwrap_err();
    assert!(error.is_timeout() && error.attempts() == 0, "{error}");
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
    hanging.abort();
}

#[tokio::test(start_paused = true)]
async fn the_time_behind_own_requests_is_not_counted_against_max_wait() {
    let server = Wire::of(vec![
        Act::Later(Duration::from_secs(20), http(200, &[], "[]")),
        answer(429, &[("Retry-After", "5")], ""),
        no_pets(),
    ]);
    let client = client(&server.base());
    let patience = RequestOptions::new().max_wait(Duration::from_secs(10));
    let calls = [(); 2].map(|()| client.pets().list().options(&patience).send());
    for page in futures_util::future::join_all(calls).await {
        page.unwrap();
    }
    assert_eq!(server.seen().len(), 3);
}
