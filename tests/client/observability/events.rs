//! Tests of events of waits and 429s, and of the snapshot of the limits.

use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};

use petstore_client::auth::provider_fn;
use petstore_client::events::EventKind;
use petstore_client::limits::{BlockReason, FileStore, Limits, WaitReason};
use petstore_client::{ApiKey, RequestOptions};
use tokio::time::sleep;

use crate::client::kit::{
    KEY, answer, builder, create, http, key, list_meta, list_with, millis, no_pets, recorded, secs,
};
use crate::client::logs::Logs;
use crate::client::wire::{Act, Wire};

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
    let (client, refusals) = recorded(builder(&server.base()), |event| match event.kind {
        EventKind::Throttled {
            attempt, blocked, ..
        } => Some((attempt, blocked.reason, blocked.remaining.as_secs())),
        _ => None,
    });
    let client = client.max_wait(secs(250)).build().unwrap();
    let many = RequestOptions::new().max_attempts(9);
    list_with(&client, &many).await.unwrap();
    let refusals = refusals.lock().unwrap().clone();
    let expected = [
        (1, BlockReason::Unknown, 30),
        (2, BlockReason::Unknown, 40),
        (4, BlockReason::Ban, 50),
    ];
    assert_eq!(refusals.len(), 3, "{refusals:?}");
    for ((attempt, reason, waits), expected) in refusals.into_iter().zip(expected) {
        assert_eq!((attempt, reason), (expected.0, expected.1));
        assert!(waits + 1 >= expected.2, "{waits} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_begins_in_line_sends_an_event() {
    let server = Wire::of(vec![slowly("0", "10"), no_pets()]);
    let (client, waits) = recorded(builder(&server.base()), |event| match event.kind {
        EventKind::Waiting {
            reason: WaitReason::Blocked,
            blocked: Some(blocked),
            ..
        } => Some(blocked.remaining.as_secs()),
        _ => None,
    });
    let client = client.build().unwrap();
    let calls = (0..5).map(|_| client.pets().list().send());
    for page in futures_util::future::join_all(calls).await {
        page.unwrap();
    }
    // All calls came before the response that says that nothing is left.
    let told = waits.lock().unwrap().clone();
    assert!(matches!(told[..], [60..=62]), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_call_waits_for_is_shown() {
    for (left, limit, most_in_flight, reason) in [
        // A request in flight may use up the rest.
        ("1", "2", 512, WaitReason::Reserved),
        ("9", "10", 1, WaitReason::Concurrency),
    ] {
        let server = Wire::of(vec![slowly(left, limit)]);
        let limits = Limits::new().max_in_flight(most_in_flight);
        let client = builder(&server.base()).limits(limits).build().unwrap();
        client.pets().list().await.unwrap();
        assert_eq!(client.limits().snapshot().wait_reason, None);
        let second = async {
            tokio::time::sleep(millis(100)).await;
            list_meta(&client).await.waited()
        };
        let shown = async {
            tokio::time::sleep(millis(500)).await;
            client.limits().snapshot()
        };
        let (first, waited, shown) = tokio::join!(list_meta(&client), second, shown);
        assert!(first.waited().is_zero());
        assert_eq!(waited.as_millis() / 100, 9, "{waited:?}");
        assert_eq!((shown.wait_reason, shown.blocked), (Some(reason), None));
        assert_eq!((shown.in_flight, shown.waiting), (1, 1));
    }
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
    let (client, recorded) = recorded(client, |event| match event.kind {
        EventKind::Sending { .. } | EventKind::Answered { .. } | EventKind::Failed { .. } => {
            Some(format!("{} {:?}", event.operation.unwrap(), event.kind))
        }
        _ => None,
    });
    let client = client.build().unwrap();
    create(&client).await.unwrap_err();
    client.pets().list().limit(5).send().await.unwrap();
    let recorded = recorded.lock().unwrap().clone();
    let expected: [&[&str]; 6] = [
        &[
            "createPet Sending",
            "POST",
            "attempt: 1",
            "application/json",
            "Rex",
        ],
        &["createPet Answered", "attempt: 1", "429", "[hidden]", "no"],
        &["createPet Sending", "attempt: 2", "Rex"],
        &["createPet Failed", "attempt: 2", "Interrupted"],
        &["listPets Sending", "GET", "attempt: 1", "limit=5"],
        &["listPets Answered", "attempt: 1", "200", "[hidden]"],
    ];
    assert_eq!(recorded.len(), expected.len(), "{recorded:#?}");
    for (recorded, parts) in recorded.iter().zip(expected) {
        for part in parts {
            assert!(recorded.contains(part), "{part} is missing in {recorded}");
        }
        assert!(!recorded.contains("s3cret-key"), "{recorded}");
    }
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
        (false, vec![]),
        (true, vec![(location, false)]),
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
        let reported = std::mem::take(&mut *recorded.lock().unwrap());
        assert_eq!(reported, expected, "{is_usable}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_change_of_a_store_is_reported_once_also_if_keys_take_turns() {
    let server = Wire::start(|_| no_pets());
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("limits");
    let (asked, names) = (AtomicUsize::new(0), [key() + "-one", key() + "-two"]);
    let keys = provider_fn(move |_| {
        // The second key finds the store back. Later, both take turns.
        let number = asked.fetch_add(1, Ordering::Relaxed);
        let second = usize::from((5..10).contains(&number) || number >= 10 && number % 2 == 1);
        ready(Ok(ApiKey::new(names[second].as_str())))
    });
    let client = builder(&server.base())
        .api_key_provider(keys)
        .limits(Limits::new().store(FileStore::new(&folder)));
    let (client, recorded) = recorded(client, |event| match event.kind {
        EventKind::SharedStore(status) => Some(status.problem.is_some()),
        _ => None,
    });
    let client = client.build().unwrap();
    let logs = Logs::capture();
    std::fs::write(&folder, "a file in the place of the folder").unwrap();
    for _ in 0..5 {
        client.pets().list().await.unwrap();
    }
    std::fs::remove_file(&folder).unwrap();
    for _ in 0..2 {
        for _ in 0..5 {
            client.pets().list().await.unwrap();
            sleep(secs(1)).await;
        }
        assert_eq!(*recorded.lock().unwrap(), [true, false]);
    }
    let text = logs.text();
    let logged = |level| {
        let about_store = text.lines().filter(|line| line.contains("shared limits"));
        about_store.filter(|line| line.contains(level)).count()
    };
    assert_eq!((logged(" WARN "), logged(" INFO ")), (1, 1), "{text}");
    assert!(!text.contains(KEY), "{text}");
}
