//! Tests of events of waits and 429s, and of the snapshot of the limits.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use petstore_client::events::EventKind;
use petstore_client::limits::{BlockReason, FileStore, Limits, Quota, RateLimits, WaitReason};
use petstore_client::{Client, NewPet, RequestOptions};
use tokio::task::JoinHandle;

use crate::client::kit::{answer, builder, http, list_meta, millis, no_pets, once, recorded, secs};
use crate::client::wire::{Act, Wire};

type Heard<T> = Arc<Mutex<Vec<T>>>;

type Said = (String, BlockReason, u64, u32);

fn listening(server: &Wire) -> (Client, Heard<Said>, Heard<u64>) {
    let (client, refusals) = recorded(builder(&server.base()), |event| {
        let EventKind::Throttled {
            attempt, blocked, ..
        } = event.kind
        else {
            return None;
        };
        let operation = event.operation.unwrap().to_owned();
        Some((
            operation,
            blocked.reason,
            blocked.remaining.as_secs(),
            attempt,
        ))
    });
    let (client, waits) = recorded(client, |event| {
        let EventKind::Waiting {
            reason, blocked, ..
        } = event.kind
        else {
            return None;
        };
        let blocked = blocked?;
        assert_eq!(reason, WaitReason::Blocked);
        Some(blocked.remaining.as_secs())
    });
    (client.build().unwrap(), refusals, waits)
}

/// Answers after a second, with this many requests left in the minute.
fn slowly(left: &str, limit: &str) -> Act {
    let quota = [
        ("X-RateLimit-Limit", limit),
        ("X-RateLimit-Remaining", left),
        ("X-RateLimit-Reset", "60"),
    ];
    Act::Later(secs(1), http(200, &quota, "[]"))
}

