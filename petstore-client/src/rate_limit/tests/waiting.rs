//! Stories of waiting calls, in paused time.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::time::{sleep, timeout};

use crate::clock;
use crate::rate_limit::limiter::{Acquire, Limiter, Permit, Wait};
use crate::rate_limit::limiter_clock::{LimiterClock, TimeSource};
use crate::rate_limit::policy::Policy;
use crate::rate_limit::store::KeyStore;
use crate::rate_limit::store::simulated::SharedLedger;
use crate::rate_limit::view::{Priority, WaitReason};

const HOUR: Duration = Duration::from_secs(3_600);

/// The request of a call that waits for an hour at most.
pub(crate) fn acquire() -> Acquire {
    Acquire {
        place: None,
        priority: Priority::Normal,
        max_wait: HOUR,
        deadline: clock::now() + 1_000 * HOUR,
        forced: false,
        lease: Duration::from_secs(30),
    }
}

fn low() -> Acquire {
    Acquire {
        priority: Priority::Low,
        ..acquire()
    }
}

fn within(max_wait: Duration) -> Acquire {
    Acquire {
        max_wait,
        ..acquire()
    }
}

fn forced() -> Acquire {
    Acquire {
        forced: true,
        ..acquire()
    }
}

/// Returns the limiter of a lone process.
pub(crate) fn limiter_with(time: TimeSource, policy: Policy) -> Arc<Limiter> {
    let clock = Arc::new(LimiterClock::start(time));
    let store = KeyStore::Memory(Mutex::default());
    Limiter::new(clock, Arc::new(store), policy)
}

fn limiter() -> Arc<Limiter> {
    limiter_with(TimeSource::default(), Policy::default())
}

/// Returns a ledger, and the limiter of a process that is this far away from it.
fn far(round_trip: Duration) -> (SharedLedger, Arc<Limiter>) {
    far_with(round_trip, Policy::default())
}

fn far_with(round_trip: Duration, policy: Policy) -> (SharedLedger, Arc<Limiter>) {
    let clock = Arc::new(LimiterClock::start(TimeSource::default()));
    let shared = SharedLedger::new(Arc::clone(&clock));
    let store = KeyStore::Simulated(shared.store(round_trip, Arc::default()));
    let limiter = Limiter::new(clock, Arc::new(store), policy);
    (shared, limiter)
}

/// The request of a call that a person asked for, and that is sent now or not at all.
fn forced_now() -> Acquire {
    Acquire {
        max_wait: Duration::ZERO,
        ..forced()
    }
}

