//! A block outlives the client that learned of it, and no block lasts for ever.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::auth::ApiKeyProvider;
use petstore_client::{ApiKey, BoxError, Client};
use tokio::time::{Instant, sleep, timeout};

use super::kit::{answer, builder, http, key, no_pets};
use super::service::{get, impatient, patient, within};
use super::wire::{Act, Seen, Wire};

const LIMIT: Duration = Duration::from_secs(10);
const HOUR: Duration = Duration::from_secs(3_600);
/// A block that is longer is asked about again after this.
const LONGEST_BLOCK: Duration = Duration::from_secs(25 * 3_600);
const FOR_YEARS: (&str, &str) = ("Retry-After", "99999999");

/// Starts a service that asks for a wait of 30 s until that has passed.
fn blocked() -> Wire {
    let start = Instant::now();
    let refuse = move |_: &Seen| {
        let left = Duration::from_secs(30).saturating_sub(start.elapsed());
        match left.as_millis().div_ceil(1_000) {
            0 => no_pets(),
            seconds => answer(429, &[("Retry-After", &seconds.to_string())], ""),
        }
    };
    Wire::reading(refuse)
}

/// Makes that many calls at once, whatever comes of them.
async fn calls(client: &Client, tasks: usize) {
    timeout(LIMIT, join_all((0..tasks).map(|_| get(client)))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_built_for_each_request_obeys_what_earlier_ones_were_told() {
    for tasks in [1, 16, 64] {
        let server = blocked();
        for _ in 0..29 {
            let client = impatient(&server.base()).build().unwrap();
            calls(&client, tasks).await;
            drop(client);
            sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(server.count(), 1, "{tasks} tasks: each further request may get the key banned");
        sleep(Duration::from_secs(5)).await;
        let client = impatient(&server.base()).build().unwrap();
        timeout(LIMIT, get(&client)).await.unwrap().unwrap();
    }
}

/// Hands out two keys in turn.
#[derive(Default)]
struct Alternating {
    asked: AtomicUsize,
}

impl ApiKeyProvider for Alternating {
    async fn api_key(&self, _: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed) % 2;
        Ok(ApiKey::new(format!("{}-{number}", key())))
    }
}

#[tokio::test(start_paused = true)]
async fn two_keys_in_turn_are_each_sent_once_while_both_are_blocked() {
    for tasks in [1, 16, 64] {
        let server = blocked();
        let client = impatient(&server.base()).api_key_provider(Alternating::default());
        let client = client.build().unwrap();
        for _ in 0..29 {
            calls(&client, tasks).await;
            sleep(Duration::from_secs(1)).await;
        }
        let sent = server.seen();
        let keys: Vec<_> = sent.iter().map(|seen| seen.header("authorization").unwrap()).collect();
        let of = |end: &str| keys.iter().filter(|key| key.ends_with(end)).count();
        // With one task, the calls of each second use one key and the next ones the other.
        assert!(of("-0") <= 1 && of("-1") <= 1, "{tasks} tasks sent {} and {}", of("-0"), of("-1"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_429_that_blocks_for_years_is_asked_about_again_after_25_hours() {
    for tasks in [1, 16, 64] {
        let server = Wire::of(vec![
            answer(429, &[FOR_YEARS], ""),
            Act::Later(Duration::from_secs(2), http(200, &[], "[]")),
            no_pets(),
        ]);
        let client = impatient(&server.base()).build().unwrap();
        let start = Instant::now();
        timeout(LIMIT, get(&client)).await.unwrap().unwrap_err();
        for _ in 0..24 {
            sleep(HOUR).await;
            calls(&client, tasks).await;
        }
        assert_eq!(server.count(), 1, "nothing is sent within a day");
        sleep(LONGEST_BLOCK + Duration::from_secs(60) - start.elapsed()).await;
        // These may wait for one another.
        let client = patient(&server.base()).build().unwrap();
        let calls = join_all((0..tasks).map(|_| get(&client)));
        within(&client, LIMIT, calls).await.into_iter().for_each(|call| call.unwrap());
        let seen = server.seen();
        let response = seen[1].at + Duration::from_secs(2);
        assert!(seen[2..].iter().all(|seen| seen.at >= response), "one request goes first");
    }
}

#[tokio::test(start_paused = true)]
async fn a_429_that_is_repeated_after_25_hours_blocks_for_as_long_again() {
    let server = Wire::start(|_| answer(429, &[FOR_YEARS], ""));
    let client = impatient(&server.base()).build().unwrap();
    timeout(LIMIT, get(&client)).await.unwrap().unwrap_err();
    for requests in 2..=4 {
        // What is added to a block after a 429 that follows another is 15 minutes at most.
        sleep(LONGEST_BLOCK + HOUR / 2).await;
        calls(&client, 16).await;
        assert_eq!(server.count(), requests);
    }
}

#[tokio::test(start_paused = true)]
async fn a_503_with_retry_after_delays_its_own_call_alone() {
    for tasks in [1, 16, 64] {
        for wait in ["30", FOR_YEARS.1] {
            let server = Wire::of(vec![answer(503, &[("Retry-After", wait)], ""), no_pets()]);
            let client = builder(&server.base()).build().unwrap();
            let told = tokio::spawn(get(&client));
            sleep(Duration::from_millis(100)).await;
            let others = join_all((0..tasks).map(|_| get(&client)));
            for call in within(&client, Duration::from_secs(5), others).await {
                let failed = call.err().map(|error| error.to_string());
                assert_eq!(failed, None, "after a 503 with `Retry-After: {wait}`");
            }
            let told = timeout(Duration::from_secs(60), told).await.unwrap().unwrap();
            assert_eq!(told.is_ok(), wait == "30", "{told:?}");
        }
    }
}
