//! The queue and the exchanges under a model checker: calls run in many orders, and are dropped at several
//! points. A lost wake-up appears as a deadlock, and a lost permit as a count that is not zero at rest.
//!
//! The checker has no clock, so `waiting` tests timers.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p petstore-client --lib rate_limit::tests::model`

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use http::{HeaderMap, StatusCode};
use shuttle::future::{block_on, spawn, yield_now};

use super::waiting::{acquire, limiter_with};
use crate::rate_limit::limiter::{Acquire, Limiter, Permit};
use crate::rate_limit::limiter_clock::TimeSource;
use crate::rate_limit::policy::Policy;
use crate::rate_limit::view::Priority;

/// A service whose quota is tight but never used up here: requests have to wait for each other.
struct Service {
    left: AtomicU64,
}

impl Service {
    fn answer(&self) -> HeaderMap {
        let left = self.left.fetch_sub(1, Ordering::SeqCst) - 1;
        let mut headers = HeaderMap::new();
        headers.insert("x-ratelimit-limit", 100.into());
        headers.insert("x-ratelimit-remaining", left.into());
        headers.insert("x-ratelimit-reset", 50.into());
        headers
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

fn request(kind: Kind) -> Acquire {
    match kind {
        Kind::New => acquire(),
        Kind::Low => Acquire {
            priority: Priority::Low,
            ..acquire()
        },
        Kind::Retry => Acquire {
            place: Some(0),
            ..acquire()
        },
    }
}

async fn call(limiter: &Arc<Limiter>, service: &Service, kind: Kind, given_up: GivenUp) {
    let Some(permit) = permit(limiter, request(kind), given_up).await else {
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

async fn permit(limiter: &Arc<Limiter>, request: Acquire, given_up: GivenUp) -> Option<Permit> {
    let mut acquire = pin!(limiter.acquire(request, |_| ()));
    let mut turns = 0;
    std::future::poll_fn(|context| {
        if let GivenUp::Waiting(most) = given_up {
            if turns >= most {
                return Poll::Ready(None);
            }
            context.waker().wake_by_ref();
        }
        turns += 1;
        let permit = acquire.as_mut().poll(context);
        permit.map(|permit| Some(permit.unwrap()))
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
    let mut policy = Policy::default();
    policy.limit_in_flight(1);
    let limiter = limiter_with(TimeSource::default(), policy);
    let service = Arc::new(Service {
        left: AtomicU64::new(100),
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
    let limits = limiter.view();
    assert_eq!((limits.in_flight, limits.waiting), (0, 0));
}

use GivenUp::{Never, Permitted, Sent, Waiting};
use Kind::{Low, New, Retry};

#[test]
fn no_wake_up_and_no_permit_is_lost_between_two_calls() {
    for given_up in [Never, Waiting(1), Waiting(2), Permitted, Sent] {
        let calls = [(New, given_up), (New, Never)];
        shuttle::check_dfs(move || run(&calls), Some(20_000));
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
