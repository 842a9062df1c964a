//! Tests of closing a client: calls that wait end, requests in flight finish, and others go on.

use petstore_client::auth::provider_fn;
use petstore_client::limits::{Limits, RedisStore};
use petstore_client::{Client, Error, ErrorKind};
use tokio::time::{Instant, sleep, timeout};

use super::kit::{
    REX, answer, builder, client, create, http, key, millis, no_pets, once, secs, serve,
};
use super::wire::{Act, Wire};

/// Closes a client while it lists pets and has to wait. Returns the error of that call.
async fn closed_while_it_waits(client: &Client) -> Error {
    let call = tokio::spawn(client.pets().list().send());
    sleep(secs(5)).await;
    assert!(!call.is_finished());
    let (ended, ()) = tokio::join!(timeout(millis(100), call), client.close());
    let error = ended.expect("at once").unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    error
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_the_service_ends_at_once() {
    // A block of the key and a back-off.
    for (status, may_have_been_processed) in [(429, false), (503, true)] {
        let (server, client) = serve(vec![answer(status, &[("Retry-After", "60")], "")]);
        let error = closed_while_it_waits(&client).await;
        assert_eq!((error.attempts(), server.count()), (1, 1), "{status}");
        let processed = error.may_have_been_processed();
        assert_eq!(processed, may_have_been_processed, "{status}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_another_one_or_for_its_key_ends_at_once() {
    let server = Wire::of(vec![Act::Stall(Vec::new())]);
    let one_at_a_time = builder(&server.base()).limits(Limits::new().max_in_flight(1));
    let behind = one_at_a_time.build().unwrap();
    let _first = tokio::spawn(behind.pets().list().send());
    let vault = provider_fn(|_| std::future::pending());
    let keyless = builder(&server.base()).api_key_provider(vault);
    for client in [behind, keyless.build().unwrap()] {
        let error = closed_while_it_waits(&client).await;
        assert_eq!((error.attempts(), server.count()), (0, 1));
        assert!(!error.may_have_been_processed(), "{error}");
    }
}

#[tokio::test]
async fn a_later_call_fails_also_of_a_clone_and_with_other_options() {
    let (server, client) = serve(vec![no_pets()]);
    let clients = [client.clone(), client.with_options(&once())];
    client.close().await;
    client.close().await;
    for client in clients {
        let error = client.pets().list().await.unwrap_err();
        assert_eq!(error.to_string(), "listPets failed: the client is closed");
        assert!(!error.may_have_been_processed() && !error.is_transient());
        let error = client.pets().list().items().try_next().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        let error = client.limits().refresh().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    }
    assert_eq!(server.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_in_flight_is_waited_for_a_second_and_never_interrupted() {
    for (latency, expected) in [(500, 490..1_000), (20_000, 990..1_100)] {
        let created = http(201, &[], REX);
        let (server, client) = serve(vec![Act::Later(millis(latency), created)]);
        let closed = async {
            while server.count() == 0 {
                sleep(millis(1)).await;
            }
            let start = Instant::now();
            client.close().await;
            start.elapsed().as_millis()
        };
        let (created, took) = tokio::join!(create(&client), closed);
        assert!(expected.contains(&took), "{took} ms");
        assert_eq!(created.unwrap().name, "Rex");
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
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_does_not_hold_up_the_end() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let store = RedisStore::new(&format!("redis://{}", silent.local_addr().unwrap())).unwrap();
    let limits = Limits::new().store(store);
    let client = builder("http://127.0.0.1:1/v1").limits(limits);
    let client = client.build().unwrap();
    let call = tokio::spawn(client.pets().list().send());
    sleep(millis(100)).await;
    let start = Instant::now();
    client.close().await;
    let took = start.elapsed();
    assert!(took < millis(1_100), "{took:?}");
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
}
