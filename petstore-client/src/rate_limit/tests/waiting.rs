//! Tests of waiting calls, in paused time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::time::timeout;

use crate::clock;
use crate::rate_limit::limiter::{Acquire, Limiter, Permit, Wait};
use crate::rate_limit::quota::policy::Policy;
use crate::rate_limit::shared::exchange::Host as _;
use crate::rate_limit::time::TimeSource;
use crate::rate_limit::view::{Plan, Priority, WaitReason};

const LEASE: Duration = Duration::from_secs(30);

/// The request of a call that waits for an hour at most.
pub(crate) fn acquire() -> Acquire {
    let latest = clock::now() + Duration::from_secs(3_600);
    let (priority, policy) = (Priority::Normal, Policy::default());
    Acquire {
        place: None,
        priority,
        policy,
        latest,
        forced: false,
        lease: LEASE,
    }
}

fn low() -> Acquire {
    Acquire {
        priority: Priority::Low,
        ..acquire()
    }
}

fn ignore(_: Wait) {}

fn answer(permit: Permit<'_>, status: u16, lines: &[(&'static str, &str)]) {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.insert(*name, HeaderValue::from_str(value).unwrap());
    }
    permit.observe(StatusCode::from_u16(status).unwrap(), &headers);
}

/// A limiter whose quota is exhausted for ten seconds.
async fn used_up() -> Arc<Limiter> {
    let limiter = Limiter::new(TimeSource::default());
    let permit = limiter.acquire(acquire(), ignore).await.unwrap();
    let quota = [
        ("x-ratelimit-limit", "1"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "10"),
    ];
    answer(permit, 200, &quota);
    limiter
}

