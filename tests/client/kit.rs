//! Helpers: clients for a test server, responses, and pets as JSON.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use petstore_client::events::Event;
use petstore_client::limits::BlockReason;
use petstore_client::retry::{Backoff, RetryPolicy};
use petstore_client::{Client, ClientBuilder, Error, Meta, NewPet, Page, Pet, RequestOptions};
use petstore_mock::{Builder, Clock, MockServer, Plan};

use super::wire::{Act, Wire};

pub(super) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) const fn millis(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// The first second of a minute, on the clocks of mocks: 2027-01-15, 08:00:00 UTC.
pub(crate) const START: u64 = 1_800_000_000;

/// Returns an instant by its seconds since 1970.
pub(crate) fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + secs(seconds)
}

/// A mock that follows the runtime's time from [`START`] on.
pub(crate) fn mock(key: impl Into<String>, plan: Plan) -> Builder {
    MockServer::builder()
        .key(key, plan)
        .clock(Clock::runtime(at(START)))
}

pub(super) const KEY: &str = "k3y-of-these-tests";
pub(super) const REX: &str = r#"{"id":1,"name":"Rex","categoryId":7,"status":"available"}"#;
/// The `Date` of responses: months away from this machine's clock.
pub(super) const DATE: &str = "Fri, 15 Jan 2027 08:00:00 GMT";

/// Returns a key for the current test. Ports are reused, so with a common key, a client could share
/// the rate limiter of another test.
pub(super) fn key() -> String {
    format!(
        "{KEY}-{}",
        std::thread::current().name().unwrap_or_default()
    )
}

/// Starts a client that retries without delay.
pub(super) fn builder(base: &str) -> ClientBuilder {
    Client::builder(base).api_key(key()).retry(at_once())
}

/// Retries without delay.
pub(super) fn at_once() -> RetryPolicy {
    RetryPolicy::new().backoff(Backoff::new().max(Duration::ZERO))
}

pub(super) fn client(base: &str) -> Client {
    builder(base).build().unwrap()
}

pub(super) fn once() -> RequestOptions {
    RequestOptions::new().max_attempts(1)
}

/// Writes an HTTP/1.1 response with the correct length.
pub(super) fn http(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    use std::fmt::Write as _;

    let body = body.as_ref();
    let mut text = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    [text.as_bytes(), b"\r\n", body].concat()
}

pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Act {
    Act::Answer(http(status, headers, body))
}

/// Answers with an empty list of pets.
pub(super) fn no_pets() -> Act {
    answer(200, &[], "[]")
}

/// Starts a server with these actions, one per request, and a client of it.
pub(super) fn serve(acts: Vec<Act>) -> (Wire, Client) {
    let server = Wire::of(acts);
    let client = client(&server.base());
    (server, client)
}

/// Creates a pet.
pub(super) async fn create(client: &Client) -> Result<Pet, Error> {
    client.pets().create(&NewPet::new("Rex", 7)).await
}

/// Lists pets with these options.
pub(super) async fn list_with(
    client: &Client,
    options: &RequestOptions,
) -> Result<Page<Pet>, Error> {
    client.pets().list().options(options).await
}

/// Lists pets. Returns the metadata of the response.
pub(crate) async fn list_meta(client: &Client) -> Meta {
    let response = client.pets().list().with_meta().await;
    response.unwrap().meta
}

/// Returns the error of one attempt to list pets, for this action of the server.
pub(super) async fn list_error(act: Act) -> Error {
    let server = Wire::of(vec![act]);
    list_with(&client(&server.base()), &once())
        .await
        .unwrap_err()
}

/// Returns the error of a call that creates a pet, for this action of the server.
pub(super) async fn create_error(act: Act) -> Error {
    let server = Wire::of(vec![act]);
    let error = create(&client(&server.base())).await.unwrap_err();
    assert_eq!(server.count(), 1, "a POST is not sent again: {error}");
    error
}

/// Returns an error and its sources.
pub(crate) fn sources(error: &Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |it| {
        it.source()
    })
}

/// Collects what `select` returns for a client's events.
pub(super) fn recorded<T: Send + 'static>(
    builder: ClientBuilder,
    select: impl Fn(&Event<'_>) -> Option<T> + Send + Sync + 'static,
) -> (ClientBuilder, Arc<Mutex<Vec<T>>>) {
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&recorded);
    (
        builder.on_event(move |event| sink.lock().unwrap().extend(select(event))),
        recorded,
    )
}

/// Returns why a call was blocked.
pub(crate) fn reason(error: &Error) -> Option<BlockReason> {
    error.blocked().map(|blocked| blocked.reason)
}
