//! The client against a server that answers with anything.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flate2::{Compression, FlushCompress, Status};
use petstore_client::http::Method;
use petstore_client::retry::{Backoff, RetryPolicy};
use petstore_client::{Client, Error, ErrorKind, ErrorResponse, NewPet, RequestOptions};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tokio::time::Instant;

use crate::client::kit::{REX, client, http, once, secs, sources};
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
        .attempt_timeout(secs(10));
    let options = options
        .read_timeout(secs(5))
        .max_response_bytes(4_096)
        .max_wait(secs(40));
    let events = Arc::clone(seen);
    let client = Client::builder(base)
        .api_key(KEY)
        .options(&options)
        .isolated_limits();
    let client =
        client.on_event(move |event| writeln!(events.lock().unwrap(), "{event:?}").unwrap());
    let policy = RetryPolicy::new().backoff(Backoff::new().max(secs(1)));
    client.retry(policy).build().unwrap()
}

#[expect(deprecated, reason = "it is part of the contract")]
async fn call(client: &Client, what: What, number: usize) -> Vec<Result<(), Error>> {
    let pets = client.pets();
    let raw = client.request(Method::GET, "/pets?limit=1");
    vec![match what {
        What::List => pets.list().limit(1).await.map(drop),
        What::Create => pets
            .create(&NewPet::new(format!("pet {number}"), 1))
            .await
            .map(drop),
        What::Get => pets.get(1).await.map(drop),
        What::Orders => client.store().orders().await.map(drop),
        What::Raw => raw.await.map(drop),
        What::Pages => {
            let mut pages = pets.list().limit(1).pages();
            return all(async move || pages.try_next().await.map(|page| page.map(drop))).await;
        }
    }]
}

async fn all(mut next: impl AsyncFnMut() -> Result<Option<()>, Error>) -> Vec<Result<(), Error>> {
    let mut pages = Vec::new();
    while let Some(page) = next().await.transpose() {
        let is_end = page.is_err();
        pages.push(page);
        if is_end || pages.len() > MAX_PAGES {
            break;
        }
    }
    pages
}

/// Fails if an error violates a documented guarantee.
fn check_error(
    error: &Error,
    what: What,
    number: usize,
    server: &Hostile,
) -> Result<(), TestCaseError> {
    check_text(&error.to_string())?;
    prop_assert!(
        error.to_string().len() < 3_000,
        "{} bytes",
        error.to_string().len()
    );
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
        "None",
        "Some(Interrupted)",
        "Some(Timeout)",
        "Some(Decode)",
        "Some(RateLimited)",
        "Some(Paging)",
        "Some(BodyTooLarge)",
        "Some(Server)",
        "Some(Unauthorized)",
        "Some(NotFound)",
        "Some(Rejected)",
    ] {
        assert!(
            outcomes.contains_key(kind),
            "{kind} is missing in {outcomes:?}"
        );
    }
}

#[test]
#[ignore = "it takes minutes"]
fn many_calls_end_in_time_and_well_whatever_the_server_sends() {
    println!("{:?}", run(MANY));
}

#[tokio::test(start_paused = true)]
async fn a_response_cut_at_any_byte_is_lost() {
    let whole = http(
        201,
        &[("X-RateLimit-Limit", "60"), ("Retry-After", "1")],
        REX,
    );
    let server = {
        let whole = whole.clone();
        Wire::start(move |number| {
            let part = whole[..number / 2].to_vec();
            if number % 2 == 0 {
                Act::Cut(part)
            } else {
                Act::Reset(part)
            }
        })
    };
    let client = client(&server.base());
    for number in 0..2 * whole.len() {
        let error = client
            .pets()
            .create(&NewPet::new("a", 1))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{number}: {error}");
        assert!(error.may_have_been_processed(), "{number}: {error}");
        assert!(std::error::Error::source(&error).is_some(), "{number}");
        assert_eq!((error.attempts(), server.count()), (1, number + 1));
    }
    client.pets().create(&NewPet::new("a", 1)).await.unwrap();
}

/// Returns the start of a response with a gzip stream, and a part that can follow any number of
/// times.
fn bomb() -> (Vec<u8>, Vec<u8>) {
    let mut deflate = flate2::Compress::new(Compression::best(), false);
    let mut parts = [0, 1].map(|_| {
        let mut part = Vec::with_capacity(65_536);
        let spaces = vec![b' '; 1 << 20];
        let status = deflate
            .compress_vec(&spaces, &mut part, FlushCompress::Sync)
            .unwrap();
        assert!(status == Status::Ok && part.len() < 4_096);
        part
    });
    let mut head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n".to_vec();
    head.write_all(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
        .unwrap();
    head.append(&mut parts[0]);
    let [_, part] = parts;
    (head, part)
}

/// This runs in real time. Paused time advances only when the runtime is idle, and in a flood it
/// never is.
#[tokio::test]
async fn no_flood_lasts_longer_than_the_call_or_fills_the_memory() {
    let ok = b"HTTP/1.1 200 OK\r\n".to_vec();
    let chunked = [&ok[..], b"Transfer-Encoding: chunked\r\n\r\n"].concat();
    let (zipped, more) = bomb();
    let limit = crate::client::kit::millis(500);
    for (name, head, more) in [
        ("gzip bomb", zipped, more),
        (
            "interim",
            vec![],
            b"HTTP/1.1 103 X\r\nA: b\r\n\r\n".to_vec(),
        ),
        ("fields", ok.clone(), b"X-A: b\r\n".to_vec()),
        ("status line", b"HTTP/1.1 200 ".to_vec(), b"O".to_vec()),
        ("extension", [&chunked, &b"5;"[..]].concat(), b"a".to_vec()),
        ("size", chunked.clone(), b"0".to_vec()),
        (
            "trailers",
            [&chunked, &b"0\r\n"[..]].concat(),
            b"A: b\r\n".to_vec(),
        ),
        ("empty lines", vec![], b"\r\n".to_vec()),
    ] {
        let more = more.repeat(10_000_usize.div_ceil(more.len()));
        let server = Wire::of(vec![Act::Flood(head, more)]);
        let options = once().attempt_timeout(limit).max_response_bytes(100_000);
        let call = client(&server.base());
        let call = async { call.pets().list().options(&options).await };
        let error = tokio::time::timeout(secs(300), call)
            .await
            .expect(name)
            .unwrap_err();
        let is_expected = match error.kind() {
            ErrorKind::BodyTooLarge => name == "gzip bomb",
            kind => matches!(kind, ErrorKind::Interrupted | ErrorKind::Timeout),
        };
        assert!(is_expected, "{name}: {error}");
    }
}
