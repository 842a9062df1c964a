//! Tests of key providers: called before each request, and once more after a 401.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::kit::{
    REX, START, answer, at, builder, create, http, key, list_meta, list_with, millis, no_pets,
    recorded, secs,
};
use super::service::{impatient, patient, work};
use super::wire::{Act, Seen, Wire};
use futures_util::future::join_all;
use petstore_client::auth::{ApiKeyProvider, CachingProvider, provider_fn};
use petstore_client::events::EventKind;
use petstore_client::{ApiKey, BoxError, Client, ErrorKind, RequestOptions};
use petstore_mock::{Clock, MockServer};

/// Returns these keys in turn, and then always the last one. Records its arguments.
#[derive(Clone, Default)]
struct Keys {
    hand_out: &'static [&'static str],
    asked: Arc<Mutex<Vec<Option<ApiKey>>>>,
}

impl ApiKeyProvider for Keys {
    async fn api_key(&self, rejected: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
        let key = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(rejected.cloned());
            self.hand_out.get(asked.len() - 1).or(self.hand_out.last())
        };
        match key {
            Some(&"hang") => std::future::pending().await,
            Some(&key) => Ok(ApiKey::new(key)),
            None => Err("the vault is sealed".into()),
        }
    }
}

fn unauthorized() -> Act {
    answer(401, &[], r#"{"code":"unauthorized"}"#)
}

/// Starts a server with these responses, and a client with these keys.
fn set_up(hand_out: &'static [&'static str], acts: Vec<Act>) -> (Wire, Client, Keys) {
    let server = Wire::of(acts);
    let keys = Keys {
        hand_out,
        ..Keys::default()
    };
    let client = with_keys(&server, keys.clone());
    (server, client, keys)
}

/// Starts a client whose keys come from a provider.
fn with_keys(server: &Wire, keys: impl ApiKeyProvider + 'static) -> Client {
    let client = builder(&server.base()).api_key_provider(keys);
    client.build().unwrap()
}

fn sent(server: &Wire) -> Vec<String> {
    let key = |seen: &Seen| seen.header("authorization").unwrap()["Bearer ".len()..].to_owned();
    server.seen().iter().map(key).collect()
}

#[tokio::test]
async fn asks_once_more_after_a_401_and_never_sends_a_refused_key_again() {
    let cases: [(&[&str], usize, &[&str]); 3] = [
        (&["old", "new"], 1, &["old", "new"]),
        (&["same"], 9, &["same"]),
        (&["a", "b", "c"], 9, &["a", "b"]),
    ];
    for (hand_out, refusals, expected) in cases {
        let mut acts = vec![unauthorized(); refusals];
        acts.push(answer(201, &[], REX));
        let (server, client, keys) = set_up(hand_out, acts);
        // A 401 did nothing, so a POST is sent again too.
        let created = create(&client).await;
        assert_eq!(created.is_ok(), refusals == 1, "{hand_out:?}");
        assert_eq!(sent(&server), expected);
        let asked = [None, Some(ApiKey::new(hand_out[0]))];
        assert_eq!(*keys.asked.lock().unwrap(), asked, "{hand_out:?}");
    }
}

#[tokio::test]
async fn clients_of_several_keys_share_a_connection_and_hooks_but_no_limits() {
    // All requests are in one minute, however long they take.
    let frozen = Clock::frozen(at(START));
    let server = MockServer::builder().clock(frozen).start().await.unwrap();
    let (free, ended) = recorded(builder(server.url()).api_key("free-key"), |event| {
        matches!(event.kind, EventKind::Ended { .. }).then_some(())
    });
    let free = free.build().unwrap();
    let pro = free.with_api_key("pro-key").unwrap();
    for client in [&free, &pro, &pro] {
        client.pets().list().await.unwrap();
    }
    let requests = server.requests(..);
    assert!(requests.iter().all(|one| one.connection == 1));
    let keys = requests
        .iter()
        .map(|one| one.key.as_ref().unwrap().number());
    assert_eq!(keys.collect::<Vec<_>>(), [1, 2, 2]);
    assert_eq!(ended.lock().unwrap().len(), 3);
    for _ in 0..59 {
        free.pets().list().await.unwrap();
    }
    let hasty = RequestOptions::new().max_wait(Duration::ZERO);
    let error = list_with(&free, &hasty).await.unwrap_err();
    assert!(error.is_rate_limited(), "{error}");
    list_with(&pro, &hasty).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_fails_or_hangs_ends_the_call() {
    let cases: [(&[&str], ErrorKind, u32); 3] = [
        (&[], ErrorKind::Credentials, 0),
        (&["hang"], ErrorKind::Timeout, 0),
        (&["old", "hang"], ErrorKind::Timeout, 1),
    ];
    for (keys, kind, attempts) in cases {
        let (server, client, _keys) = set_up(keys, vec![unauthorized(), no_pets()]);
        let short = RequestOptions::new().timeout(secs(7));
        let error = list_with(&client, &short).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.attempts()),
            (kind, attempts),
            "{error}"
        );
        assert!(!error.may_have_been_processed(), "{error}");
        assert_eq!(server.count(), attempts as usize);
    }
}