#[tokio::test(start_paused = true)]
async fn the_first_in_line_resets_its_timer_when_another_went_first() {
    let limiter = used_up().await;
    let start = clock::now();
    // It runs in a separate task, so that only its own waker can wake it.
    let behind = Arc::clone(&limiter);
    let waiting = tokio::spawn(async move {
        drop(behind.acquire(low(), ignore).await.unwrap());
        clock::now() - start
    });
    // Another call arrives just as the window opens, sends the probe, and is refused for thirty
    // seconds after the waiting call's timer has fired.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let permit = limiter.acquire(acquire(), ignore).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    answer(permit, 429, &[("retry-after", "30")]);
    let waited = timeout(Duration::from_secs(600), waiting)
        .await
        .unwrap()
        .unwrap();
    assert!(waited >= Duration::from_secs(41), "{waited:?}");
    assert!(waited < Duration::from_secs(42), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn the_next_in_line_takes_the_timer_over_from_one_that_leaves() {
    let limiter = used_up().await;
    let start = clock::now();
    let leaving = timeout(Duration::from_secs(5), limiter.acquire(acquire(), ignore));
    let staying = limiter.acquire(acquire(), ignore);
    let (left, stayed) = tokio::join!(leaving, staying);
    assert!(left.is_err());
    let _permit = stayed.unwrap();
    let waited = clock::now() - start;
    assert!((10..=12).contains(&waited.as_secs()), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn who_leaves_the_middle_of_the_line_no_longer_waits() {
    let limiter = used_up().await;
    let mut calls = [(); 3].map(|()| Some(Box::pin(limiter.acquire(acquire(), ignore))));
    for call in calls.iter_mut().flatten() {
        assert!(start(call.as_mut()).is_pending());
    }
    calls[1] = None;
    assert_eq!(limiter.view(&Policy::default()).waiting, 2);
}

#[tokio::test(start_paused = true)]
async fn all_whose_wait_becomes_too_long_are_told_at_once() {
    let limiter = used_up().await;
    let start = clock::now();
    let patient = limiter.acquire(acquire(), ignore);
    let short = || Acquire {
        latest: clock::now() + Duration::from_secs(60),
        ..acquire()
    };
    // A call with an unlimited wait is in line before them.
    let calm = Acquire {
        latest: start + Duration::from_secs(100_000),
        ..acquire()
    };
    let calm = limiter.acquire(calm, ignore);
    let hasty: Vec<_> = (0..400).map(|_| limiter.acquire(short(), ignore)).collect();
    let asking = async {
        // The first call sends a probe after the reset, and learns that the quota per day is
        // exhausted.
        let permit = patient.await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        let day = [
            ("x-ratelimit-limit", "1000"),
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "40000"),
            ("retry-after", "40000"),
        ];
        answer(permit, 429, &day);
    };
    let told = async {
        let results = futures_util::future::join_all(hasty).await;
        assert!(results.iter().all(Result::is_err));
        clock::now() - start
    };
    let ((), calm, told) = tokio::join!(biased; asking, calm, told);
    assert!(told < Duration::from_millis(10_500), "{told:?}");
    assert!(calm.is_ok() && clock::now() - start > Duration::from_secs(40_000));
}

#[tokio::test(start_paused = true)]
async fn a_lost_request_that_may_have_used_the_plan_up_is_waited_out() {
    let limiter = Limiter::new(TimeSource::default());
    let plan = Policy {
        plan: Some(Plan::custom().per_minute(2)),
        ..Policy::default()
    };
    let request = || Acquire {
        policy: plan,
        ..acquire()
    };
    answer(limiter.acquire(request(), ignore).await.unwrap(), 200, &[]);
    let lost = limiter.acquire(request(), ignore).await.unwrap();
    drop(lost);
    let start = clock::now();
    let third = timeout(Duration::from_secs(600), limiter.acquire(request(), ignore)).await;
    assert!(third.unwrap().is_ok());
    assert!(clock::now() - start <= Duration::from_secs(62));
}

#[tokio::test(start_paused = true)]
async fn a_late_call_does_not_pass_those_who_wait() {
    let limiter = used_up().await;
    let order = std::cell::RefCell::new(Vec::new());
    let call = async |name| {
        let permit = limiter.acquire(acquire(), ignore).await.unwrap();
        order.borrow_mut().push(name);
        answer(permit, 200, &[]);
    };
    let late = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        call("late").await;
    };
    tokio::join!(biased; late, call("early"));
    assert_eq!(*order.borrow(), ["early", "late"]);
}

#[tokio::test(start_paused = true)]
async fn all_that_may_be_sent_go_when_the_window_opens() {
    let limiter = Limiter::new(TimeSource::default());
    let plan = Policy {
        plan: Some(Plan::custom().per_minute(2)),
        ..Policy::default()
    };
    let request = move || Acquire {
        policy: plan,
        ..acquire()
    };
    for _ in 0..2 {
        answer(limiter.acquire(request(), ignore).await.unwrap(), 200, &[]);
    }
    let both = [(); 2].map(|()| {
        let limiter = Arc::clone(&limiter);
        tokio::spawn(async move {
            drop(limiter.acquire(request(), ignore).await.unwrap());
        })
    });
    let both = timeout(
        Duration::from_secs(600),
        futures_util::future::join_all(both),
    )
    .await;
    assert!(both.is_ok(), "both go when the minute is over");
    assert_eq!(limiter.demand().1, plan, "updates of a record go by it");
}

#[tokio::test(start_paused = true)]
async fn what_was_not_sent_is_not_lost() {
    let limiter = Limiter::new(TimeSource::default());
    let [one, two] = [(); 2].map(|()| async {
        let permit = limiter.acquire(acquire(), ignore).await.unwrap();
        let place = permit.place();
        permit.not_sent();
        place
    });
    assert!(one.await < two.await, "each has its own place");
    let limits = limiter.view(&Policy::default());
    assert_eq!((limits.in_flight, limits.unresolved), (0, 0));
}

/// Starts a call by a single poll.
fn start<F: Future>(call: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
    call.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_not_run_loses_its_grant_after_a_second() {
    let limiter = used_up().await;
    let began = clock::now();
    let mut stopped = Box::pin(limiter.acquire(acquire(), ignore));
    assert!(start(stopped.as_mut()).is_pending());
    let behind = limiter.acquire(acquire(), ignore).await.unwrap();
    let waited = clock::now() - began;
    assert!((10..=13).contains(&waited.as_secs()), "{waited:?}");
    answer(behind, 200, &[]);
    // Its grant has lapsed, so it is in the queue again.
    answer(stopped.await.unwrap(), 200, &[]);
    assert_eq!(limiter.view(&Policy::default()).in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_does_not_run_counts_as_lost_after_its_lease() {
    let limiter = Limiter::new(TimeSource::default());
    let short = Acquire {
        lease: Duration::from_millis(5_500),
        ..acquire()
    };
    let probe = limiter.acquire(short, ignore).await.unwrap();
    let began = clock::now();
    let next = limiter.acquire(acquire(), ignore).await.unwrap();
    assert_eq!(clock::now() - began, Duration::from_millis(5_500));
    let limits = limiter.view(&Policy::default());
    assert_eq!((limits.in_flight, limits.unresolved), (1, 1));
    drop(probe);
    next.not_sent();
    assert_eq!(
        limiter.view(&Policy::default()).unresolved,
        1,
        "it is lost only once"
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_reported_after_a_second_and_a_block_at_once() {
    let limiter = Limiter::new(TimeSource::default());
    let probe = limiter.acquire(acquire(), ignore).await.unwrap();
    let reports = std::sync::Mutex::new(Vec::new());
    let began = clock::now();
    let report = |wait: Wait| {
        reports
            .lock()
            .unwrap()
            .push((wait.reason, wait.blocked.is_some(), began.elapsed()));
    };
    let waiting = limiter.acquire(acquire(), report);
    let probing = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        answer(probe, 429, &[("retry-after", "30")]);
    };
    drop(tokio::join!(waiting, probing).0.unwrap());
    let reports = reports.into_inner().unwrap();
    assert_eq!(reports.len(), 2, "{reports:?}");
    assert_eq!((reports[0].0, reports[0].1), (WaitReason::Probe, false));
    assert!(reports[0].2 >= Duration::from_secs(1) && reports[0].2 < Duration::from_secs(2));
    assert_eq!((reports[1].0, reports[1].1), (WaitReason::Blocked, true));
    assert_eq!(reports[1].2.as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_a_person_asks_for_is_sent_whatever_is_known() {
    let limiter = used_up().await;
    answer(
        limiter.acquire(acquire(), ignore).await.unwrap(),
        429,
        &[("retry-after", "3000")],
    );
    let began = clock::now();
    let forced = limiter
        .acquire(
            Acquire {
                forced: true,
                ..acquire()
            },
            ignore,
        )
        .await
        .unwrap();
    assert_eq!(clock::now(), began);
    answer(forced, 200, &[]);
    assert_eq!(
        limiter.view(&Policy::default()).blocked,
        None,
        "the service has let it in"
    );
}

#[tokio::test(start_paused = true)]
async fn a_retry_goes_before_those_who_came_later() {
    let limiter = used_up().await;
    let retry = limiter.acquire(
        Acquire {
            place: Some(0),
            ..acquire()
        },
        ignore,
    );
    let order = std::cell::RefCell::new(Vec::new());
    let newcomer = async {
        answer(limiter.acquire(acquire(), ignore).await.unwrap(), 200, &[]);
        order.borrow_mut().push("newcomer");
    };
    let retry = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        answer(retry.await.unwrap(), 200, &[]);
        order.borrow_mut().push("retry");
    };
    tokio::join!(biased; newcomer, retry);
    assert_eq!(*order.borrow(), ["retry", "newcomer"]);
}

#[tokio::test(start_paused = true)]
async fn requests_in_flight_are_still_counted_after_all_is_forgotten() {
    let limiter = Limiter::new(TimeSource::default());
    let first = limiter.acquire(acquire(), ignore).await.unwrap();
    limiter.forget().await.unwrap();
    let second = limiter.acquire(acquire(), ignore).await.unwrap();
    assert_eq!(limiter.view(&Policy::default()).in_flight, 2);
    drop(first);
    let known = limiter.view(&Policy::default());
    assert_eq!((known.in_flight, known.unresolved), (1, 1));
    second.not_sent();
    assert_eq!(limiter.view(&Policy::default()).in_flight, 0);
}

/// `cargo test --release -p petstore-client --lib cost_of -- --ignored --nocapture`
#[tokio::test]
#[ignore = "meant for release: it prints the cost of acquiring and of a response"]
async fn cost_of_a_permit() {
    const ROUNDS: u32 = 1_000_000;
    let limiter = Limiter::new(TimeSource::default());
    let million = [
        ("x-ratelimit-limit", "1000000"),
        ("x-ratelimit-remaining", "999999"),
        ("x-ratelimit-reset", "60"),
    ];
    answer(
        limiter.acquire(acquire(), ignore).await.unwrap(),
        200,
        &million,
    );
    for in_flight in [0, 1, 64, 1_024] {
        let mut permits = Vec::new();
        for _ in 0..in_flight {
            permits.push(limiter.acquire(acquire(), ignore).await.unwrap());
        }
        let began = clock::now();
        let request = acquire();
        for _ in 0..ROUNDS {
            limiter.acquire(request, ignore).await.unwrap().not_sent();
        }
        let released = began.elapsed() / ROUNDS;
        println!("acquire and release with {in_flight} in flight: {released:?}");
        assert!(released < Duration::from_micros(5), "{released:?}");
        permits.into_iter().for_each(Permit::not_sent);
    }
}

/// Returns a limiter on a simulated machine, and the seconds for which that machine was suspended.
fn suspendable() -> (Arc<Limiter>, Arc<AtomicU64>) {
    let suspended = Arc::new(AtomicU64::new(0));
    let seconds = Arc::clone(&suspended);
    let source =
        TimeSource::of_machine(move || Duration::from_secs(seconds.load(Ordering::Relaxed)));
    (Limiter::new(source), suspended)
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_was_suspended_goes_on_with_the_next_call() {
    for (reset, length) in [("50", 60), ("80000", 25 * 3_600)] {
        for is_waiting in [false, true] {
            let (limiter, suspended) = suspendable();
            let quota = [
                ("x-ratelimit-limit", "1000"),
                ("x-ratelimit-remaining", "0"),
                ("x-ratelimit-reset", reset),
            ];
            let first = limiter.acquire(acquire(), ignore).await.unwrap();
            answer(first, 200, &quota);
            let hasty = Acquire {
                latest: clock::now() + Duration::from_secs(20),
                ..acquire()
            };
            let blocked = limiter.acquire(hasty, ignore).await;
            assert!(blocked.is_err(), "{reset}");
            let patient = Acquire {
                latest: clock::now() + Duration::from_secs(100_000),
                ..acquire()
            };
            let suspend = async {
                tokio::time::sleep(Duration::from_secs(7)).await;
                suspended.store(length, Ordering::Relaxed);
                clock::now()
            };
            let (resumed, permit) = if is_waiting {
                tokio::join!(suspend, limiter.acquire(patient, ignore))
            } else {
                (suspend.await, limiter.acquire(patient, ignore).await)
            };
            let took = clock::now() - resumed;
            let most = Duration::from_secs(if is_waiting { 5 } else { 0 });
            assert!(permit.is_ok() && took <= most, "{reset}: {took:?}");
            let other = limiter.view(&Policy::default()).wait_reason;
            assert_eq!(other, Some(WaitReason::Probe), "{reset}");
        }
    }
}
