//! A hostile server, and checks of its clients. It sends random responses from a seed. They may be
//! damaged byte by byte, cut, stalled, or sent drop by drop.

mod reply;

use std::fmt::Debug;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

pub(crate) use self::reply::{Reply, replies};
use crate::client::{Seen, Wire};

/// The key of the clients. A server may write each of its characters in JSON as an escape.
pub(crate) const KEY: &str = "S3NTINEL/qzxvkw";
/// The longest wait that a client believes.
const MAX_BELIEVED: Duration = Duration::from_secs(25 * 3_600);

/// Runs a property test with a number of cases. They are the same in each run, unless
/// `PROPTEST_RNG_SEED` names another seed.
pub(crate) fn check<S: Strategy>(
    strategy: S,
    (cases, seed): (u32, u64),
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) where
    S::Value: Debug,
{
    let mut config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    if let RngSeed::Random = config.rng_seed {
        config.rng_seed = RngSeed::Fixed(seed);
    }
    let seed = config.rng_seed;
    let ended = TestRunner::new(config).run(&strategy, test);
    ended.unwrap_or_else(|problem| panic!("with the seed {seed:?}: {problem}"));
}

/// Runs a case on a runtime with paused time, which advances only when all tasks are idle.
pub(crate) fn block_on<T>(case: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(case)
}

/// A request and its response.
struct Exchange {
    request: Seen,
    reply: Reply,
    bytes: Vec<u8>,
    /// The arrival on the machine's clock. A client that shares its limits in a file follows this
    /// clock, unless the paused time is ahead of it.
    at: std::time::Instant,
}

/// The server, and another origin that must not get a request.
pub(crate) struct Hostile {
    pub(crate) wire: Wire,
    other: TcpListener,
    log: Arc<Mutex<Vec<Exchange>>>,
}

impl Hostile {
    /// Starts a server that sends these responses in turn, and then repeats the last one.
    pub(crate) fn start(replies: Vec<Reply>) -> Self {
        // No server of a test is at this address. On 127.0.0.1, the port may be that of an earlier
        // server, and a client of another test may still try to reach it. macOS lacks this address.
        let other = TcpListener::bind("127.0.0.2:0");
        let other = other.or_else(|_| TcpListener::bind("127.0.0.1:0")).unwrap();
        other.set_nonblocking(true).unwrap();
        let origin = format!("http://{}", other.local_addr().unwrap());
        let log = Arc::new(Mutex::new(Vec::new()));
        let exchanges = Arc::clone(&log);
        let wire = Wire::reading(move |request| {
            let mut log = exchanges.lock().unwrap();
            let reply = replies[log.len().min(replies.len() - 1)].clone();
            let bytes = reply.bytes(&origin);
            let act = reply.act(bytes.clone());
            #[expect(clippy::disallowed_methods, reason = "the machine's clock is meant")]
            let at = std::time::Instant::now();
            log.push(Exchange {
                request: request.clone(),
                reply,
                bytes,
                at,
            });
            act
        });
        Self { wire, other, log }
    }

    /// Checks the requests: none to another origin, none before `Retry-After` has elapsed, and no
    /// repeated `POST` unless the first one was refused.
    pub(crate) fn check(&self) -> Result<(), TestCaseError> {
        let met = self.other.accept().map_err(|error| error.kind());
        let is_alone = matches!(met, Err(io::ErrorKind::WouldBlock));
        prop_assert!(is_alone, "a request went to another origin: {met:?}");
        let log = self.log.lock().unwrap();
        for (number, exchange) in log.iter().enumerate() {
            let at = exchange.request.at;
            let end = at + exchange.reply.wait().unwrap_or_default().min(MAX_BELIEVED);
            for later in &log[number + 1..] {
                let passed = later.at - exchange.at;
                let is_early = later.request.at > at && later.request.at + passed < end;
                prop_assert!(!is_early, "sent {:?} too early", end - later.request.at);
                let is_again = exchange.request.line.starts_with("POST ")
                    && exchange.request.body == later.request.body;
                prop_assert!(
                    !is_again || contains(&exchange.bytes, b"429"),
                    "a POST was sent twice"
                );
            }
        }
        Ok(())
    }

    /// Returns whether every response to requests with this body may be a refusal or a redirect.
    pub(crate) fn may_be_refused(&self, body: &[u8]) -> bool {
        let log = self.log.lock().unwrap();
        let all = log.iter();
        let mut same = all.filter(|exchange| contains(&exchange.request.body, body));
        same.all(|exchange| {
            let mut lines = exchange.bytes.windows(12);
            lines.any(|line| {
                let is_refusal = matches!(&line[8..10], b" 3" | b" 4") && line[8..] != *b" 303";
                line.starts_with(b"HTTP/1.") && is_refusal
            })
        })
    }
}

pub(crate) fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Fails if a text contains the key or a control character.
pub(crate) fn check_text(text: &str) -> Result<(), TestCaseError> {
    prop_assert!(!text.contains(KEY), "the key is in {}", text);
    let control = text.chars().find(|c| c.is_control() && *c != '\n');
    prop_assert!(control.is_none(), "{:?} is in {}", control, text);
    Ok(())
}
