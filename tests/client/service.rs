//! A mock that follows tokio's time and whose responses take a while, and clients and calls for the
//! tests that use it.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::{Client, ClientBuilder, Error, RequestOptions};
use petstore_mock::{Admission, MockServer, Plan, Seed};
use tokio::time::{Instant, sleep, timeout_at};

use super::kit::{builder, key, millis, mock, secs};

/// The length of the short window.
pub(super) const MINUTE: Duration = secs(60);

/// Starts a mock whose responses take 100 ms. A minute begins with it.
pub(super) async fn start(per_minute: u32) -> MockServer {
    start_with(key(), per_minute, millis(100)).await
}

/// The same, with another key and another delay between a request and its response. The mock
/// decides about a request when it arrives.
pub(super) async fn start_with(key: String, per_minute: u32, latency: Duration) -> MockServer {
    let builder = mock(key, Plan::enterprise(per_minute, 1_000_000_000));
    let server = builder
        .journal(20_000)
        .seed(Seed::none())
        // More than any test has in flight.
        .senders(256)
        .start()
        .await
        .unwrap();
    server.faults().on(..).delay(latency).detach();
    server
}

/// Returns how many requests exceeded the quota or came during a ban.
pub(super) fn refused(server: &MockServer) -> usize {
    let is_refused = |admission| matches!(admission, Admission::Refused | Admission::Banned);
    server
        .requests(..)
        .iter()
        .filter(|one| is_refused(one.admission))
        .count()
}

/// A call that can be stored, moved and dropped anywhere.
pub(super) type OwnedCall = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// Prepares a GET; nothing is sent before the first poll.
pub(super) fn get(client: &Client) -> OwnedCall {
    let client = client.clone();
    Box::pin(async move { client.pets().list().await.map(drop) })
}

/// Polls a call once; returns whether it is complete.
pub(super) async fn poll_once(call: &mut (impl Future + Unpin)) -> bool {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(Pin::new(&mut *call).poll(context).is_ready())
    })
    .await
}

/// Starts a client whose calls wait as long as the limits require.
pub(super) fn patient(base: &str) -> ClientBuilder {
    let days = secs(30 * 24 * 3600);
    builder(base).options(&RequestOptions::new().max_wait(days).timeout(days))
}

/// Starts a client whose calls fail instead of waiting for a limit.
pub(super) fn impatient(base: &str) -> ClientBuilder {
    builder(base).options(&RequestOptions::new().max_wait(Duration::ZERO))
}

/// Waits for a program; one that takes longer fails the test with what the limits then show.
pub(super) async fn within<T>(
    client: &Client,
    limit: Duration,
    program: impl Future<Output = T>,
) -> T {
    let mut program = std::pin::pin!(program);
    match tokio::time::timeout(limit, program.as_mut()).await {
        Ok(result) => result,
        Err(_) => panic!("not done after {limit:?}: {:?}", client.limits().snapshot()),
    }
}

/// Makes requests from many tasks, all of which have to succeed within a time.
pub(super) async fn work(client: &Client, tasks: usize, requests: usize, limit: Duration) {
    let left = AtomicUsize::new(requests);
    let take = |left: usize| left.checked_sub(1);
    let task = async || {
        while left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_ok()
        {
            get(client).await.unwrap();
        }
    };
    within(client, limit, join_all((0..tasks).map(|_| task()))).await;
}

/// Makes requests from many tasks until `length` has passed; a call that fails is followed by
/// another after a second.
pub(super) async fn keep_busy(client: &Client, tasks: usize, length: Duration) {
    let end = Instant::now() + length;
    let task = async || {
        while let Ok(result) = timeout_at(end, get(client)).await {
            if result.is_err() {
                sleep(secs(1)).await;
            }
        }
    };
    join_all((0..tasks).map(|_| task())).await;
}
