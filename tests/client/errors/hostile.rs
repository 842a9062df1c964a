//! The client against a server that answers with anything.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::StreamExt as _;
use petstore_client::http::Method;
use petstore_client::retry::{Backoff, RetryPolicy};
use petstore_client::{Client, Error, ErrorKind, ErrorResponse, NewPet, RequestOptions};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tokio::time::Instant;

use crate::client::kit::{
    REX, answer, client, create, http, list_error, list_with, millis, once, secs, sources,
};
use crate::client::wire::{Act, Wire};
use crate::hostile::{Hostile, KEY, Reply, block_on, check, check_text, replies};

const FEW: (u32, u64) = (600, 1);
const MANY: (u32, u64) = (10_000, 2);

const TIMEOUT: Duration = secs(60);
/// A list with more pages counts as endless.
const MAX_PAGES: usize = 400;

#[derive(Debug, Clone, Copy)]
enum What {
    List,
    Pages,
    Create,
    Get,
    Orders,
    Raw,
}

fn calls() -> impl Strategy<Value = Vec<What>> {
    use What::{Create, Get, List, Orders, Pages, Raw};
    vec(
        select(vec![List, Pages, Create, Create, Get, Orders, Raw]),
        1..4,
    )
}

fn start(base: &str, seen: &Arc<Mutex<String>>) -> Client {
    let options = RequestOptions::new()
        .timeout(TIMEOUT)
        .attempt_timeout(secs(10))
        .read_timeout(secs(5))
        .max_response_bytes(4_096)
        .max_wait(secs(40));
    let events = Arc::clone(seen);
    Client::builder(base)
        .api_key(KEY)
        .options(&options)
        .isolated_limits()
        .on_event(move |event| writeln!(events.lock().unwrap(), "{event:?}").unwrap())
        .retry(RetryPolicy::new().backoff(Backoff::new().max(secs(1))))
        .build()
        .unwrap()
}

#[expect(deprecated, reason = "it is part of the contract")]
async fn call(client: &Client, what: What, number: usize) -> Vec<Result<(), Error>> {
    let pets = client.pets();
    let raw = client.request(Method::GET, "/pets?limit=1");
    let new = NewPet::new(format!("pet {number}"), 1);
    vec![match what {
        What::List => pets.list().limit(1).await.map(drop),
        What::Create => pets.create(&new).await.map(drop),
        What::Get => pets.get(1).await.map(drop),
        What::Orders => client.store().orders().await.map(drop),
        What::Raw => raw.await.map(drop),
        What::Pages => {
            let pages = pets.list().limit(1).pages();
            let pages = pages.map(|page| page.map(drop));
            return pages.take(MAX_PAGES + 1).collect().await;
        }
    }]
}

/// Fails if an error violates a documented guarantee.
fn check_error(
    error: &Error,
    what: What,
    number: usize,
    server: &Hostile,
) -> Result<(), TestCaseError> {
    let message = error.to_string();
    check_text(&message)?;
    prop_assert!(message.len() < 3_000, "{} bytes", message.len());
    let mut text = format!(
        "{error:?} {:?} {:?} {:?}",
        error.response().map(ErrorResponse::body),
        error.response().map(ErrorResponse::headers),
        error.message()
    );
    sources(error).for_each(|cause| write!(text, " {cause} {cause:?}").unwrap());
    prop_assert!(!text.contains(KEY), "the key is in {}", text);
    let is_internal = matches!(
        error.kind(),
        ErrorKind::Config | ErrorKind::Runtime | ErrorKind::Connect
    );
    prop_assert!(!is_internal, "{}", error);
    if matches!(what, What::Create) && !error.may_have_been_processed() {
        let body = format!("\"pet {number}\"");
        prop_assert!(
            server.may_be_refused(body.as_bytes()),
            "it may have been processed: {}",
            error
        );
    }
    Ok(())
}

type Outcomes = BTreeMap<String, usize>;

