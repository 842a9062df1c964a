//! A service with behaviour that the mock does not have: it hides a quota, sends no `Date`, has a
//! wrong clock, or fails one request. It uses tokio's time.
//!
//! Also clients and calls for the tests that use it.

use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use petstore_client::{Client, ClientBuilder, Error, RequestOptions};
use tokio::time::Instant;

use super::kit::{builder, http, millis, secs};
use super::wire::{Act, Wire};

/// The length of the short window.
pub(super) const MINUTE: Duration = secs(60);
const DAY: Duration = secs(24 * 3600);

/// A request counts towards a ban for this long.
const BAN_WINDOW: Duration = secs(60);
const BAN: Duration = secs(300);
/// More requests than this during a `Retry-After` ban the key.
const MAX_EARLY: usize = 10;

/// Which quota the `X-RateLimit-*` headers describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// The one with the fewest requests left.
    Tightest,
    /// The day's, always.
    Day,
    /// None, except on a 429.
    OnRefusal,
}

/// What the service's clock shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    /// A time that each response tells in `Date`.
    Dated,
    /// This machine's time plus some seconds, without `Date`.
    Undated(i64),
}

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
    pub(super) per_day: u64,
    pub(super) shown: Shown,
    pub(super) clock: Clock,
    /// From the arrival of a request, when it is judged, to its response.
    pub(super) latency: Duration,
    pub(super) fault: Option<Fault>,
}

impl Rules {
    pub(super) fn per_minute(limit: u64) -> Self {
        Self {
            per_minute: limit,
            per_day: 1_000_000_000,
            shown: Shown::Tightest,
            clock: Clock::Dated,
            latency: millis(100),
            fault: None,
        }
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
        let state = Arc::new(Mutex::new(State::new(rules)));
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
    start: Instant,
    /// What the service's clock shows at the start, in seconds since 1970: both windows begin then.
    epoch: i64,
    used_today: u64,
    /// When the `Retry-After` of the last 429 ends.
    wait_until: Option<Instant>,
    banned_until: Option<Instant>,
    early: Vec<Instant>,
    counts: Counts,
}

impl State {
    fn new(rules: Rules) -> Self {
        let epoch = match rules.clock {
            Clock::Dated => 1_800_000_000,
            Clock::Undated(ahead) => wall() + ahead,
        };
        let (wait_until, banned_until, early) = (None, None, Vec::new());
        let (start, used_today, counts) = (Instant::now(), 0, Counts::default());
        Self { rules, start, epoch, used_today, wait_until, banned_until, early, counts }
    }

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
                    self.used_today += 1;
                    (200, None)
                }
            },
        };
        let response = self.response(status, retry_after, elapsed);
        Act::Later(self.rules.latency, response)
    }

    /// Checks a request against ban and quotas. Returns the `Retry-After` of a 429.
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
        let elapsed = now - self.start;
        let used = *self.counts.admitted.last().unwrap();
        let minute = (used >= self.rules.per_minute).then(|| left_of(MINUTE, elapsed));
        let day = (self.used_today >= self.rules.per_day).then(|| left_of(DAY, elapsed));
        let mut wait = minute.max(day)?;
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
        let used = *self.counts.admitted.last().unwrap();
        let minute = (self.rules.per_minute, used, MINUTE);
        let day = (self.rules.per_day, self.used_today, DAY);
        let left = |(limit, used, _): (u64, u64, Duration)| limit.saturating_sub(used);
        let quota = match self.rules.shown {
            // A proxy in front of the service knows no quota.
            _ if status == 503 => None,
            Shown::OnRefusal if status == 200 => None,
            Shown::Day => Some(day),
            Shown::Tightest | Shown::OnRefusal if left(day) < left(minute) => Some(day),
            Shown::Tightest | Shown::OnRefusal => Some(minute),
        };
        let mut fields = Vec::new();
        if let Some((limit, _, length)) = quota {
            let end = i64::try_from((elapsed + left_of(length, elapsed)).as_secs()).unwrap();
            fields.push(("X-RateLimit-Limit", limit.to_string()));
            fields.push(("X-RateLimit-Remaining", quota.map_or(0, left).to_string()));
            fields.push(("X-RateLimit-Reset", (self.epoch + end).to_string()));
        }
        if let Some(wait) = retry_after {
            let seconds = wait.as_millis().div_ceil(1_000).max(1);
            fields.push(("Retry-After", seconds.to_string()));
        }
        if self.rules.clock == Clock::Dated {
            let now = secs(self.epoch.unsigned_abs()) + elapsed;
            fields.push(("Date", httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + now)));
        }
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        http(status, &fields, if status == 200 { "[]" } else { "" })
    }
}

/// Returns the rest of the window that a moment lies in.
fn left_of(length: Duration, elapsed: Duration) -> Duration {
    let windows = u32::try_from(elapsed.as_secs() / length.as_secs()).unwrap();
    length * (windows + 1) - elapsed
}

#[expect(clippy::disallowed_methods, reason = "without `Date`, the client uses this clock")]
fn wall() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap()
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