#[tokio::test]
async fn a_key_that_no_header_can_have_is_a_failure_of_its_provider() {
    // As the first key, and in place of a rejected one.
    let cases: [(&[&str], u32); 2] = [(&["two words"], 0), (&["old", "two words"], 1)];
    for (keys, attempts) in cases {
        let (_server, client, _keys) = set_up(keys, vec![unauthorized()]);
        let error = client.pets().list().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Credentials, "{error}");
        assert!(error.is_unauthorized() && error.attempts() == attempts);
        let problem =
            "the provider's API key cannot be used: it has a space at character 4; remove it";
        assert_eq!(error.problem(), problem);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_is_asked_again_once_despite_another_refusal() {
    let wait = || answer(429, &[("Retry-After", "6")], "");
    let server = Wire::of(vec![wait(), wait(), no_pets()]);
    let other = impatient(&server.base()).api_key("waits").build().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let keys = provider_fn(move |_| {
        let (number, other) = (count.fetch_add(1, Ordering::Relaxed), other.clone());
        async move {
            // The provider is asked before each attempt, and once more after the wait.
            if number > 0 {
                assert!(other.pets().list().await.unwrap_err().is_rate_limited());
            }
            Ok(ApiKey::new("waits"))
        }
    });
    let client = with_keys(&server, keys);
    assert_eq!(list_meta(&client).await.attempts(), 2);
    assert_eq!((asked.load(Ordering::Relaxed), server.count()), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn only_calls_whose_key_is_being_replaced_wait_for_that() {
    let server = Wire::reading(|seen| match seen.header("authorization").unwrap() {
        "Bearer old" => unauthorized(),
        _ => no_pets(),
    });
    let hand_out = Keys {
        hand_out: &["old", "new", "other", "old", "new"],
        ..Keys::default()
    };
    let keys = provider_fn(move |rejected: Option<ApiKey>| {
        let hand_out = hand_out.clone();
        async move {
            let key = hand_out.api_key(rejected.as_ref()).await;
            if rejected.is_some() {
                tokio::time::sleep(secs(5)).await;
            }
            key
        }
    });
    let client = with_keys(&server, keys);
    let began = tokio::time::Instant::now();
    let list_at = async |start| {
        tokio::time::sleep_until(began + start).await;
        client.pets().list().await.unwrap();
        began.elapsed().as_secs()
    };
    let ended = tokio::join!(list_at(secs(0)), list_at(secs(1)), list_at(secs(2)));
    assert_eq!(ended, (5, 1, 5));
    assert_eq!(sent(&server), ["old", "other", "new", "new"]);
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_for_a_failing_vault_share_its_error() {
    let server = Wire::start(|_| no_pets());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let vault = provider_fn(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async {
            tokio::time::sleep(millis(300)).await;
            Err(std::io::Error::other("the vault is sealed").into())
        }
    });
    // A cache of a cache, as in a program that gets one from a library.
    let keys = CachingProvider::new(CachingProvider::new(vault, secs(60)), secs(60));
    let client = with_keys(&server, keys);
    for error in join_all((0..64).map(|_| client.pets().list().send())).await {
        let error = error.unwrap_err();
        let problem = "listPets failed: the provider returned no API key";
        assert_eq!(error.to_string(), problem);
        let source = std::error::Error::source(&error).unwrap();
        assert!(source.is::<std::io::Error>(), "{source:?}");
    }
    assert_eq!((asked.load(Ordering::Relaxed), server.count()), (1, 0));
}

const TASKS: usize = 50;

#[tokio::test(start_paused = true)]
async fn a_key_refused_to_50_tasks_is_refreshed_once() {
    let mut requests_with_old = 0;
    let is_old = |seen: &Seen| seen.header("authorization").unwrap().contains("old");
    let server = Wire::reading(move |seen| {
        requests_with_old += usize::from(is_old(seen));
        let is_refused = is_old(seen) && requests_with_old > 100;
        let status = if is_refused { 401 } else { 200 };
        Act::Later(millis(100), http(status, &[], "[]"))
    });
    let issued = Arc::new(Mutex::new(vec![format!("old-{}", key())]));
    let keys = Arc::clone(&issued);
    let vault = provider_fn(move |rejected: Option<ApiKey>| {
        let keys = Arc::clone(&keys);
        async move {
            if rejected.is_some() {
                tokio::time::sleep(secs(1)).await;
                // A vault may return another key at each call.
                let number = keys.lock().unwrap().len();
                keys.lock().unwrap().push(format!("new-{number}"));
            }
            Ok(ApiKey::new(keys.lock().unwrap().last().unwrap().as_str()))
        }
    });
    let client = patient(&server.base()).api_key_provider(vault);
    let client = client.build().unwrap();
    work(&client, TASKS, 10 * TASKS, secs(60)).await;
    let old = server.seen().iter().filter(|seen| is_old(seen)).count();
    assert_eq!(issued.lock().unwrap().len(), 2, "{old} with the old key");
    // Only requests in flight may have the old key. No task uses it after it has got the new one.
    assert!(old <= 100 + TASKS, "{old} requests with the old key");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_key_is_tried_again_while_its_vault_fails() {
    let rejects = Arc::new(AtomicUsize::new(usize::MAX));
    let refused = Arc::clone(&rejects);
    let server = Wire::reading(move |_| match refused.load(Ordering::Relaxed) {
        0 => no_pets(),
        _ => unauthorized(),
    });
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let vault = provider_fn(move |_| {
        let is_first = count.fetch_add(1, Ordering::Relaxed) == 0;
        std::future::ready(match is_first {
            true => Ok(ApiKey::new("only")),
            false => Err("the vault is down".into()),
        })
    });
    let client = with_keys(&server, CachingProvider::new(vault, secs(300)));
    for call in 1..=3 {
        let error = client.pets().list().await.unwrap_err();
        tokio::time::sleep(secs(1)).await;
        assert_eq!(error.kind(), ErrorKind::Credentials);
        assert_eq!(error.attempts(), 1, "a call sends the key once");
        assert_eq!(asked.load(Ordering::Relaxed), 1 + call);
    }
    // The service accepts the key again, before the vault is back.
    rejects.store(0, Ordering::Relaxed);
    client.pets().list().await.unwrap();
    assert_eq!(sent(&server), ["only"; 4]);
}