/// Makes calls at the same time, and checks all documented guarantees of the client.
async fn keep_promises(
    replies: Vec<Reply>,
    calls: Vec<What>,
    outcomes: &RefCell<Outcomes>,
) -> Result<(), TestCaseError> {
    let server = Hostile::start(replies);
    let events = Arc::default();
    let client = start(&server.wire.base(), &events);
    let timed = calls.iter().enumerate().map(async |(number, what)| {
        let start = Instant::now();
        let results = call(&client, *what, number).await;
        (results, start.elapsed())
    });
    let results = futures_util::future::join_all(timed).await;
    for (number, (results, elapsed)) in results.iter().enumerate() {
        prop_assert!(results.len() <= MAX_PAGES, "the list is endless");
        // Each page of a list is a call with its own time limit.
        let limit = (TIMEOUT + secs(1)) * u32::try_from(results.len().max(1)).unwrap();
        prop_assert!(*elapsed <= limit, "it took {:?}", elapsed);
        for result in results {
            let kind = result.as_ref().err().map(Error::kind);
            *outcomes
                .borrow_mut()
                .entry(format!("{kind:?}"))
                .or_default() += 1;
            if let Err(error) = result {
                check_error(error, calls[number], number, &server)?;
            }
        }
    }
    let events = events.lock().unwrap();
    prop_assert!(!events.contains(KEY), "the key is in {}", events);
    server.check()
}

fn run(cases: (u32, u64)) -> Outcomes {
    let outcomes = RefCell::default();
    check((replies(), calls()), cases, |(replies, calls)| {
        block_on(keep_promises(replies, calls, &outcomes))
    });
    outcomes.into_inner()
}

#[test]
fn every_call_ends_in_time_and_well_whatever_the_server_sends() {
    let outcomes = run(FEW);
    // Every kind of result must occur, so that it was checked.
    for kind in [
        None,
        Some(ErrorKind::Interrupted),
        Some(ErrorKind::Timeout),
        Some(ErrorKind::Decode),
        Some(ErrorKind::RateLimited),
        Some(ErrorKind::Paging),
        Some(ErrorKind::BodyTooLarge),
        Some(ErrorKind::Server),
        Some(ErrorKind::Unauthorized),
        Some(ErrorKind::NotFound),
        Some(ErrorKind::Rejected),
    ] {
        let has_occurred = outcomes.contains_key(&format!("{kind:?}"));
        assert!(has_occurred, "{kind:?} is missing in {outcomes:?}");
    }
}

#[test]
#[ignore = "it takes minutes"]
fn many_calls_end_in_time_and_well_whatever_the_server_sends() {
    println!("{:?}", run(MANY));
}

#[tokio::test(start_paused = true)]
async fn a_response_cut_at_any_byte_is_lost() {
    let quota = [("X-RateLimit-Limit", "60"), ("Retry-After", "1")];
    let whole = http(201, &quota, REX);
    let length = whole.len();
    let server = Wire::start(move |number| match number % 2 {
        0 => Act::Cut(whole[..number / 2].to_vec()),
        _ => Act::Reset(whole[..number / 2].to_vec()),
    });
    let client = client(&server.base());
    for number in 0..2 * length {
        let error = create(&client).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{number}: {error}");
        assert!(error.may_have_been_processed(), "{number}: {error}");
        assert_eq!((error.attempts(), server.count()), (1, number + 1));
    }
    create(&client).await.unwrap();
}

#[tokio::test]
async fn a_small_body_that_is_unzipped_to_a_large_one_is_not_read() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&vec![b' '; 32 << 20]).unwrap();
    let bomb = answer(200, &[("Content-Encoding", "gzip")], gzip.finish().unwrap());
    let error = list_error(bomb).await;
    assert_eq!(error.kind(), ErrorKind::BodyTooLarge, "{error}");
}

/// This runs in real time. Paused time advances only when the runtime is idle, and in a flood it
/// never is.
#[tokio::test]
async fn no_flood_lasts_longer_than_the_call_or_fills_the_memory() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let body = format!("400\r\n{}\r\n", " ".repeat(0x400));
    for (name, head, more) in [
        ("interim", "", "HTTP/1.1 103 X\r\nA: b\r\n\r\n"),
        ("fields", "HTTP/1.1 200 OK\r\n", "X-A: b\r\n"),
        ("status line", "HTTP/1.1 200 ", "O"),
        ("body", chunked, &body),
        ("size of a chunk", chunked, "0"),
        ("empty lines", "", "\r\n"),
    ] {
        let more = more.repeat(10_000_usize.div_ceil(more.len()));
        let server = Wire::of(vec![Act::Flood(head.into(), more.into())]);
        let options = once().attempt_timeout(millis(500));
        let client = client(&server.base());
        let call = list_with(&client, &options);
        let ended = tokio::time::timeout(secs(300), call).await.expect(name);
        let error = ended.unwrap_err();
        let is_expected = match error.kind() {
            ErrorKind::BodyTooLarge => name == "body",
            kind => matches!(kind, ErrorKind::Interrupted | ErrorKind::Timeout),
        };
        assert!(is_expected, "{name}: {error}");
    }
}