#[tokio::test(start_paused = true)]
async fn hears_of_each_429_also_where_the_call_succeeds_in_the_end() {
    let server = Wire::of(vec![
        answer(429, &[("Retry-After", "30")], ""),
        answer(429, &[("Retry-After", "40")], ""),
        answer(503, &[("Retry-After", "3")], ""),
        answer(429, &[("Retry-After", "50")], r#"{"code":"key_banned"}"#),
        no_pets(),
    ]);
    let (client, refusals, waits) = listening(&server);
    client
        .pets()
        .list()
        .max_wait(secs(250))
        .options(&RequestOptions::new().max_attempts(9))
        .await
        .unwrap();
    let recorded = refusals.lock().unwrap().clone();
    let said = |(operation, reason, _, attempt): &Said| {
        assert_eq!(operation, "listPets");
        (*reason, *attempt)
    };
    let expected = [
        (BlockReason::Unknown, 1),
        (BlockReason::Unknown, 2),
        (BlockReason::Ban, 4),
    ];
    assert_eq!(recorded.iter().map(said).collect::<Vec<_>>(), expected);
    // After a second 429 in a row, the wait may be longer than requested, but never shorter.
    for (recorded, asked) in recorded.iter().zip([30, 40, 50]) {
        assert!(
            (asked..asked + 10).contains(&(recorded.2 + 1)),
            "{recorded:?}"
        );
    }
    assert_eq!(waits.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn hears_of_a_refusal_that_ends_the_call() {
    let server = Wire::start(|_| answer(429, &[("Retry-After", "30")], ""));
    let (client, refusals, waits) = listening(&server);
    client.pets().list().options(&once()).await.unwrap_err();
    assert_eq!(
        (refusals.lock().unwrap().len(), waits.lock().unwrap().len()),
        (1, 0)
    );
    // A call that would wait too long is not sent, so the service does not refuse it.
    client
        .pets()
        .list()
        .max_wait(Duration::ZERO)
        .await
        .unwrap_err();
    assert_eq!(
        (refusals.lock().unwrap().len(), waits.lock().unwrap().len()),
        (1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_begins_in_line_sends_an_event() {
    let server = Wire::start(|number| {
        if number == 0 {
            slowly("0", "10")
        } else {
            no_pets()
        }
    });
    let (client, _, waits) = listening(&server);
    let calls = (0..5).map(|_| client.pets().list().send());
    for page in futures_util::future::join_all(calls).await {
        page.unwrap();
    }
    // All calls came before the response that says that nothing is left.
    let told = waits.lock().unwrap().clone();
    assert!(matches!(told[..], [60..=62]), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_quota_is_shown_until_its_reset() {
    let server = Wire::start(|_| slowly("9", "10"));
    let client = builder(&server.base()).build().unwrap();
    client.pets().list().await.unwrap();
    tokio::time::sleep(secs(58)).await;
    assert_eq!(client.limits().snapshot().windows.len(), 1);
    tokio::time::sleep(secs(3)).await;
    assert_eq!(client.limits().snapshot().windows, []);
}

fn call(client: &Client) -> JoinHandle<Duration> {
    let client = client.clone();
    tokio::spawn(async move { list_meta(&client).await.waited() })
}

/// Returns a snapshot half a second after two calls, and how long the second call waited.
async fn second_of_two(client: &Client) -> (RateLimits, Duration) {
    let first = call(client);
    tokio::time::sleep(millis(100)).await;
    let second = call(client);
    tokio::time::sleep(millis(400)).await;
    let seen = client.limits().snapshot();
    assert!(first.await.unwrap().is_zero());
    (seen, second.await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_requests_that_may_use_up_the_rest_is_shown() {
    let server = Wire::start(|number| slowly(if number < 2 { "1" } else { "0" }, "2"));
    let client = builder(&server.base()).build().unwrap();
    client.pets().list().await.unwrap();
    let (seen, waited) = second_of_two(&client).await;
    assert_eq!(
        (seen.wait_reason, seen.blocked),
        (Some(WaitReason::Reserved), None)
    );
    assert_eq!(waited.as_millis() / 100, 9, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn shows_that_a_call_waits_for_the_most_that_may_be_in_flight() {
    let server = Wire::start(|_| slowly("9", "10"));
    let client = builder(&server.base())
        .limits(Limits::new().max_in_flight(1))
        .build()
        .unwrap();
    client.pets().list().await.unwrap();
    assert_eq!(client.limits().snapshot().wait_reason, None);
    let (seen, waited) = second_of_two(&client).await;
    assert_eq!(
        (seen.wait_reason, seen.blocked),
        (Some(WaitReason::Concurrency), None)
    );
    assert_eq!(waited.as_millis() / 100, 9, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn shows_the_limit_that_holds_a_call_back_and_what_was_lost() {
    let server = Wire::of(vec![
        slowly("5", "10"),
        Act::Stall(vec![]),
        slowly("0", "10"),
    ]);
    let client = builder(&server.base()).build().unwrap();
    client.pets().list().await.unwrap();
    tokio::time::timeout(secs(5), client.pets().list().send())
        .await
        .unwrap_err();
    let seen = client.limits().snapshot();
    assert_eq!(
        (seen.in_flight, seen.unresolved, seen.windows[0].remaining),
        (0, 1, 4)
    );
    client.pets().list().await.unwrap();
    let seen = client.limits().snapshot();
    assert_eq!(
        (seen.wait_reason, seen.unresolved),
        (Some(WaitReason::Blocked), 0)
    );
    assert_eq!(
        seen.blocked.unwrap().reason,
        BlockReason::Quota(Quota::Minute)
    );
}

#[tokio::test(start_paused = true)]
async fn events_contain_each_attempt_completely_except_for_the_key() {
    let server = Wire::of(vec![
        answer(
            429,
            &[("Retry-After", "30"), ("X-Seen", "s3cret-key")],
            "no",
        ),
        Act::Reset(Vec::new()),
        answer(200, &[], r#"[{"id":1,"name":"s3cret-key","categoryId":7}]"#),
    ]);
    let client = builder(&server.base()).api_key("s3cret-key");
    let (client, recorded) = recorded(client, |event| {
        let operation = event.operation.unwrap();
        match event.kind {
            EventKind::Sending {
                attempt,
                method,
                url,
                headers,
                body,
                ..
            } => Some(format!(
                "{operation} {attempt} {method} {url} {headers:?} {body:?}"
            )),
            EventKind::Answered {
                attempt,
                method,
                url,
                status,
                headers,
                body,
                ..
            } => Some(format!(
                "{operation} {attempt} {method} {url} -> {status} {headers:?} {body:?}"
            )),
            EventKind::Failed {
                attempt,
                method,
                url,
                error,
                ..
            } => Some(format!("{operation} {attempt} {method} {url} -> {error:?}")),
            _ => None,
        }
    });
    let client = client.build().unwrap();
    let _ = client.pets().create(&NewPet::new("Rex", 7)).await;
    client.pets().list().limit(5).send().await.unwrap();
    let recorded = recorded.lock().unwrap().clone();
    let expected = [
        ("createPet 1 POST", "Rex"),
        ("createPet 1 POST", "-> 429 Too Many Requests"),
        ("createPet 2 POST", "Rex"),
        ("createPet 2 POST", "Interrupted"),
        ("listPets 1 GET", "/v1/pets?limit=5 "),
        ("listPets 1 GET", "[hidden]"),
    ];
    assert_eq!(recorded.len(), expected.len(), "{recorded:#?}");
    for (recorded, (sent, came)) in recorded.iter().zip(expected) {
        assert!(
            recorded.starts_with(sent) && recorded.contains(came),
            "{recorded}"
        );
        assert!(!recorded.contains("s3cret-key"), "{recorded}");
    }
    assert!(
        recorded[0].contains(r#"application/json"#) && recorded[0].contains("Rex"),
        "{}",
        recorded[0]
    );
    assert!(recorded[4].contains("/v1/pets?limit=5"), "{}", recorded[4]);
}

#[tokio::test(start_paused = true)]
async fn an_unusable_store_is_reported_when_that_begins_and_ends() {
    let server = Wire::start(|_| no_pets());
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("limits");
    let client = builder(&server.base()).limits(Limits::new().store(FileStore::new(&folder)));
    let (client, recorded) = recorded(client, |event| match event.kind {
        EventKind::SharedStore(status) => Some((status.location.clone(), status.problem.is_some())),
        _ => None,
    });
    let client = client.build().unwrap();
    let location = folder.display().to_string();
    for (is_usable, expected) in [
        (true, vec![]),
        (false, vec![(location.clone(), true)]),
        (true, vec![(location.clone(), false)]),
        (false, vec![(location.clone(), true)]),
        (false, vec![]),
        (true, vec![(location.clone(), false)]),
    ] {
        let _ = std::fs::remove_dir_all(&folder);
        let _ = std::fs::remove_file(&folder);
        if !is_usable {
            std::fs::write(&folder, "a file in the place of the folder").unwrap();
        }
        for _ in 0..2 {
            client.limits().exchange().await;
            client.pets().list().await.unwrap();
        }
        assert_eq!(
            std::mem::take(&mut *recorded.lock().unwrap()),
            expected,
            "{is_usable}"
        );
    }
}
