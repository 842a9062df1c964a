//! Tests of more processes than a shared record has room for.

use petstore_client::events::Event;
use petstore_client::{Client, RequestOptions};
use petstore_mock::{Plan, Seed};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::client::kit::{KEY, mock, recorded, secs};
use crate::client::limits::shared::process;
use crate::client::logs::Logs;
use crate::client::service::refused;

/// A record has room for this many.
const ROOM: usize = 100;

/// Fills the record with processes that run until they are dropped.
async fn fill(url: &str, folder: &TempDir) -> Vec<Client> {
    let mut members = Vec::new();
    for number in 1..=ROOM {
        let client = process(url, folder, number).build().unwrap();
        client.pets().list().await.unwrap();
        members.push(client);
    }
    members
}

/// Returns whether a process waits for room, if the event says that.
fn without_room(event: &Event<'_>) -> Option<bool> {
    match event {
        Event::SharedStore(status) => Some(status.is_waiting),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_without_room_says_so_and_goes_on_when_there_is() {
    let server = mock(KEY, Plan::Business).seed(Seed::none());
    let server = server.start().await.unwrap();
    let folder = TempDir::new().unwrap();
    let mut others = fill(server.url(), &folder).await;
    let logs = Logs::capture();
    let builder = process(server.url(), &folder, 0);
    let (builder, events) = recorded(builder, without_room);
    let client = builder.build().unwrap();
    let hasty = RequestOptions::new().max_wait(secs(2));
    let error = client.pets().list().options(&hasty).await.unwrap_err();
    assert!(error.is_rate_limited() && error.attempts() == 0, "{error}");
    let status = client.rate_limits().shared.unwrap();
    assert!(status.is_waiting && status.members == 100, "{status:?}");
    let text = logs.text();
    assert!(
        text.contains("sends nothing until another one ends"),
        "{text}"
    );
    assert!(!text.contains("sends more slowly"), "{text}");

    let start = Instant::now();
    drop(others.pop());
    client.pets().list().await.unwrap();
    assert!(start.elapsed() < secs(10), "{:?}", start.elapsed());
    assert!(!client.rate_limits().shared.unwrap().is_waiting);
    assert_eq!(*events.lock().unwrap(), [true, false]);
    assert_eq!(refused(&server), 0);
}

#[tokio::test(start_paused = true)]
async fn a_process_without_room_says_so_while_its_call_waits() {
    let server = mock(KEY, Plan::Business).seed(Seed::none());
    let server = server.start().await.unwrap();
    let folder = TempDir::new().unwrap();
    let mut others = fill(server.url(), &folder).await;
    let builder = process(server.url(), &folder, 0);
    let (builder, events) = recorded(builder, without_room);
    let client = builder.build().unwrap();
    let patient = RequestOptions::new().max_wait(secs(3_600));
    let call = tokio::spawn(client.pets().list().options(&patient).send());
    tokio::time::sleep(secs(5)).await;
    assert_eq!(*events.lock().unwrap(), [true]);
    drop(others.pop());
    call.await.unwrap().unwrap();
    assert_eq!(*events.lock().unwrap(), [true, false]);
}
