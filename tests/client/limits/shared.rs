//! Tests of limits that processes share through files. Clients that use different names of the
//! folder simulate processes, because clients of one process share a limiter anyway.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::limits::{FileStore, Limits, RateLimits, RedisStore};
use petstore_client::{Client, ClientBuilder, RequestOptions};
use petstore_mock::{MockServer, Plan};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, sleep_until};

use crate::client::kit::{KEY, answer, list_with, millis, mock, no_pets, once, secs};
use crate::client::wire::Wire;

pub(super) async fn free() -> MockServer {
    // More than any test has in flight.
    let builder = mock(KEY, Plan::Free).senders(60);
    builder.start().await.unwrap()
}

/// Returns another name of a folder for each number.
pub(super) fn another_name(folder: &Path, number: usize) -> PathBuf {
    let back = Path::new("..").join(folder.file_name().unwrap());
    (0..number).fold(folder.to_owned(), |path, _| path.join(&back))
}

pub(super) fn hasty() -> RequestOptions {
    RequestOptions::new().max_wait(Duration::ZERO)
}

/// A client that simulates another process.
pub(super) fn process(base: &str, folder: &TempDir, number: usize) -> ClientBuilder {
    let patient = RequestOptions::new().max_wait(secs(600)).timeout(secs(900));
    Client::builder(base)
        .api_key(KEY)
        .options(&patient)
        .limits(limits(folder, number))
}

/// The limits of a client that simulates another process.
fn limits(folder: &TempDir, number: usize) -> Limits {
    Limits::new().store(FileStore::new(another_name(folder.path(), number)))
}

/// Why the store cannot be used.
pub(super) fn problem(client: &Client) -> Option<String> {
    client.limits().snapshot().shared.unwrap().problem
}

fn remaining(limits: &RateLimits) -> Option<u64> {
    limits.windows.iter().map(|window| window.remaining).min()
}

#[tokio::test(start_paused = true)]
async fn two_keys_in_one_folder_and_one_key_in_two_folders_never_meet() {
    let small = Plan::enterprise(1, 1_000);
    let server = mock("one", small).key("two", small).start().await.unwrap();
    let (ours, theirs) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let attempts = async |key: &str, folder: &TempDir, number| {
        let client = process(server.url(), folder, number).api_key(key);
        let client = client.build().unwrap();
        let sent = client.pets().list().options(&hasty()).with_meta().await;
        let attempts = sent.map_or_else(|error| error.attempts(), |page| page.meta.attempts());
        client.limits().exchange().await;
        attempts
    };
    assert_eq!(attempts("one", &ours, 0).await, 1);
    assert_eq!(
        attempts("one", &ours, 1).await,
        0,
        "the quota is known to be used up"
    );
    assert_eq!(attempts("two", &ours, 1).await, 1);
    // The other user's process learns from a refusal. It does not share that with our processes.
    assert_eq!(attempts("one", &theirs, 0).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_one_process_received_holds_back_the_others() {
    let server = Wire::of(vec![answer(429, &[("Retry-After", "30")], ""), no_pets()]);
    let folder = TempDir::new().unwrap();
    let start = Instant::now();
    let first = process(&server.base(), &folder, 0).build().unwrap();
    list_with(&first, &once()).await.unwrap_err();
    let limits = first.limits().snapshot();
    assert!(
        limits.blocked.is_some() && limits.throttled == 1,
        "{limits:?}"
    );
    sleep(secs(1)).await;
    let second = process(&server.base(), &folder, 1).build().unwrap();
    assert!(
        second.limits().snapshot().blocked.is_some(),
        "the client reads the file before its first call"
    );
    second.pets().list().await.unwrap();
    assert!(start.elapsed() >= millis(29_990), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_starts_later_waits_for_the_same_reset() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let start = Instant::now();
    let first = process(server.url(), &folder, 0).build().unwrap();
    let calls = (0..60).map(|_| first.pets().list().send());
    assert!(join_all(calls).await.iter().all(Result::is_ok));
    sleep_until(start + secs(30)).await;
    let second = process(server.url(), &folder, 1).build().unwrap();
    second.pets().list().await.unwrap();
    let at = start.elapsed().as_secs_f64();
    assert!((60.0..62.5).contains(&at), "{at}");
    server.report().assert_compliant();
}

#[tokio::test(start_paused = true)]
async fn short_commands_in_a_row_never_wait_for_each_other() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    for number in 0..50 {
        let command = process(server.url(), &folder, number).build().unwrap();
        list_with(&command, &hasty()).await.unwrap();
        command.limits().exchange().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_is_shown_at_once_and_to_others_after_an_exchange() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let clients = [0, 1].map(|n| process(server.url(), &folder, n).build().unwrap());
    let start = Instant::now();
    for left in [59, 58] {
        clients[0].pets().list().await.unwrap();
        let limits = clients[0].limits().snapshot();
        assert_eq!((remaining(&limits), limits.in_flight), (Some(left), 0));
        clients[0].limits().exchange().await;
        let limits = clients[1].limits().exchange().await;
        assert_eq!(remaining(&limits), Some(left));
    }
    assert!(start.elapsed() < millis(5), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_store_learns_how_the_requests_of_a_closed_client_ended() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    server.faults().on_all().delay(millis(500)).detach();
    let [ends, other] = [0, 1].map(|n| process(server.url(), &folder, n).build().unwrap());
    let call = tokio::spawn(ends.pets().list().send());
    while ends.limits().snapshot().in_flight == 0 {
        sleep(millis(1)).await;
    }
    ends.close().await;
    call.await.unwrap().unwrap();
    let limits = other.limits().exchange().await;
    assert_eq!(remaining(&limits), Some(59), "{limits:?}");
    assert_eq!((limits.in_flight, limits.unresolved), (0, 0), "{limits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_clients_share_holds_beside_one_with_the_whole_quota() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let small = process(server.url(), &folder, 0).limits(limits(&folder, 0).share(0.1));
    let small = small.build().unwrap();
    let whole = process(server.url(), &folder, 0).build().unwrap();
    let start = Instant::now();
    let calls = join_all((0..20).map(|_| small.pets().list().send()));
    let beside = async {
        for _ in 0..10 {
            whole.pets().list().await.unwrap();
            sleep(millis(10)).await;
        }
    };
    let (results, ()) = tokio::join!(calls, beside);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    // In each minute, it may send 6 of 60 requests.
    assert!(start.elapsed() > secs(120), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_costs_one_wait_and_is_reported() {
    let server = free().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let store = RedisStore::new(&format!("redis://{}", silent.local_addr().unwrap())).unwrap();
    let client = Client::builder(server.url())
        .api_key(KEY)
        .limits(Limits::new().store(store))
        .build()
        .unwrap();
    for (call, most) in [(1, 3_100), (2, 10), (3, 10)] {
        let start = Instant::now();
        // The time until the store has answered or failed does not count as a wait.
        list_with(&client, &hasty()).await.unwrap();
        let took = start.elapsed();
        assert!(took <= millis(most), "{call}: {took:?}");
    }
    assert!(problem(&client).is_some());
}
