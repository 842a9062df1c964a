//! Tests of closing a client: calls that wait end, requests in flight finish, and others go on.

use std::time::Duration;

use petstore_client::auth::provider_fn;
use petstore_client::limits::{Limits, RedisStore};
use petstore_client::{Client, ErrorKind, NewPet, Pet, Result};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::kit::{REX, answer, builder, client, http, key, millis, no_pets, once, secs, serve};
use super::wire::{Act, Wire};

/// How long closing takes at most, with slack for a slow machine.
const MOST: Duration = millis(1_100);

/// Closes a client. Returns how long that took.
async fn close(client: &Client) -> Duration {
    let start = Instant::now();
    client.close().await;
    start.elapsed()
}

/// Starts to create a pet, and returns once the request has arrived.
async fn creating(server: &Wire, client: &Client) -> JoinHandle<Result<Pet>> {
    let before = server.count();
    let call = tokio::spawn(client.pets().create(&NewPet::new("Rex", 7)).send());
    while server.count() == before {
        sleep(millis(1)).await;
    }
    call
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_ends_at_once() {
    // A block of the key and a back-off.
    for (status, may_have_been_processed) in [(429, false), (503, true)] {
        let (server, client) = serve(vec![answer(status, &[("Retry-After", "60")], "")]);
        let call = tokio::spawn(client.pets().list().send());
        sleep(secs(5)).await;
        assert!(!call.is_finished(), "{status}");
        assert!(close(&client).await < millis(100), "{status}");
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{status}: {error}");
        assert_eq!((error.attempts(), server.count()), (1, 1), "{status}");
        let processed = error.may_have_been_processed();
        assert_eq!(processed, may_have_been_processed, "{status}: {error}");
        assert_eq!(error.operation(), Some("listPets"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_another_one_or_for_its_key_ends_at_once() {
    let server = Wire::of(vec![Act::Stall(Vec::new())]);
    let one_at_a_time = builder(&server.base()).limits(Limits::new().max_in_flight(1));
    let behind = one_at_a_time.build().unwrap();
    let _first = creating(&server, &behind).await;
    let vault = provider_fn(|_| std::future::pending());
    let keyless = builder(&server.base()).api_key_provider(vault);
    for client in [behind, keyless.build().unwrap()] {
        let call = tokio::spawn(client.pets().list().send());
        sleep(secs(5)).await;
        assert!(!call.is_finished());
        let start = Instant::now();
        let (_, ended) = tokio::join!(client.close(), async { (call.await, start.elapsed()) });
        let (result, after) = ended;
        let error = result.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        assert!(after < millis(100), "{after:?}");
        assert_eq!((error.attempts(), server.count()), (0, 1));
        assert!(!error.may_have_been_processed(), "{error}");
    }
}

#[tokio::test]
async fn a_later_call_fails_also_of_a_clone_and_with_other_options() {
    let (server, client) = serve(vec![no_pets()]);
    client.pets().list().await.unwrap();
    let clients = [client.clone(), client.with_options(&once()), client.clone()];
    client.close().await;
    client.close().await;
    for client in clients {
        let error = client.pets().list().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        assert_eq!(error.to_string(), "listPets failed: the client is closed");
        assert!(!error.may_have_been_processed() && !error.is_transient());
        let error = client.pets().list().items().try_next().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        let error = client.limits().refresh().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    }
    assert_eq!(server.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_in_flight_is_waited_for_a_second_and_never_interrupted() {
    for (latency, expected) in [(500, 490..1_000), (20_000, 990..1_100)] {
        let created = http(201, &[], REX);
        let (server, client) = serve(vec![Act::Later(millis(latency), created)]);
        let call = creating(&server, &client).await;
        let took = close(&client).await;
        assert!(expected.contains(&took.as_millis()), "{took:?}");
        assert_eq!(call.await.unwrap().unwrap().name, "Rex");
    }
}

#[tokio::test]
async fn other_clients_with_the_key_go_on() {
    let server = Wire::start(|_| no_pets());
    let (closed, same) = (client(&server.base()), client(&server.base()));
    let customer = closed.with_api_key(format!("{}-customer", key())).unwrap();
    let again = closed.with_api_key(key()).unwrap();
    closed.close().await;
    for client in [same, customer, again] {
        client.pets().list().await.unwrap();
    }
    assert_eq!(server.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_does_not_hold_up_the_end() {
    let server = Wire::start(|_| no_pets());
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let store = RedisStore::new(&format!("redis://{}", silent.local_addr().unwrap())).unwrap();
    let limits = Limits::new().store(store);
    let client = builder(&server.base()).limits(limits).build().unwrap();
    let call = tokio::spawn(client.pets().list().send());
    sleep(millis(100)).await;
    let took = close(&client).await;
    assert!(took < MOST, "{took:?}");
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
}
