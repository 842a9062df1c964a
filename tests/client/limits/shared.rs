//! Tests of limits that processes share through files. Clients that use different names of the
//! folder simulate processes, because clients of one process share a limiter anyway.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::limits::{FileStore, Limits, RateLimits, RedisStore};
use petstore_client::{Client, ClientBuilder, RequestOptions};
use petstore_mock::{Admission, MockServer, Plan};
use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio::time::{Instant, sleep};

use crate::client::kit::{KEY, answer, list_with, millis, mock, no_pets, once, secs};
use crate::client::service::{self, MINUTE, keep_busy};
use crate::client::wire::Wire;

pub(super) async fn free() -> MockServer {
    // More than any test has in flight.
    let builder = mock(KEY, Plan::Free).senders(60);
    builder.start().await.unwrap()
}

pub(super) fn hasty() -> RequestOptions {
    RequestOptions::new().max_wait(Duration::ZERO)
}

/// Returns limits that are kept in a folder, with another name of the folder for each number.
fn limits(folder: &Path, number: usize) -> Limits {
    let back = Path::new("..").join(folder.file_name().unwrap());
    let name = (0..number).fold(folder.to_owned(), |path, _| path.join(&back));
    Limits::new().store(FileStore::new(name))
}

/// A client that simulates another process for each number.
pub(super) fn process(base: &str, folder: &Path, number: usize) -> ClientBuilder {
    let patient = RequestOptions::new().max_wait(secs(600)).timeout(secs(900));
    Client::builder(base)
        .api_key(KEY)
        .options(&patient)
        .limits(limits(folder, number))
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
    let is_sent = async |key: &str, folder: &TempDir, number| {
        let client = process(server.url(), folder.path(), number).api_key(key);
        let client = client.build().unwrap();
        let before = server.requests(..).len();
        let _refused = list_with(&client, &hasty()).await;
        client.limits().exchange().await;
        server.requests(..).len() > before
    };
    assert!(is_sent("one", &ours, 0).await);
    assert!(
        !is_sent("one", &ours, 1).await,
        "nothing is left, as is known"
    );
    assert!(is_sent("two", &ours, 1).await);
    // The other user's process learns from a refusal. It does not share that with our processes.
    assert!(is_sent("one", &theirs, 0).await);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_one_process_received_holds_back_the_others() {
    let server = Wire::of(vec![answer(429, &[("Retry-After", "30")], ""), no_pets()]);
    let folder = TempDir::new().unwrap();
    let start = Instant::now();
    let first = process(&server.base(), folder.path(), 0).build().unwrap();
    list_with(&first, &once()).await.unwrap_err();
    sleep(secs(1)).await;
    let second = process(&server.base(), folder.path(), 1).build().unwrap();
    let blocked = second.limits().snapshot().blocked;
    assert!(blocked.is_some(), "it reads the file before its first call");
    second.pets().list().await.unwrap();
    assert!(start.elapsed() >= millis(29_990), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_response_is_shown_at_once_and_to_others_after_an_exchange() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let clients = [0, 1].map(|n| process(server.url(), folder.path(), n).build().unwrap());
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
    server.faults().on(..).delay(millis(500)).detach();
    let [ends, other] = [0, 1].map(|n| process(server.url(), folder.path(), n).build().unwrap());
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
    let a_tenth = limits(folder.path(), 0).share(0.1);
    let small = process(server.url(), folder.path(), 0).limits(a_tenth);
    let small = small.build().unwrap();
    let whole = process(server.url(), folder.path(), 0).build().unwrap();
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
    let client = Client::builder(server.url()).api_key(KEY);
    let client = client.limits(Limits::new().store(store)).build().unwrap();
    for (call, most) in [(1, 3_100), (2, 10), (3, 10)] {
        let start = Instant::now();
        // The time until the store has answered or failed does not count as a wait.
        list_with(&client, &hasty()).await.unwrap();
        let took = start.elapsed();
        assert!(took <= millis(most), "{call}: {took:?}");
    }
    assert!(problem(&client).is_some());
    // Others may use the key, so a quarter of the minute is left to them.
    while list_with(&client, &hasty()).await.is_ok() {}
    let sent = server.requests(..).len();
    assert!((40..=45).contains(&sent), "{sent} of 60");
}

#[tokio::test(start_paused = true)]
async fn processes_that_cannot_reach_their_store_do_not_ban_the_key() {
    // The address refuses connections as long as the socket is open.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let server = service::start_with(KEY.to_owned(), 300, millis(90)).await;
    let client = |number| {
        let url = format!("redis://{address}/0?process={number}");
        let limits = Limits::new().store(RedisStore::new(&url).unwrap());
        let client = service::patient(server.url()).api_key(KEY).limits(limits);
        client.build().unwrap()
    };
    let clients: Vec<_> = (0..8).map(client).collect();
    let length = 2 * MINUTE - secs(1);
    join_all(clients.iter().map(|client| keep_busy(client, 8, length))).await;
    let requests = server.requests(..);
    let count = |kind| requests.iter().filter(|one| one.admission == kind).count();
    assert_eq!(count(Admission::Banned), 0);
    let admitted = count(Admission::Admitted);
    assert!(admitted >= 2 * 300 * 9 / 10, "{admitted} of 600");
    assert!(clients.iter().all(|client| problem(client).is_some()));
}
