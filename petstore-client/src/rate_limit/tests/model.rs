//! Tests of the limiter under a model checker. Calls run in many orders (depth first up to a limit
//! for two calls, randomly and by priority for more), and are dropped at several points. A lost
//! wake-up appears as a deadlock, and a lost permit as a count that is not zero at rest.
//!
//! The checker has no clock, so `waiting` tests timers. Shared files are tested elsewhere, because
//! no other task can hold them while one runs.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p petstore-client --lib rate_limit::tests::model`

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use shuttle::future::{block_on, spawn, yield_now};

use crate::clock;
use crate::rate_limit::limiter::{Acquire, Limiter, Permit};
use crate::rate_limit::quota::policy::{MaxInFlight, Policy};
use crate::rate_limit::time::TimeSource;
use crate::rate_limit::view::Priority;

const LEASE: Duration = Duration::from_secs(30);

/// A service whose quota is tight but never exhausted here: requests have to wait for each other.
struct Service {
    left: AtomicU64,
    /// All calls are of one client.
    policy: Policy,
}

impl Service {
    fn answer(&self) -> HeaderMap {
        let left = self
            .left
            .fetch_sub(1, Ordering::SeqCst)
            .checked_sub(1)
            .expect("enough quota");
        let mut headers = HeaderMap::new();
        for (name, value) in [("limit", 100), ("remaining", left), ("reset", 3_000)] {
            let name = format!("x-ratelimit-{name}");
            headers.insert(http::HeaderName::try_from(name).unwrap(), value.into());
        }
        headers
    }
}

/// The request of a call. A retry has a place before all others.
fn request(kind: Kind, policy: Policy) -> Acquire {
    let latest = clock::now() + Duration::from_secs(3_600);
    let (place, priority) = match kind {
        Kind::New => (None, Priority::Normal),
        Kind::Low => (None, Priority::Low),
        Kind::Retry => (Some(0), Priority::Normal),
    };
    Acquire {
        place,
        priority,
        policy,
        latest,
        forced: false,
        lease: LEASE,
    }
}

#[derive(Clone, Copy)]
enum Kind {
    New,
    Low,
    Retry,
}

/// Where a call is dropped.
#[derive(Clone, Copy)]
enum GivenUp {
    Never,
    /// While it waits, after this many polls.
    Waiting(u32),
    /// With a permit in hand.
    Permitted,
    /// After it was sent.
    Sent,
}

async fn call(limiter: &Limiter, service: &Service, kind: Kind, given_up: GivenUp) {
    let Some(permit) = permit(limiter, request(kind, service.policy), given_up).await else {
        return;
    };
    if matches!(given_up, GivenUp::Permitted) {
        return permit.not_sent();
    }
    yield_now().await;
    let headers = service.answer();
    if matches!(given_up, GivenUp::Sent) {
        return;
    }
    permit.observe(StatusCode::OK, &headers);
}

async fn permit(limiter: &Limiter, request: Acquire, given_up: GivenUp) -> Option<Permit<'_>> {
    let mut acquire = pin!(limiter.acquire(request, |_| ()));
    let mut turns = 0;
    std::future::poll_fn(|context| {
        if matches!(given_up, GivenUp::Waiting(most) if turns >= most) {
            return Poll::Ready(None);
        }
        turns += 1;
        if matches!(given_up, GivenUp::Waiting(_)) {
            context.waker().wake_by_ref();
        }
        acquire
            .as_mut()
            .poll(context)
            .map(|permit| Some(permit.unwrap()))
    })
    .await
}

fn run(calls: &[(Kind, GivenUp)]) {
    // Timers need a runtime. This one never runs.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let _entered = runtime.enter();
    let limiter = Limiter::new(TimeSource::default());
    let service = Arc::new(Service {
        left: AtomicU64::new(100),
        policy: Policy {
            max_in_flight: Some(MaxInFlight::new(1)),
            ..Policy::default()
        },
    });
    let tasks: Vec<_> = calls
        .iter()
        .map(|&(kind, given_up)| {
            let (limiter, service) = (Arc::clone(&limiter), Arc::clone(&service));
            spawn(async move { call(&limiter, &service, kind, given_up).await })
        })
        .collect();
    for task in tasks {
        block_on(task).unwrap();
    }
    let limits = limiter.view(&Policy::default());
    assert_eq!((limits.in_flight, limits.waiting), (0, 0));
}

use GivenUp::{Never, Permitted, Sent, Waiting};
use Kind::{Low, New, Retry};

#[test]
fn no_wake_up_and_no_permit_is_lost_between_two_calls() {
    for given_up in [Never, Waiting(1), Waiting(2), Permitted, Sent] {
        let calls = [(New, given_up), (New, Never)];
        shuttle::check_dfs(move || run(&calls), Some(200_000));
    }
}

#[test]
fn no_wake_up_and_no_permit_is_lost_among_many_calls() {
    let calls = [
        (New, Never),
        (Low, Waiting(1)),
        (New, Waiting(2)),
        (Retry, Never),
        (New, Sent),
        (New, Permitted),
        (Low, Never),
    ];
    shuttle::check_random(move || run(&calls), 20_000);
    shuttle::check_pct(move || run(&calls), 20_000, 3);
}
