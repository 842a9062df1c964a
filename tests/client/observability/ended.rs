//! The event that ends each call, and what is logged at WARN.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::events::EventKind;
use petstore_client::{Client, ErrorKind, NewPet, RequestOptions};
use tokio::time::timeout;

use crate::client::kit::{
    answer, builder, client, list_with, no_pets, once, recorded, secs, serve,
};
use crate::client::logs::Logs;
use crate::client::wire::{Act, Wire};

/// What the events said of a call's end.
#[derive(Debug, Clone, PartialEq)]
struct End {
    operation: String,
    attempts: u32,
    waited: Duration,
    elapsed: Duration,
    outcome: String,
}

fn listening(server: &Wire) -> (Client, Arc<Mutex<Vec<End>>>) {
    let (client, ends) = recorded(builder(&server.base()), |event| {
        let EventKind::Ended {
            result,
            attempts,
            waited,
            elapsed,
            ..
        } = event.kind
        else {
            return None;
        };
        let outcome = match result {
            Some(Ok(status)) => status.as_str().to_owned(),
            Some(Err(error)) => error.kind().to_string(),
            None => "cancelled".to_owned(),
        };
        Some(End {
            operation: event.operation.unwrap().to_owned(),
            attempts,
            waited,
            elapsed,
            outcome,
        })
    });
    (client.build().unwrap(), ends)
}

#[tokio::test(start_paused = true)]
async fn each_call_ends_once_with_its_attempts_and_waits() {
    let server = Wire::of(vec![
        answer(503, &[("Retry-After", "2")], ""),
        no_pets(),
        answer(404, &[], ""),
        answer(200, &[], "{}"),
        Act::Stall(Vec::new()),
    ]);
    let (client, ends) = listening(&server);
    client.pets().list().await.unwrap();
    client.store().orders().options(&once()).await.unwrap_err();
    client.pets().list().await.unwrap_err();
    client.pets().list().limit(0).await.unwrap_err();
    let stalled = client.pets().create(&NewPet::new("Rex", 7)).send();
    timeout(secs(3), stalled).await.unwrap_err();
    drop(client.pets().list().send());
    let ends = ends.lock().unwrap().clone();
    let seen: Vec<_> = ends
        .iter()
        .map(|end| (&*end.operation, end.attempts, &*end.outcome))
        .collect();
    let expected = [
        ("listPets", 2, "200"),
        ("GET /store/orders", 1, "NotFound"),
        ("listPets", 1, "Decode"),
        ("listPets", 0, "InvalidRequest"),
        ("createPet", 1, "cancelled"),
    ];
    assert_eq!(seen, expected, "a call that was never polled has no events");
    assert_eq!(ends[0].waited.as_secs(), 2);
    assert!(ends[0].elapsed >= ends[0].waited);
    assert_eq!(ends[4].elapsed.as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_is_cut_short_does_not_count_in_full() {
    let server = Wire::of(vec![answer(503, &[("Retry-After", "4")], ""); 2]);
    let (client, ends) = listening(&server);
    timeout(secs(6), client.pets().list().send())
        .await
        .unwrap_err();
    let ends = ends.lock().unwrap().clone();
    assert_eq!((ends[0].attempts, &*ends[0].outcome), (2, "cancelled"));
    assert_eq!((ends[0].waited, ends[0].elapsed.as_secs()), (secs(4), 6));
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
    let (first, second) = (heard[0].0, heard[heard.len() - 1].0);
    assert_ne!(first, second);
    for (number, kind) in [
        (first, "throttled"),
        (first, "waiting"),
        (first, "retrying"),
        (first, "ended"),
        (second, "ended"),
    ] {
        let count = heard
            .iter()
            .filter(|heard| **heard == (number, kind))
            .count();
        assert_eq!(count, 1, "{kind}: {heard:?}");
    }
    assert!(heard.is_sorted_by_key(|(number, _)| *number), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn refusals_bans_and_exhausted_retries_are_warnings() {
    let (_server, client) = serve(vec![
        answer(429, &[("Retry-After", "1")], ""),
        answer(429, &[("Retry-After", "1")], r#"{"code":"key_banned"}"#),
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
    assert!(warnings[0].contains("too many requests"), "{}", warnings[0]);
    assert!(
        warnings[1].contains("banned the API key"),
        "{}",
        warnings[1]
    );
    assert!(warnings[2].contains("no retry is left"), "{}", warnings[2]);
    assert!(warnings.iter().all(|line| line.contains("listPets")));
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
    let lists = || join_all((0..8).map(|_| client.pets().list().send()));
    for warnings in 1..=2 {
        is_banned.store(true, Ordering::Relaxed);
        for refused in lists().await {
            assert!(refused.unwrap_err().is_rate_limited());
        }
        let refused = client.limits().snapshot().throttled;
        assert!(refused > warnings as u64, "{refused}");
        assert_eq!(logs.text().matches(" WARN ").count(), warnings);
        is_banned.store(false, Ordering::Relaxed);
        tokio::time::sleep(secs(300)).await;
        for page in lists().await {
            page.unwrap();
        }
    }
}
