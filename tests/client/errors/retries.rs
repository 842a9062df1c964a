//! Tests of retries: which requests, how often, and after which wait.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::http::Method;
use petstore_client::retry::{Backoff, RetryAdvice, RetryBudget, RetryPolicy};
use petstore_client::test_util::{self, FakeService};
use petstore_client::transport::TransportError;
use petstore_client::{ErrorKind, NewPet, RequestOptions};

use crate::client::kit::{
    REX, answer, at_once, builder, client, list_meta, millis, no_pets, once, secs, serve,
};
use crate::client::service::{self, get, patient, within};
use crate::client::wire::{Act, Wire, listen};

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
async fn a_post_that_never_left_is_tried_again() {
    // Nothing listens there any more.
    let address = listen().local_addr().unwrap();
    let base = format!("http://{address}/v1");
    let error = client(&base)
        .pets()
        .create(&NewPet::new("a", 1))
        .await
        .unwrap_err();
    assert!(error.is_connect() && !error.is_timeout() && !error.may_have_been_processed());
    assert_eq!(error.attempts(), 4);
}

#[tokio::test]
async fn other_methods_follow_rfc_9110() {
    for (method, sent) in [
        (Method::GET, 2),
        (Method::HEAD, 2),
        (Method::OPTIONS, 2),
        (Method::PUT, 2),
        (Method::DELETE, 2),
        (Method::POST, 1),
        (Method::PATCH, 1),
    ] {
        let server = failing(500);
        let options = RequestOptions::new().max_attempts(2);
        let client = client(&server.base());
        client
            .request(method.clone(), "/x")
            .options(&options)
            .await
            .unwrap_err();
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
    client.pets().create(&NewPet::new("Rex", 7)).await.unwrap();
    assert_eq!(server.count(), 2);
    let (_server, client) = serve(vec![early()]);
    let only = client.pets().create(&NewPet::new("Rex", 7));
    let error = only.options(&once()).await.unwrap_err();
    assert!(error.is_transient() && !error.may_have_been_processed());
    assert!(error.to_string().ends_with("; try again later"), "{error}");
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

#[tokio::test]
async fn stops_at_the_limit_of_attempts() {
    let server = failing(500);
    let error = client(&server.base()).pets().list().await.unwrap_err();
    assert_eq!((error.attempts(), server.count()), (4, 4));
    assert!(error.to_string().ends_with("(after 4 attempts)"), "{error}");
    for (limit, sent) in [(1, 1), (3, 3)] {
        let server = failing(500);
        let options = RequestOptions::new().max_attempts(limit);
        let error = client(&server.base())
            .pets()
            .list()
            .options(&options)
            .await
            .unwrap_err();
        assert_eq!((error.attempts(), server.count()), (sent, sent as usize));
    }
}

#[tokio::test(start_paused = true)]
async fn all_clones_share_a_budget_that_calls_and_time_refill() {
    let server = Wire::start(|number| match number {
        100..200 => no_pets(),
        _ => answer(500, &[], ""),
    });
    let budget = RetryBudget::new().ratio(0.1).min_per_second(1);
    let client = builder(&server.base())
        .retry(at_once().budget(budget))
        .build()
        .unwrap();
    let many = RequestOptions::new().max_attempts(100);
    let error = client
        .clone()
        .pets()
        .list()
        .options(&many)
        .await
        .unwrap_err();
    assert_eq!(
        error.attempts(),
        1 + 11,
        "ten in ten seconds, and a tenth of a call begun"
    );
    while server.count() < 100 {
        let error = client.pets().list().await.unwrap_err();
        assert!(
            error.attempts() <= 2,
            "a tenth of the calls may be repeated: {error}"
        );
    }
    let retried = server.count();
    for _ in 0..100 {
        client.pets().list().await.unwrap();
    }
    assert_eq!(server.count(), retried + 100);
    tokio::time::sleep(secs(20)).await;
    let error = client
        .clone()
        .pets()
        .list()
        .options(&many)
        .await
        .unwrap_err();
    assert_eq!(error.attempts(), 1 + 11, "the budget has recovered");
}

/// Other tests, without a client, check the intervals themselves.
#[tokio::test(start_paused = true)]
async fn backs_off_by_the_set_intervals_and_says_how_long() {
    let server = failing(500);
    let backoff = Backoff::new().initial(secs(8)).max(secs(16));
    let client = builder(&server.base()).retry(RetryPolicy::new().backoff(backoff));
    let error = client.build().unwrap().pets().list().await.unwrap_err();
    let seen = server.seen();
    let waits: Vec<_> = seen
        .windows(2)
        .map(|pair| pair[1].at - pair[0].at)
        .collect();
    let most = [8, 16, 16].map(|most| secs(most) + millis(20));
    assert!(
        waits.iter().zip(most).all(|(wait, most)| *wait <= most),
        "{waits:?}"
    );
    assert!(
        error.waited().abs_diff(waits.iter().sum()) < millis(50),
        "{waits:?}"
    );
    assert!(error.waited() > secs(0), "{waits:?}");
}

const LIMIT: Duration = secs(120);

/// Sends this many concurrent GETs whose connections are all reset once.
async fn restart(calls: usize) {
    let server = service::start(1_000_000).await;
    let client = patient(server.url()).build().unwrap();
    // The first call shows that the quota allows all of them.
    within(&client, LIMIT, get(&client)).await.unwrap();
    let restart = server.faults().on_all().first(calls as u64).reset();
    let all: Vec<_> = (0..calls).map(|_| tokio::spawn(get(&client))).collect();
    let done = within(&client, LIMIT, join_all(all)).await;
    let failed = done.into_iter().filter_map(|call| call.unwrap().err());
    let failed = failed.map(|error| error.to_string());
    let failed: Vec<_> = failed.collect();
    assert!(
        failed.is_empty(),
        "{} of {calls} calls failed: {}",
        failed.len(),
        failed[0]
    );
    assert_eq!(
        (restart.hits(), server.requests(..).len()),
        (calls as u64, 1 + 2 * calls)
    );
}

#[tokio::test(start_paused = true)]
async fn all_gets_in_flight_survive_a_restart_of_the_server() {
    restart(64).await;
    restart(256).await;
}

#[tokio::test]
async fn a_delete_repeated_after_a_lost_response_says_more_than_404() {
    let missing = || {
        let problem = r#"{"code":"pet_not_found","message":"no such pet"}"#;
        answer(404, &[], problem)
    };
    let delete = async |acts| {
        let (_server, client) = serve(acts);
        let error = client.request(Method::DELETE, "/pets/1").await;
        error.unwrap_err()
    };
    let note = "an earlier attempt, whose response was lost, may have deleted it";
    let repeated = delete(vec![Act::Reset(Vec::new()), missing()]).await;
    assert!(repeated.problem().ends_with(note), "{repeated}");
    assert!(repeated.to_string().contains(note), "{repeated}");
    assert_eq!(repeated.kind(), ErrorKind::NotFound);
    let unavailable = delete(vec![answer(503, &[], ""), missing()]).await;
    assert!(unavailable.problem().ends_with(note), "{unavailable}");
    // If there was only one request, or the earlier one was refused, the 404 is not explained.
    let throttled = answer(429, &[("Retry-After", "0")], "");
    for acts in [vec![missing()], vec![throttled, missing()]] {
        let error = delete(acts).await;
        assert!(error.problem().ends_with("no such pet"), "{error}");
    }
    let (_server, client) = serve(vec![Act::Reset(Vec::new()), missing()]);
    let get = client.request(Method::GET, "/pets/1").await.unwrap_err();
    assert!(get.problem().ends_with("no such pet"), "{get}");
}
