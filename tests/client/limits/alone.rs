//! Tests of members whose store is unreachable, against the mock. Clients with different stores simulate
//! processes, because clients of one process share a limiter anyway.

use std::borrow::Cow;

use futures_util::future::join_all;
use petstore_client::Client;
use petstore_client::rate_limit::{Change, LimitStore, RecordKey, StoreError};
use petstore_mock::MockServer;
use tokio::time::Instant;

use crate::client::kit::{key, millis, secs};
use crate::client::logs::Logs;
use crate::client::service::{self, MINUTE, impatient, keep_busy, patient, refused};

const LIMIT: u32 = 1_000;

/// An unreachable store. Stores with different numbers have different locations.
struct Unreachable(usize);

impl LimitStore for Unreachable {
    async fn update(&self, _: &RecordKey, _: Change<'_>) -> Result<(), StoreError> {
        Err(StoreError::new("connection refused"))
    }

    async fn forget(&self, _: Option<&RecordKey>) -> Result<(), StoreError> {
        Err(StoreError::new("connection refused"))
    }

    fn location(&self) -> Cow<'_, str> {
        format!("unreachable store {}", self.0).into()
    }
}

fn member(server: &MockServer, number: usize) -> Client {
    patient(server.url())
        .shared_limits(Unreachable(number))
        .build()
        .unwrap()
}

fn admitted(server: &MockServer) -> usize {
    server
        .requests(..)
        .iter()
        .filter(|one| one.status == Some(200))
        .count()
}

#[tokio::test(start_paused = true)]
async fn unconnected_members_are_not_refused_and_use_the_quota() {
    let server = service::start_with(key(), LIMIT, millis(90)).await;
    let members: Vec<_> = (0..16).map(|number| member(&server, number)).collect();
    let busy = members
        .iter()
        .enumerate()
        .map(|(number, client)| async move {
            // All start within two seconds, and run until just before the third minute ends.
            let late = millis(125) * u32::try_from(number).unwrap();
            tokio::time::sleep(late).await;
            keep_busy(client, 8, 3 * MINUTE - secs(1) - late).await;
        });
    join_all(busy).await;
    let (refused, used) = (refused(&server), admitted(&server));
    assert_eq!(refused, 0, "{used} admitted");
    assert!(used >= 3 * LIMIT as usize * 94 / 100, "{used} admitted");
    let shared = members[0].rate_limits().shared.unwrap();
    assert_eq!(shared.problem.as_deref(), Some("connection refused"));
}

#[tokio::test(start_paused = true)]
async fn a_sole_user_with_an_unreachable_store_has_full_speed() {
    let server = service::start_with(key(), LIMIT, millis(90)).await;
    let logs = Logs::capture();
    let client = member(&server, 16);
    let start = Instant::now();
    service::work(&client, 64, 900, MINUTE).await;
    let took = start.elapsed();
    assert!((secs(3)..secs(7)).contains(&took), "{took:?}");
    let text = logs.text();
    assert_eq!(text.matches("may be banned").count(), 1, "{text}");
    assert_eq!(refused(&server), 0);
}

#[tokio::test(start_paused = true)]
async fn the_pause_after_a_start_fails_no_call_that_may_not_wait() {
    let server = service::start_with(key(), LIMIT, millis(90)).await;
    let client = impatient(server.url())
        .shared_limits(Unreachable(17))
        .build()
        .unwrap();
    let start = Instant::now();
    let calls = join_all((0..8).map(|_| client.pets().list().send())).await;
    assert!(calls.iter().all(Result::is_ok), "{calls:?}");
    assert!(start.elapsed() >= secs(3), "{:?}", start.elapsed());
}
