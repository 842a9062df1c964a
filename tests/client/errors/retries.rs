//! Tests of retries: which requests, how often, and after which wait.

use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use petstore_client::http::Method;
use petstore_client::retry::{RetryAdvice, RetryBudget, RetryPolicy};
use petstore_client::test_util::{self, FakeService};
use petstore_client::transport::TransportError;
use petstore_client::{ErrorKind, RequestOptions};

use crate::client::kit::{
    REX, answer, at_once, builder, client, create, list_meta, list_with, no_pets, once, secs, serve,
};
use crate::client::service::{self, get, patient, within};
use crate::client::wire::Wire;

fn failing(status: u16) -> Wire {
    Wire::start(move |_| answer(status, &[], ""))
}

#[tokio::test]
async fn a_get_is_not_sent_again_after_a_final_response() {
    for status in [301, 400, 401, 403, 404, 405, 410, 422, 501, 505] {
        let server = failing(status);
        let error = client(&server.base()).pets().list().await.unwrap_err();
        assert_eq!((error.attempts(), server.count()), (1, 1), "{status}");
    }
}

#[tokio::test]
async fn other_methods_follow_rfc_9110() {
    for (method, sent) in [
        (Method::HEAD, 2),
        (Method::PUT, 2),
        (Method::DELETE, 2),
        (Method::POST, 1),
        (Method::PATCH, 1),
    ] {
        let server = failing(500);
        let twice = RequestOptions::new().max_attempts(2);
        let client = client(&server.base());
        let request = client.request(method.clone(), "/x").options(&twice);
        request.await.unwrap_err();
        assert_eq!(server.count(), sent, "{method}");
    }
}

/// A 425 says that the service did not process the request (RFC 8470, section 5.2).
#[tokio::test(start_paused = true)]
async fn a_request_that_came_too_early_is_sent_again() {
    let early = || answer(425, &[("Retry-After", "20")], "");
    let (server, client) = serve(vec![early(), no_pets()]);
    let meta = list_meta(&client).await;
    assert_eq!((meta.attempts(), server.count()), (2, 2));
    assert!(meta.waited() >= secs(20), "as long as it asks");
    let (server, client) = serve(vec![early(), answer(201, &[], REX)]);
    create(&client).await.unwrap();
    assert_eq!(server.count(), 2);
    let (_server, client) = serve(vec![early()]);
    let error = create(&client.with_options(&once())).await.unwrap_err();
    assert!(error.is_transient() && !error.may_have_been_processed());
}

/// A failed TLS handshake sends nothing, but it counts as an attempt.
#[tokio::test(start_paused = true)]
async fn a_classifier_that_always_retries_ends_at_the_limit() {
    let numbers = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&numbers);
    let policy = RetryPolicy::new().classifier(move |failed| {
        seen.lock().unwrap().push(failed.attempt);
        RetryAdvice::Retry
    });
    let client = test_util::builder()
        .transport(FakeService::new(|_| Err(TransportError::tls("untrusted"))))
        .retry(policy);
    let error = client.build().unwrap().pets().list().await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Tls, 4));
    assert_eq!(*numbers.lock().unwrap(), [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn all_clones_share_a_budget_that_recovers() {
    let server = failing(500);
    let budget = RetryBudget::new().ratio(0.1).min_per_second(1);
    let client = builder(&server.base()).retry(at_once().budget(budget));
    let client = client.build().unwrap();
    let many = RequestOptions::new().max_attempts(100);
    let attempts = async || {
        let error = list_with(&client.clone(), &many).await.unwrap_err();
        error.attempts()
    };
    // Ten retries in ten seconds, and a tenth of a call that has begun.
    assert_eq!(attempts().await, 1 + 11);
    assert!(attempts().await <= 2);
    tokio::time::sleep(secs(20)).await;
    assert_eq!(attempts().await, 1 + 11);
}

#[tokio::test(start_paused = true)]
async fn all_gets_in_flight_survive_a_restart_of_the_server() {
    const CALLS: usize = 256;
    let limit = secs(120);
    let server = service::start(1_000_000).await;
    let client = patient(server.url()).build().unwrap();
    // The first call shows that the quota allows all of them.
    within(&client, limit, get(&client)).await.unwrap();
    let restart = server.faults().on(..).first(CALLS as u64).reset();
    let all: Vec<_> = (0..CALLS).map(|_| tokio::spawn(get(&client))).collect();
    for call in within(&client, limit, join_all(all)).await {
        call.unwrap().unwrap();
    }
    assert_eq!(restart.hits(), CALLS as u64);
    assert_eq!(server.requests(..).len(), 1 + 2 * CALLS);
}
