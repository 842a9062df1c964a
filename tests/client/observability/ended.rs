//! The event that ends each call, what is logged at WARN, and the spans of attempts.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::auth::provider_fn;
use petstore_client::events::EventKind;
use petstore_client::{ApiKey, Client, ErrorKind, NewPet, RequestOptions};
use tokio::time::timeout;

use crate::client::kit::{
    answer, builder, client, http, key, millis, no_pets, once, recorded, secs, serve,
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
async fn a_cancelled_call_that_waits_ends_too() {
    let server = Wire::of(vec![answer(429, &[("Retry-After", "60")], "")]);
    let (client, ends) = listening(&server);
    client.pets().list().options(&once()).await.unwrap_err();
    timeout(secs(5), client.pets().list().send())
        .await
        .unwrap_err();
    let ends = ends.lock().unwrap().clone();
    assert_eq!(ends.len(), 2);
    assert_eq!((ends[1].attempts, &*ends[1].outcome), (0, "cancelled"));
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
        no_pets(),
    ]);
    let (client, numbers) = recorded(builder(&server.base()), |event| {
        let kind = match event.kind {
            EventKind::Sending { .. } => "sending",
            EventKind::Answered { .. } => "answered",
            EventKind::Waiting { .. } => "waiting",
            EventKind::Throttled { .. } => "throttled",
            EventKind::Retrying { .. } => "retrying",
            EventKind::Ended { .. } => "ended",
            _ => return None,
        };
        Some((kind, event.call_id.unwrap()))
    });
    let client = client.build().unwrap();
    client.pets().list().await.unwrap();
    client.pets().list().await.unwrap();
    let numbers = numbers.lock().unwrap().clone();
    let (first, second) = numbers.split_at(numbers.len() - 3);
    let kinds: Vec<_> = first.iter().map(|(kind, _)| *kind).collect();
    for kind in ["waiting", "throttled", "retrying", "ended"] {
        assert_eq!(kinds.iter().filter(|seen| **seen == kind).count(), 1);
    }
    let number = first[0].1;
    assert!(
        first.iter().all(|(_, other)| *other == number),
        "{numbers:?}"
    );
    assert!(second.iter().all(|(_, other)| *other == second[0].1));
    assert_ne!(second[0].1, number);
}

/// Latency with waits from events alone.
#[tokio::test(start_paused = true)]
async fn the_latency_of_calls_is_counted_from_events() {
    static TOTAL_MILLIS: AtomicU64 = AtomicU64::new(0);
    let server = Wire::of(vec![
        answer(503, &[("Retry-After", "2")], ""),
        Act::Later(millis(500), crate::client::kit::http(200, &[], "[]")),
    ]);
    let client = builder(&server.base())
        .on_event(|event| {
            if let EventKind::Ended { elapsed, .. } = event.kind {
                let elapsed = u64::try_from(elapsed.as_millis()).unwrap();
                TOTAL_MILLIS.fetch_add(elapsed, Ordering::Relaxed);
            }
        })
        .build()
        .unwrap();
    client.pets().list().await.unwrap();
    let total = TOTAL_MILLIS.load(Ordering::Relaxed);
    assert!((2_500..2_600).contains(&total), "{total}");
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
    let error = client.pets().list().options(&twice).await.unwrap_err();
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
    let client = builder(&server.base()).build().unwrap();
    client.pets().list().await.unwrap();
    let logs = Logs::capture();
    let lists = || (0..8).map(|_| client.pets().list().send());
    is_banned.store(true, Ordering::Relaxed);
    for refused in join_all(lists()).await {
        assert!(refused.unwrap_err().is_rate_limited());
    }
    let refused = client.limits().snapshot().throttled;
    assert!(refused > 1, "{refused}");
    let warnings = || logs.text().matches(" WARN ").count();
    assert_eq!(warnings(), 1, "of {refused} refused calls");
    is_banned.store(false, Ordering::Relaxed);
    tokio::time::sleep(secs(300)).await;
    for page in join_all(lists()).await {
        page.unwrap();
    }
    is_banned.store(true, Ordering::Relaxed);
    client.pets().list().await.unwrap_err();
    assert_eq!(warnings(), 2, "a later ban is another one");
}

#[tokio::test(start_paused = true)]
async fn each_key_has_a_warning_of_its_own_block() {
    let server = Wire::start(|_| answer(429, &[("Retry-After", "300")], ""));
    let number = AtomicU32::new(0);
    let rotating = provider_fn(move |_| {
        let number = number.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Ok(ApiKey::new(format!("{}-{number}", key()))))
    });
    let client = builder(&server.base())
        .api_key_provider(rotating)
        .build()
        .unwrap();
    let logs = Logs::capture();
    for _ in 0..2 {
        let error = client.pets().list().await.unwrap_err();
        assert!(error.is_rate_limited());
    }
    assert_eq!(logs.text().matches(" WARN ").count(), 2);
}

#[tokio::test(start_paused = true)]
async fn two_clients_with_one_key_share_the_warning_of_its_block() {
    // Neither names an end: each refusal blocks for a minute from its own time.
    let refusal = || Act::Later(secs(3), http(429, &[], ""));
    let server = Wire::of(vec![no_pets(), refusal(), refusal()]);
    let clients = [client(&server.base()), client(&server.base())];
    clients[0].pets().list().await.unwrap();
    let logs = Logs::capture();
    let calls = clients
        .iter()
        .zip([0, 2])
        .map(|(client, delay)| async move {
            tokio::time::sleep(secs(delay)).await;
            client.pets().list().max_wait(secs(0)).await.unwrap_err()
        });
    for error in join_all(calls).await {
        assert!(error.is_rate_limited());
    }
    assert_eq!(server.count(), 3);
    assert_eq!(logs.text().matches(" WARN ").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn each_attempt_is_a_span_below_its_calls() {
    let (_server, client) = serve(vec![answer(503, &[], ""), no_pets(), Act::Cut(Vec::new())]);
    let logs = Logs::capture();
    let list = client.pets().list().limit(7);
    list.await.unwrap();
    client
        .pets()
        .create(&NewPet::new("Rex", 7))
        .await
        .unwrap_err();
    let text = logs.text();
    let closed: Vec<_> = text
        .lines()
        .filter(|line| line.contains(":attempt{") && line.contains("petstore_client: close"))
        .collect();
    assert_eq!(closed.len(), 3, "{text}");
    for field in [
        "call{",
        r#"otel.name=GET /pets"#,
        "server.port=",
        "url.full=http://127.0.0.",
        "limit=7",
        "http.response.status_code=503",
        "error.type=\"503\"",
    ] {
        assert!(
            closed[0].contains(field),
            "{field} is missing in {}",
            closed[0]
        );
    }
    let attempt = closed[0].split(":attempt{").nth(1).unwrap();
    assert!(!attempt.contains("resend_count"), "{attempt}");
    let attempt = closed[1].split(":attempt{").nth(1).unwrap();
    assert!(attempt.contains("http.request.resend_count=1"), "{attempt}");
    assert!(!attempt.contains("error.type"), "{attempt}");
    assert!(
        closed[2].contains("error.type=Interrupted"),
        "{}",
        closed[2]
    );
}