fn ignore(_: Wait) {}

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.insert(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn answer(permit: Permit, status: u16, lines: &[(&'static str, &str)]) {
    permit.observe(StatusCode::from_u16(status).unwrap(), &headers(lines));
}

/// Answers with a quota that resets after some seconds.
fn show(permit: Permit, [limit, remaining, reset]: [&str; 3]) {
    let lines = [
        ("x-ratelimit-limit", limit),
        ("x-ratelimit-remaining", remaining),
        ("x-ratelimit-reset", reset),
    ];
    answer(permit, 200, &lines);
}

async fn take(limiter: &Arc<Limiter>) -> Permit {
    limiter.acquire(acquire(), ignore).await.unwrap()
}

/// Returns a limiter whose quota is used up for ten seconds, and a second more.
async fn used_up() -> Arc<Limiter> {
    let limiter = limiter();
    show(take(&limiter).await, ["1", "0", "10"]);
    limiter
}

/// Starts a call by a single poll.
fn start<F: Future>(call: Pin<&mut F>) -> Poll<F::Output> {
    call.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_the_reset_and_a_second_more() {
    let limiter = used_up().await;
    let began = clock::now();
    let probe = take(&limiter).await;
    let waited = began.elapsed().as_millis();
    assert!((10_900..11_100).contains(&waited), "{waited}");
    assert!(probe.waited().as_millis().abs_diff(waited) <= 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_holds_up_nobody() {
    let limiter = used_up().await;
    let began = clock::now();
    let mut calls = [(); 3].map(|()| Some(Box::pin(limiter.acquire(acquire(), ignore))));
    for call in calls.iter_mut().flatten() {
        assert!(start(call.as_mut()).is_pending());
    }
    assert_eq!(limiter.view().waiting, 3);
    calls[1] = None;
    assert_eq!(limiter.view().waiting, 2);
    sleep(Duration::from_millis(11_100)).await;
    // The first one has got a permit that it has not taken.
    assert_eq!(limiter.view().in_flight, 1);
    calls[0] = None;
    drop(calls[2].take().unwrap().await.unwrap());
    assert_eq!(began.elapsed().as_secs(), 11);
}

#[tokio::test(start_paused = true)]
async fn all_whose_wait_becomes_too_long_are_told_at_once() {
    let limiter = used_up().await;
    let began = clock::now();
    // This call has the most patience, and is first.
    let calm = limiter.acquire(within(1_000 * HOUR), ignore);
    let hasty = (0..400).map(|_| limiter.acquire(within(Duration::from_secs(60)), ignore));
    let hasty = join_all(hasty);
    let refused = async {
        // The first call is refused: the day's quota is used up, too.
        let permit = calm.await.unwrap();
        sleep(Duration::from_millis(200)).await;
        answer(permit, 429, &[("retry-after", "40000")]);
    };
    let told = async {
        let results = hasty.await;
        assert!(results.iter().all(Result::is_err));
        began.elapsed()
    };
    let ((), told) = tokio::join!(refused, told);
    assert!(told < Duration::from_millis(11_500), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn max_wait_also_bounds_the_wait_for_the_first_answer() {
    let limiter = limiter();
    let probe = take(&limiter).await;
    let began = clock::now();
    let refused = limiter.acquire(within(Duration::ZERO), ignore).await;
    let refused = refused.err().unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO, "sent now or not at all");
    assert_eq!(refused.wait.unwrap().reason, WaitReason::Probe);
    let some = Duration::from_millis(300);
    let refused = limiter.acquire(within(some), ignore).await.err().unwrap();
    assert_eq!(refused.waited, some);
    show(probe, ["60", "59", "30"]);
    let permit = limiter.acquire(within(Duration::ZERO), ignore).await;
    permit.ok().unwrap().not_sent();
}

#[tokio::test(start_paused = true)]
async fn a_late_call_does_not_pass_those_who_wait_and_a_retry_does() {
    let limiter = used_up().await;
    let order = std::cell::RefCell::new(Vec::new());
    let call = async |name, request| {
        let permit = limiter.acquire(request, ignore).await.unwrap();
        order.borrow_mut().push(name);
        answer(permit, 200, &[]);
    };
    let retry = Acquire {
        place: Some(0),
        ..acquire()
    };
    let late = async {
        sleep(Duration::from_secs(10)).await;
        call("late", acquire()).await;
    };
    let retry = async {
        sleep(Duration::from_secs(5)).await;
        call("retry", retry).await;
    };
    tokio::join!(biased; late, call("low", low()), call("early", acquire()), retry);
    assert_eq!(*order.borrow(), ["retry", "early", "late", "low"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_polled_loses_its_permit_after_a_second() {
    let limiter = used_up().await;
    let began = clock::now();
    let mut stopped = Box::pin(limiter.acquire(acquire(), ignore));
    assert!(start(stopped.as_mut()).is_pending());
    let behind = take(&limiter).await;
    let waited = began.elapsed().as_secs();
    assert!((11..=14).contains(&waited), "{waited}");
    answer(behind, 200, &[]);
    // Its permit has lapsed, so it is in the queue again.
    answer(stopped.await.unwrap(), 200, &[]);
    assert_eq!(limiter.view().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_never_ends_is_lost_after_its_time_limit() {
    let limiter = limiter();
    show(take(&limiter).await, ["4", "3", "50"]);
    let short = Acquire {
        lease: Duration::from_millis(5_500),
        ..acquire()
    };
    let stuck = limiter.acquire(short, ignore).await.unwrap();
    let late = limiter.acquire(short, ignore).await.unwrap();
    assert_eq!(limiter.view().in_flight, 2);
    sleep(Duration::from_secs(6)).await;
    let limits = limiter.view();
    assert_eq!((limits.in_flight, limits.unresolved), (0, 2));
    drop(stuck);
    assert_eq!(limiter.view().unresolved, 2, "it is lost only once");
    answer(late, 429, &[("retry-after", "3000")]);
    assert!(limiter.view().blocked.is_some(), "a late 429 is obeyed");
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_reported_after_a_second_and_a_block_at_once() {
    let limiter = limiter();
    let probe = take(&limiter).await;
    let reports = std::sync::Mutex::new(Vec::new());
    let began = clock::now();
    let report = |wait: Wait| {
        let is_blocked = wait.blocked.is_some();
        reports
            .lock()
            .unwrap()
            .push((wait.reason, is_blocked, began.elapsed().as_secs()));
    };
    let waiting = limiter.acquire(acquire(), report);
    let probing = async {
        // Those that hang are followed by others, which wait for the same.
        let others: Vec<_> = join_all((0..4).map(|_| take(&limiter))).await;
        sleep(Duration::from_millis(2_500)).await;
        others.into_iter().for_each(Permit::not_sent);
        answer(probe, 429, &[("retry-after", "30")]);
    };
    let ((), waiting) = tokio::join!(biased; probing, waiting);
    drop(waiting.unwrap());
    let reports = reports.into_inner().unwrap();
    let reasons: Vec<_> = reports.iter().map(|report| report.0).collect();
    assert_eq!(
        reasons,
        [WaitReason::Probe, WaitReason::Blocked],
        "{reports:?}"
    );
    assert!(
        reports[0].2 >= 1 && !reports[0].1 && reports[1].1,
        "{reports:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_a_person_asks_for_is_sent_whatever_is_known() {
    let limiter = used_up().await;
    answer(take(&limiter).await, 429, &[("retry-after", "3000")]);
    let began = clock::now();
    let asked = limiter.acquire(forced(), ignore).await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    // Of several, one is sent.
    let refused = limiter.acquire(forced_now(), ignore).await.err().unwrap();
    assert_eq!(refused.wait.unwrap().reason, WaitReason::Blocked);
    answer(asked, 200, &[]);
    assert_eq!(limiter.view().blocked, None, "the service has let it in");
}

/// The exchange takes time, and the last answer still says how long to wait.
#[tokio::test(start_paused = true)]
async fn a_forced_request_waits_for_the_answer_of_a_far_store() {
    let (_, limiter) = far(Duration::from_millis(200));
    answer(take(&limiter).await, 429, &[("retry-after", "3000")]);
    let refused = limiter.acquire(within(Duration::ZERO), ignore).await;
    assert_eq!(
        refused.err().unwrap().wait.unwrap().reason,
        WaitReason::Blocked
    );
    // One that was dropped forces nothing for those that come later.
    let mut dropped = Box::pin(limiter.acquire(forced_now(), ignore));
    assert!(start(dropped.as_mut()).is_pending());
    drop(dropped);
    sleep(Duration::from_secs(1)).await;
    let refused = limiter.acquire(within(Duration::ZERO), ignore).await;
    assert!(refused.is_err());
    let asked = limiter.acquire(forced_now(), ignore).await;
    answer(asked.ok().unwrap(), 200, &[]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_an_earlier_question_refuses_no_forced_request() {
    let mut policy = Policy::default();
    policy.limit_in_flight(1);
    let (_, limiter) = far_with(Duration::from_millis(200), policy);
    answer(take(&limiter).await, 429, &[("retry-after", "3000")]);
    let patient = limiter.acquire(acquire(), ignore);
    let asked = async {
        sleep(Duration::from_millis(100)).await;
        limiter.acquire(forced_now(), ignore).await
    };
    tokio::select! {
        permit = asked => drop(permit.ok().unwrap()),
        _ = patient => panic!("sent in a block"),
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_dropped_call_has_forced_is_for_nobody_else() {
    let (_, limiter) = far(Duration::from_millis(200));
    answer(take(&limiter).await, 429, &[("retry-after", "3000")]);
    let patient = take(&limiter);
    let dropped = async {
        sleep(Duration::from_millis(500)).await;
        let asked = limiter.acquire(forced(), ignore);
        assert!(timeout(Duration::from_millis(100), asked).await.is_err());
    };
    let (permit, ()) = tokio::join!(patient, dropped);
    assert!(permit.waited() >= Duration::from_secs(3_000));
}

#[tokio::test(start_paused = true)]
async fn a_block_that_the_store_does_not_know_yet_is_forgotten_too() {
    let (_, limiter) = far(Duration::from_millis(1));
    answer(take(&limiter).await, 429, &[("retry-after", "3000")]);
    limiter.forget().await.unwrap();
    assert_eq!(limiter.view().blocked, None);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_was_suspended_goes_on_within_a_second() {
    for (reset, length) in [("50", 60), ("80000", 25 * 3_600)] {
        let suspended = Arc::new(AtomicU64::new(0));
        let seconds = Arc::clone(&suspended);
        let machine =
            TimeSource::of_machine(move || Duration::from_secs(seconds.load(Ordering::Relaxed)));
        let limiter = limiter_with(machine, Policy::default());
        show(take(&limiter).await, ["1000", "0", reset]);
        let suspend = async {
            sleep(Duration::from_secs(7)).await;
            suspended.store(length, Ordering::Relaxed);
            clock::now()
        };
        let patient = limiter.acquire(within(1_000 * HOUR), ignore);
        let (resumed, permit) = tokio::join!(suspend, patient);
        let took = resumed.elapsed();
        assert!(took <= Duration::from_secs(1), "{reset}: {took:?}");
        permit.ok().unwrap().not_sent();
    }
}

/// The store goes away and comes back while calls wait.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_is_reported_and_tried_each_second() {
    let (shared, limiter) = far(Duration::from_millis(1));
    show(take(&limiter).await, ["1000", "999", "50"]);
    sleep(Duration::from_secs(1)).await;
    let came = limiter.store_change();
    shared.set_down(true);
    show(take(&limiter).await, ["1000", "998", "50"]);
    let went = limiter.store_change();
    let status = limiter.store_status().unwrap();
    assert_eq!(status.problem.as_deref(), Some("it is down"));
    shared.set_down(false);
    let mut answered = 2;
    for _ in 0..20 {
        show(take(&limiter).await, ["1000", "990", "50"]);
        answered += 1;
        sleep(Duration::from_millis(200)).await;
    }
    assert!(came > 0 && went > came && limiter.store_change() > went);
    assert_eq!(limiter.store_status().unwrap().problem, None);
    limiter.synchronize().await;
    let limits = limiter.view();
    assert_eq!((limits.in_flight, limits.unresolved), (0, 0), "{answered}");
}
