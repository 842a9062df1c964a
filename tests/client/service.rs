//! A service on tokio's time that counts what it lets in and refuses, and that takes a thousand
//! connections at once. It has one quota, bans, a latency and a fault.
//!
//! Also clients and calls for the tests that use it.

use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use petstore_client::{Client, ClientBuilder, Error, RequestOptions};
use tokio::time::Instant;

use super::kit::{START, at, builder, http, millis, secs};
use super::wire::{Act, Wire};

/// The length of the short window.
pub(super) const MINUTE: Duration = secs(60);

/// A request counts towards a ban for this long.
const BAN_WINDOW: Duration = secs(60);
const BAN: Duration = secs(300);
/// More requests than this during a `Retry-After` ban the key.
const MAX_EARLY: usize = 10;

/// Faults, by the 0-based numbers of requests.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// The request gets this status, with `Retry-After: 1`.
    Status(u64, u16),
    /// The connection of each of these requests is reset.
    Reset(Range<u64>),
}

/// How the service behaves.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) per_minute: u64,
    /// From the arrival of a request, when it is judged, to its response.
    pub(super) latency: Duration,
    pub(super) fault: Option<Fault>,
}

impl Rules {
    pub(super) fn per_minute(limit: u64) -> Self {
        Self { per_minute: limit, latency: millis(100), fault: None }
    }
}

/// The counts of the service.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    pub(super) requests: u64,
    /// Requests let in, by minute window.
    pub(super) admitted: Vec<u64>,
    /// Requests that got a 429, the fault aside.
    pub(super) refused: u64,
    pub(super) bans: u64,
}

impl Counts {
    pub(super) fn total(&self) -> u64 {
        self.admitted.iter().sum()
    }
}

/// The running service; it stops when dropped.
pub(super) struct Service {
    wire: Wire,
    state: Arc<Mutex<State>>,
}

impl Service {
    pub(super) fn start(rules: Rules) -> Self {
        let (wait_until, banned_until, early) = (None, None, Vec::new());
        let (start, counts) = (Instant::now(), Counts::default());
        let state = State { rules, start, wait_until, banned_until, early, counts };
        let state = Arc::new(Mutex::new(state));
        let judge = Arc::clone(&state);
        let wire = Wire::start(move |_| judge.lock().unwrap().respond(Instant::now()));
        Self { wire, state }
    }

    pub(super) fn base(&self) -> String {
        self.wire.base()
    }

    pub(super) fn counts(&self) -> Counts {
        self.state.lock().unwrap().counts.clone()
    }
}

struct State {
    rules: Rules,
    /// The start of a minute: [`START`] on the service's clock.
    start: Instant,
    /// When the `Retry-After` of the last 429 ends.
    wait_until: Option<Instant>,
    banned_until: Option<Instant>,
    early: Vec<Instant>,
    counts: Counts,
}

impl State {
    fn respond(&mut self, now: Instant) -> Act {
        let number = self.counts.requests;
        self.counts.requests += 1;
        let elapsed = now - self.start;
        let window = usize::try_from(elapsed.as_secs() / MINUTE.as_secs()).unwrap();
        self.counts.admitted.resize(window + 1, 0);
        let (status, retry_after) = match &self.rules.fault {
            Some(Fault::Reset(range)) if range.contains(&number) => {
                return Act::ResetLater(self.rules.latency);
            }
            Some(Fault::Status(faulty, status)) if *faulty == number => (*status, Some(secs(1))),
            _ => match self.refusal(now) {
                Some(wait) => (429, Some(wait)),
                None => {
                    self.counts.admitted[window] += 1;
                    (200, None)
                }
            },
        };
        let response = self.response(status, retry_after, elapsed);
        Act::Later(self.rules.latency, response)
    }

    /// Checks a request against ban and quota. Returns the `Retry-After` of a 429.
    fn refusal(&mut self, now: Instant) -> Option<Duration> {
        let until = |end: Option<Instant>| end.filter(|end| *end > now).map(|end| end - now);
        if let Some(left) = until(self.banned_until) {
            self.counts.refused += 1;
            return Some(left);
        }
        if until(self.wait_until).is_some() {
            self.early.retain(|at| now - *at < BAN_WINDOW);
            self.early.push(now);
        }
        if *self.counts.admitted.last().unwrap() < self.rules.per_minute {
            return None;
        }
        let mut wait = left_of_minute(now - self.start);
        if self.early.len() > MAX_EARLY {
            self.early.clear();
            self.counts.bans += 1;
            self.banned_until = Some(now + BAN);
            wait = BAN;
        }
        self.counts.refused += 1;
        self.wait_until = Some(now + wait);
        Some(wait)
    }

    fn response(&self, status: u16, retry_after: Option<Duration>, elapsed: Duration) -> Vec<u8> {
        let date = httpdate::fmt_http_date(at(START) + elapsed);
        let mut fields = vec![("Date", date)];
        // A proxy in front of the service knows no quota.
        if status != 503 {
            let left = self.rules.per_minute - *self.counts.admitted.last().unwrap();
            let reset = START + (elapsed + left_of_minute(elapsed)).as_secs();
            fields.push(("X-RateLimit-Limit", self.rules.per_minute.to_string()));
            fields.push(("X-RateLimit-Remaining", left.to_string()));
            fields.push(("X-RateLimit-Reset", reset.to_string()));
        }
        if let Some(wait) = retry_after {
            let seconds = wait.as_millis().div_ceil(1_000).max(1);
            fields.push(("Retry-After", seconds.to_string()));
        }
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        http(status, &fields, if status == 200 { "[]" } else { "" })
    }
}

/// Returns the rest of the minute that a moment lies in.
fn left_of_minute(elapsed: Duration) -> Duration {
    let minutes = u32::try_from(elapsed.as_secs() / MINUTE.as_secs()).unwrap();
    MINUTE * (minutes + 1) - elapsed
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
        Err(_) => panic!("not done after {limit:?}: {:?}", client.rate_limits()),
    }
}

/// Makes requests from many tasks, all of which have to succeed; returns how long they took.
pub(super) async fn work(
    client: &Client,
    tasks: usize,
    requests: usize,
    limit: Duration,
) -> Duration {
    let start = Instant::now();
    let left = Arc::new(AtomicUsize::new(requests));
    let task = || {
        let (client, left) = (client.clone(), Arc::clone(&left));
        tokio::spawn(async move {
            let take = |left: usize| left.checked_sub(1);
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                get(&client).await.unwrap();
            }
        })
    };
    let tasks: Vec<_> = (0..tasks).map(|_| task()).collect();
    let calls = futures_util::future::join_all(tasks);
    for task in within(client, limit, calls).await {
        task.unwrap();
    }
    start.elapsed()
}

/// Makes requests from many tasks until `length` has passed; a call that fails is followed by
/// another after a second.
pub(super) async fn keep_busy(client: &Client, tasks: usize, length: Duration) {
    let end = Instant::now() + length;
    let task = || {
        let client = client.clone();
        let calls = async move {
            loop {
                if get(&client).await.is_err() {
                    tokio::time::sleep(secs(1)).await;
                }
            }
        };
        tokio::spawn(tokio::time::timeout_at(end, calls))
    };
    let tasks: Vec<_> = (0..tasks).map(|_| task()).collect();
    for task in tasks {
        let _: Result<(), _> = task.await.unwrap();
    }
}
