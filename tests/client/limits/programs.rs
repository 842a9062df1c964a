//! Tests that calls which are polled late, once or never again do not affect other calls.

use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use petstore_client::Client;
use petstore_mock::MockServer;
use tokio::time::{sleep, timeout};

use crate::client::kit::{millis, secs};
use crate::client::service::{self, MINUTE, get, patient, poll_once, refused, within, work};

const TASKS: [usize; 2] = [1, 256];

/// Slack beyond the windows that the quota requires.
const SLACK: Duration = secs(10);

async fn start(per_minute: u32) -> (MockServer, Client) {
    let server = service::start(per_minute).await;
    let client = patient(server.url()).build().unwrap();
    (server, client)
}

/// Makes one call per task, and waits for them for a limited time.
async fn others(client: &Client, tasks: usize) {
    let calls = join_all((0..tasks).map(|_| get(client)));
    for call in within(client, SLACK, calls).await {
        call.unwrap();
    }
}

/// The first calls use up the window, so the kept call is first in the queue for the next one.
#[tokio::test(start_paused = true)]
async fn a_call_left_behind_at_a_windows_end_does_not_delay_others() {
    for tasks in TASKS {
        let (server, client) = start(300).await;
        work(&client, 16, 300, SLACK).await;
        let mut kept = get(&client);
        assert!(!poll_once(&mut kept).await);
        sleep(MINUTE).await;
        others(&client, tasks).await;
        timeout(SLACK, kept).await.unwrap().unwrap();
        assert_eq!(refused(&server), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_buffered_stream_may_await_calls_in_its_loop() {
    let (server, client) = start(60).await;
    let program = async {
        let calls = (0..60).map(|_| get(&client));
        let mut calls = stream::iter(calls).buffer_unordered(8);
        while let Some(done) = calls.next().await {
            done.unwrap();
            get(&client).await.unwrap();
        }
    };
    // There are two windows of 60, and the calls in the loop go one after another.
    within(&client, MINUTE + SLACK + secs(6), program).await;
    assert_eq!(refused(&server), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_polled_once_and_kept_does_not_delay_others() {
    for tasks in TASKS {
        let (server, client) = start(1_000).await;
        let mut kept = get(&client);
        assert!(!poll_once(&mut kept).await);
        for _ in 0..3 {
            others(&client, tasks).await;
            sleep(secs(20)).await;
        }
        let limits = client.limits().snapshot();
        let counts = (limits.in_flight, limits.waiting, limits.wait_reason);
        assert_eq!(counts, (0, 0, None), "{limits:?}");
        timeout(SLACK, kept).await.unwrap().unwrap();
        assert_eq!(server.requests(..).len(), 3 * tasks + 1);
    }
}

/// Returns pseudo-random numbers, the same in each run (xorshift).
fn numbers(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    }
}

#[tokio::test(start_paused = true)]
async fn calls_cancelled_at_random_points_take_nothing_from_others() {
    for seed in 1..=3 {
        let mut number = numbers(seed);
        let (server, client) = start(60).await;
        let calls = (0..300).map(|call| {
            // This is within the second in which a window opens, while requests are in flight.
            let after = millis(60_000 * number(5) + number(1_000));
            let cancelled = call % 10 == seed % 10;
            let call = get(&client);
            tokio::spawn(async move {
                if cancelled {
                    timeout(after, call).await.map_or(Ok(()), |done| done)
                } else {
                    call.await
                }
            })
        });
        // There are five windows of 60, and one more.
        let done = join_all(calls.collect::<Vec<_>>());
        let done = within(&client, 5 * MINUTE + SLACK, done).await;
        done.into_iter().for_each(|call| call.unwrap().unwrap());
        assert_eq!(refused(&server), 0, "seed {seed}");
        let limits = client.limits().snapshot();
        assert_eq!((limits.in_flight, limits.waiting), (0, 0), "{limits:?}");
    }
}
