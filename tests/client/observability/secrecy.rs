//! Tests that the key appears only in the `Authorization` header.

use std::fmt::{Debug, Write as _};
use std::sync::{Mutex, OnceLock};

use petstore_client::auth::{ApiKeyProvider as _, CachingProvider};
use petstore_client::http::Method;
use petstore_client::{ApiKey, Client, Error, ErrorResponse, NewPet, RequestOptions};

use crate::client::kit::{DATE, REX, answer, at_once, create, http, no_pets, secs, sources};
use crate::client::logs::Logs;
use crate::client::wire::{Act, Wire};

const SENTINEL: &str = "S3NTINEL-qzxvkw";

/// Formats an error and its sources in every way.
fn everything(error: &Error) -> String {
    let mut text = format!("{error}\n{error:?}\n{error:#?}\n");
    let response = error.response();
    let body = response.map(ErrorResponse::body);
    writeln!(text, "{body:?} {:?}", response.map(ErrorResponse::headers)).unwrap();
    sources(error).for_each(|cause| writeln!(text, "{cause} {cause:?}").unwrap());
    text
}

fn client(base: &str) -> Client {
    Client::builder(base)
        .api_key(SENTINEL)
        .retry(at_once())
        .build()
        .unwrap()
}

fn assert_secret(text: &str) {
    for part in [SENTINEL, "qzxvkw", "S3NTINEL"] {
        assert!(!text.contains(part), "the key is in:\n{text}");
    }
}

/// Collects what crates log through `log`, which `tracing` does not see.
struct Records(Mutex<String>);

impl log::Log for Records {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let line = format!("{} {}\n", record.target(), record.args());
        self.0.lock().unwrap().push_str(&line);
    }

    fn flush(&self) {}
}

fn records() -> &'static Records {
    static RECORDS: OnceLock<Records> = OnceLock::new();
    let records = RECORDS.get_or_init(|| Records(Mutex::default()));
    let _ = log::set_logger(records);
    log::set_max_level(log::LevelFilter::Trace);
    records
}

#[tokio::test]
#[expect(deprecated, reason = "it is part of the contract")]
async fn the_key_is_in_no_log_at_any_level() {
    let records = records();
    let logs = Logs::capture();
    let repeated = format!(r#"{{"message":"no key {SENTINEL}"}}"#);
    let server = Wire::of(vec![
        answer(200, &[("Deprecation", "true")], REX),
        answer(500, &[], ""),
        Act::Cut(http(200, &[], "[]")[..30].to_vec()),
        no_pets(),
        answer(401, &[], r#"{"code":"unauthorized"}"#),
        answer(400, &[("Echo", SENTINEL)], repeated),
        answer(200, &[], "<html>"),
        answer(429, &[("Date", DATE), ("Retry-After", "999")], ""),
    ]);
    let client = client(&server.base());
    client.pets().get(1).await.unwrap();
    client.pets().list().await.unwrap();
    let mut errors = String::new();
    for _ in 0..4 {
        errors += &everything(&create(&client).await.unwrap_err());
    }
    let seen = server.seen();
    assert_eq!(seen.len(), 8);
    assert!(seen.iter().all(|seen| seen.head.contains(SENTINEL)));

    let text = logs.text();
    for expected in ["sending", "answered", "attempt failed", "backing off"] {
        assert!(text.contains(expected), "{expected} is missing in:\n{text}");
    }
    assert_secret(&text);
    assert_secret(&errors);
    let records = records.0.lock().unwrap().clone();
    assert!(records.contains("reqwest::connect"), "{records}");
    assert_secret(&records);
}

#[tokio::test]
async fn the_key_is_in_no_debug_output() {
    // The server sends back what it got.
    let server = Wire::start(|_| answer(200, &[("X-Echo", SENTINEL)], REX));
    let builder = || Client::builder(server.base()).api_key(SENTINEL);
    let client = builder().on_event(|event| assert_secret(&format!("{event:?}")));
    let client = client.build().unwrap();
    let new = NewPet::new("a", 1);
    let pet = client.pets().create(&new).await.unwrap();
    let cached = CachingProvider::new(ApiKey::new(SENTINEL), secs(60));
    cached.api_key(None).await.unwrap();
    let shown: [&dyn Debug; 7] = [
        &cached,
        &ApiKey::new(SENTINEL),
        &builder(),
        &client,
        &client.pets().list(),
        &client.request(Method::GET, "/x"),
        &pet,
    ];
    for shown in shown {
        assert_secret(&format!("{shown:?} {shown:#?}"));
    }
    let small = RequestOptions::new().max_response_bytes(9);
    let error = create(&client.with_options(&small)).await.unwrap_err();
    assert_eq!(error.response().unwrap().headers()["x-echo"], "[hidden]");
}

#[tokio::test]
async fn a_key_in_the_wrong_place_is_not_repeated() {
    for base in [
        format!("https://me:{SENTINEL}@petstore.example/v1"),
        format!("https://petstore.example/v1?key={SENTINEL}"),
        format!("https://petstore.example/v1#{SENTINEL}"),
    ] {
        let builder = Client::builder(base).api_key("k");
        assert_secret(&format!("{builder:?}"));
        assert_secret(&everything(&builder.build().unwrap_err()));
    }
    for key in [format!("{SENTINEL}\n"), format!("é{SENTINEL}")] {
        let builder = Client::builder("https://petstore.example/v1").api_key(key);
        assert_secret(&everything(&builder.build().unwrap_err()));
    }
}

#[tokio::test]
async fn a_query_is_in_no_log_and_no_message() {
    let logs = Logs::capture();
    let server = Wire::start(|_| answer(400, &[], ""));
    let client = client(&server.base());
    let request = client.request(Method::GET, &format!("/x?token={SENTINEL}"));
    let error = request.query("other", SENTINEL).send().await.unwrap_err();
    assert_eq!(error.operation(), Some("GET /x"));
    assert_secret(&everything(&error));
    assert_secret(&logs.text());
}
