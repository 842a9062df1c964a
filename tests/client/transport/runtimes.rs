//! Tests of several runtimes with one key: an idle or blocked runtime does not stop the others.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_util::FutureExt as _;
use petstore_client::limits::{Limits, RedisStore};
use petstore_client::{Client, ErrorKind, NewPet, RequestOptions};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, timeout};

use crate::client::kit::{answer, builder, key, list_with, millis, no_pets, once, secs};
use crate::client::service::{get, poll_once};
use crate::client::wire::{Act, Wire};

/// The time limit of an attempt, without and with slack. A request that is not polled may delay
/// others for that long.
const ATTEMPT: Duration = millis(300);
const LEASE: Duration = millis(2_300);
const SLACK: Duration = millis(700);

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A server on its own thread.
struct Elsewhere {
    wire: Wire,
    _runtime: Runtime,
}

impl Elsewhere {
    fn start(script: impl FnMut(usize) -> Act + Send + 'static) -> Self {
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        let wire = runtime.block_on(async { Wire::start(script) });
        Self {
            wire,
            _runtime: runtime,
        }
    }

    fn base(&self) -> String {
        self.wire.base()
    }
}

/// Builds a client with its own connections: those of another runtime end with that runtime.
fn client(base: &str, key: &str) -> Client {
    let options = RequestOptions::new().attempt_timeout(ATTEMPT);
    let client = builder(base).api_key(key).options(&options);
    client.build().unwrap()
}

/// Makes calls at once on a runtime of their own; returns how long they took.
fn others(base: &str, key: &str, calls: usize, limit: Duration) -> Duration {
    let start = Instant::now();
    let done = runtime().block_on(async {
        let client = client(base, key);
        let calls = (0..calls).map(|_| get(&client));
        timeout(limit, futures_util::future::join_all(calls)).await
    });
    let took = start.elapsed();
    let done = done.unwrap_or_else(|_| panic!("{calls} other calls hang for {took:?}"));
    done.into_iter().for_each(|call| call.unwrap());
    took
}

#[test]
fn calls_dropped_in_one_runtime_do_not_delay_another() {
    for (inside, calls) in [(true, 16), (false, 64)] {
        let server = Elsewhere::start(|number| match number {
            0 => Act::Stall(Vec::new()),
            _ => no_pets(),
        });
        let left_alone = runtime();
        let here = client(&server.base(), &key());
        let mut dropped: Vec<_> = (0..calls).map(|_| get(&here)).collect();
        left_alone.block_on(async {
            for call in &mut dropped {
                assert!(!poll_once(call).await);
            }
            tokio::time::sleep(millis(50)).await;
            for call in &mut dropped {
                assert!(!poll_once(call).await);
            }
            if inside {
                dropped.clear();
            }
        });
        drop(dropped);
        let took = others(&server.base(), &key(), calls, secs(5));
        assert!(took < LEASE, "{calls}, dropped inside: {inside}: {took:?}");
    }
}

#[test]
fn a_call_whose_runtime_stands_still_ends_at_its_time_limit() {
    let server = Elsewhere::start(|_| Act::Stall(Vec::new()));
    let left_alone = runtime();
    let here = client(&server.base(), &key());
    let mut call = here.pets().list().timeout(ATTEMPT).send();
    left_alone.block_on(async { assert!(!poll_once(&mut call).await) });
    let ended = runtime().block_on(async { timeout(secs(5), call).await });
    assert!(ended.unwrap().unwrap_err().is_timeout());
}

#[test]
fn a_call_outside_of_a_runtime_is_an_error_and_no_panic() {
    let client = client("http://127.0.0.1:1/v1", &key());
    let error = get(&client).now_or_never().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Runtime, "{error}");
    assert!(error.to_string().ends_with("there is no Tokio runtime"));
    assert!(!error.may_have_been_processed());
}

/// Starts a call on a thread whose runtime is then blocked for `length`; returns once it is.
#[expect(
    clippy::disallowed_methods,
    reason = "the test is about a runtime that is blocked"
)]
fn block_with_a_call(base: &str, key: &str, length: Duration) -> JoinHandle<()> {
    let (ready, blocked) = mpsc::channel();
    let (base, key) = (base.to_owned(), key.to_owned());
    let thread = thread::spawn(move || {
        runtime().block_on(async {
            let mut call = get(&client(&base, &key));
            for _ in 0..5 {
                assert!(!poll_once(&mut call).await);
                tokio::time::sleep(millis(10)).await;
            }
            ready.send(()).unwrap();
            thread::sleep(length);
        });
    });
    blocked.recv().unwrap();
    thread
}

#[test]
fn a_blocked_runtime_at_the_head_delays_others_for_its_lease() {
    let server = Elsewhere::start(|number| match number {
        0 => answer(429, &[("Retry-After", "1")], ""),
        _ => no_pets(),
    });
    // This client gets the 429 for which all others wait, and keeps its block alive.
    let told = client(&server.base(), &key());
    runtime().block_on(list_with(&told, &once())).unwrap_err();
    let wait = secs(1);
    let length = wait + LEASE + 3 * SLACK;
    let blocked = block_with_a_call(&server.base(), &key(), length);
    let took = others(&server.base(), &key(), 64, secs(10));
    blocked.join().unwrap();
    assert!(took < wait + LEASE + SLACK, "{took:?}");
}

#[test]
fn a_call_whose_runtime_ends_says_whether_its_request_was_sent() {
    for in_flight in [false, true] {
        let server = Elsewhere::start(move |_| match in_flight {
            true => Act::Stall(Vec::new()),
            false => answer(429, &[("Retry-After", "60")], ""),
        });
        let client = client(&server.base(), &format!("{}-{in_flight}", key()));
        let create = client.pets().create(&NewPet::new("Rex", 7));
        let longer = RequestOptions::new().attempt_timeout(LEASE);
        let mut call = create.options(&longer).send();
        let ended = runtime();
        ended.block_on(async {
            assert!(!poll_once(&mut call).await);
            let is_refused = || client.limits().snapshot().blocked.is_some();
            while server.wire.count() == 0 || is_refused() == in_flight {
                tokio::time::sleep(millis(10)).await;
            }
        });
        drop(ended);
        let error = runtime().block_on(call).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Runtime, "{error}");
        assert_eq!(error.may_have_been_processed(), in_flight, "{error}");
    }
}

/// How long a client waits for a store that does not answer.
const STORE_TIMEOUT: Duration = secs(3);

#[test]
fn a_question_to_the_store_holds_up_no_other_runtime() {
    for ends in [true, false] {
        let server = Elsewhere::start(|_| no_pets());
        // This store accepts connections and never answers.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let store = format!("redis://{}", silent.local_addr().unwrap());
        let client = builder(&server.base())
            .limits(Limits::new().store(RedisStore::new(&store).unwrap()))
            .build()
            .unwrap();
        let other = runtime();
        other.block_on(async {
            let mut call = client.pets().list().send();
            assert!(!poll_once(&mut call).await);
            tokio::time::sleep(millis(50)).await;
        });
        // Without this, the runtime is blocked in the middle of the question.
        let _other = Some(other).filter(|_| !ends);
        let list = client.pets().list().timeout(secs(20));
        let page = runtime().block_on(list.with_meta()).unwrap();
        let took = page.meta.waited();
        assert!(took < STORE_TIMEOUT + 3 * SLACK, "ends: {ends}: {took:?}");
    }
}
