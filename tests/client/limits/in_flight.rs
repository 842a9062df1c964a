//! Tests of the most requests in flight, with a service that shows a large quota and answers late.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use petstore_client::bytes::Bytes;
use petstore_client::http::Response;
use petstore_client::limits::Limits;
use petstore_client::transport::{Transport, transport_fn};
use tokio::time::sleep;

use crate::client::kit::secs;
use crate::client::service::{get, patient};

/// A service with 100,000 requests a minute, each of which takes two seconds. It counts those in flight. A
/// transport takes its place, because sockets would need twice as many open files.
fn late(in_flight: &Arc<AtomicUsize>) -> impl Transport + use<> {
    let in_flight = Arc::clone(in_flight);
    transport_fn(move |_| {
        let in_flight = Arc::clone(&in_flight);
        async move {
            in_flight.fetch_add(1, Ordering::Relaxed);
            sleep(secs(2)).await;
            in_flight.fetch_sub(1, Ordering::Relaxed);
            let mut response = Response::new(Bytes::from_static(b"[]"));
            for (name, value) in [
                ("x-ratelimit-limit", 100_000),
                ("x-ratelimit-remaining", 90_000),
                ("x-ratelimit-reset", 60),
            ] {
                response.headers_mut().insert(name, value.into());
            }
            Ok(response)
        }
    })
}

/// Returns how many of 700 calls of these clients are in flight at once.
async fn in_flight_of_700(clients: usize, limits: &Limits) -> usize {
    let in_flight = Arc::default();
    let client = |_| {
        let client = patient("https://petstore.test/v1").transport(late(&in_flight));
        client.limits(limits.clone()).build().unwrap()
    };
    let clients: Vec<_> = (0..clients).map(client).collect();
    get(&clients[0]).await.unwrap();
    let calls = (0..700).map(|number| get(&clients[number % clients.len()]));
    let look = async {
        sleep(secs(1)).await;
        in_flight.load(Ordering::Relaxed)
    };
    let (results, in_flight) = tokio::join!(join_all(calls), look);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    in_flight
}

#[tokio::test(start_paused = true)]
async fn clients_with_one_key_have_512_requests_in_flight_unless_they_may_have_more() {
    for (clients, limits, expected) in [
        (1, Limits::new(), 512),
        (2, Limits::new(), 512),
        (1, Limits::new().max_in_flight(600), 600),
    ] {
        let in_flight = in_flight_of_700(clients, &limits).await;
        assert_eq!(in_flight, expected, "{clients} clients");
    }
}
