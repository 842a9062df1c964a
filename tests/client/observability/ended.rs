//! The event that ends each call, and what is logged at WARN.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use petstore_client::events::EventKind;
use petstore_client::{ErrorKind, RequestOptions};
use tokio::time::timeout;

use crate::client::kit::{
    answer, builder, client, list_with, no_pets, once, recorded, secs, serve,
};
use crate::client::logs::Logs;
use crate::client::wire::Wire;

#[tokio::test(start_paused = true)]
async fn each_call_ends_once_with_its_attempts_and_waits() {
    let late = || answer(503, &[("Retry-After", "4")], "");
    let server = Wire::of(vec![
        late(),
        no_pets(),
        answer(404, &[], ""),
        answer(200, &[], "{}"),
        late(),
        late(),
    ]);
    let (client, ends) = recorded(builder(&server.base()), |event| match event.kind {
        EventKind::Ended {
            result,
            attempts,
            waited,
            elapsed,
            ..
        } => {
            let result = match result {
                Some(Ok(status)) => status.to_string(),
                Some(Err(error)) => error.kind().to_string(),
                None => "cancelled".to_owned(),
            };
            let operation = event.operation.unwrap();
            let (waited, elapsed) = (waited.as_secs(), elapsed.as_secs());
            Some(format!(
                "{operation} {attempts} {result}, {waited} of {elapsed} s"
            ))
        }
        _ => None,
    });
    let client = client.build().unwrap();
    client.pets().list().await.unwrap();
    client.store().orders().options(&once()).await.unwrap_err();
    client.pets().list().await.unwrap_err();
    client.pets().list().limit(0).await.unwrap_err();
    // A pause that is cut short does not count in full.
    let stalled = client.pets().list().send();
    timeout(secs(6), stalled).await.unwrap_err();
    drop(client.pets().list().send());
    let expected = [
        "listPets 2 200 OK, 4 of 4 s",
        "GET /store/orders 1 NotFound, 0 of 0 s",
        "listPets 1 Decode, 0 of 0 s",
        "listPets 0 InvalidRequest, 0 of 0 s",
        "listPets 2 cancelled, 4 of 6 s",
    ];
    let why = "a call that was never polled has no events";
    assert_eq!(*ends.lock().unwrap(), expected, "{why}");
}

#[tokio::test(start_paused = true)]
async fn all_events_of_a_call_have_its_number() {
    let server = Wire::of(vec![
        answer(429, &[("Retry-After", "1")], ""),
        answer(503, &[], ""),
        no_pets(),
    ]);
    let (client, heard) = recorded(builder(&server.base()), |event| {
        let kind = match event.kind {
            EventKind::Waiting { .. } => "waiting",
            EventKind::Throttled { .. } => "throttled",
            EventKind::Retrying { .. } => "retrying",
            EventKind::Ended { .. } => "ended",
            _ => "another",
        };
        Some((event.call_id.unwrap(), kind))
    });
    let client = client.build().unwrap();
    client.pets().list().await.unwrap();
    client.pets().list().await.unwrap();
    let heard = heard.lock().unwrap().clone();
    let of = |kind| heard.iter().filter(move |heard| heard.1 == kind);
    for (kind, count) in [
        ("throttled", 1),
        ("waiting", 1),
        ("retrying", 1),
        ("ended", 2),
    ] {
        assert_eq!(of(kind).count(), count, "{kind}: {heard:?}");
    }
    assert!(heard.is_sorted_by_key(|(number, _)| *number), "{heard:?}");
    assert_ne!(heard[0].0, heard[heard.len() - 1].0);
}

#[tokio::test(start_paused = true)]
async fn refusals_bans_and_exhausted_retries_are_warnings() {
    let (_server, client) = serve(vec![
        answer(429, &[("Retry-After", "2")], ""),
        answer(429, &[("Retry-After", "2")], r#"{"code":"key_banned"}"#),
        no_pets(),
        answer(503, &[], ""),
        answer(503, &[], ""),
    ]);
    let logs = Logs::capture();
    client.pets().list().await.unwrap();
    let twice = RequestOptions::new().max_attempts(2);
    let error = list_with(&client, &twice).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server);
    let text = logs.text();
    let warnings: Vec<_> = text
        .lines()
        .filter(|line| line.contains(" WARN "))
        .collect();
    assert_eq!(warnings.len(), 3, "{warnings:#?}");
    let expected = [
        "too many requests",
        "banned the API key",
        "no retry is left",
    ];
    for (warning, expected) in warnings.iter().zip(expected) {
        assert!(
            warning.contains(expected) && warning.contains("listPets"),
            "{warning}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_block_is_one_warning_however_many_calls_it_refuses() {
    let is_banned = Arc::new(AtomicBool::new(false));
    let banned = Arc::clone(&is_banned);
    let server = Wire::reading(move |_| match banned.load(Ordering::Relaxed) {
        true => answer(429, &[("Retry-After", "300")], r#"{"code":"key_banned"}"#),
        false => no_pets(),
    });
    let client = client(&server.base());
    client.pets().list().await.unwrap();
    let logs = Logs::capture();
    is_banned.store(true, Ordering::Relaxed);
    for refused in join_all((0..8).map(|_| client.pets().list().send())).await {
        assert!(refused.unwrap_err().is_rate_limited());
    }
    let refused = client.limits().snapshot().throttled;
    assert!(refused > 1, "{refused}");
    assert_eq!(logs.text().matches(" WARN ").count(), 1);
}
