//! Tests of the order of responses and of queued calls, with the real ledger and limiter.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::world::scenarios::check;
use super::world::setup::NOON;
use super::world::window::{MINUTE, SECOND};
use crate::clock;
use crate::rate_limit::quota::clock::{LocalTime, ServiceTime};
use crate::rate_limit::quota::decision::Decision;
use crate::rate_limit::quota::local::Local;
use crate::rate_limit::quota::outstanding::Reservation;
use crate::rate_limit::quota::reading::{Reading, ResponseHead};
use crate::rate_limit::{Acquire, Limiter, MaxInFlight, Policy, Priority, TimeSource};

const CASES: (u32, u64) = (200, 3);

/// The response to one request of a burst.
#[derive(Debug, Clone, Copy)]
struct Said {
    request: usize,
    status: u16,
    remaining: u64,
    reset: i64,
    wait: Option<u64>,
}

/// The responses to a burst, in one window or across its end, and the same in another order.
fn burst() -> impl Strategy<Value = (Vec<Said>, Vec<Said>)> {
    let refusals = vec(proptest::option::weighted(0.2, 1..100_u64), 1..30);
    (refusals, 0..30_usize, 31..60_u64).prop_flat_map(|(waits, next_window, left)| {
        let said = waits.into_iter().enumerate().map(move |(request, wait)| {
            let counted = if request < next_window {
                request
            } else {
                request - next_window
            };
            let window = i64::from(request >= next_window);
            Said {
                request,
                status: if wait.is_some() { 429 } else { 200 },
                remaining: if request < next_window { left } else { 60 } - 1 - counted as u64,
                reset: NOON + (1 + window) * MINUTE,
                wait,
            }
        });
        let said: Vec<_> = said.collect();
        (Just(said.clone()), Just(said).prop_shuffle())
    })
}

/// Records responses to requests that were in flight together. Returns the observable state.
fn record(all: &[Said]) -> (Vec<(u64, u64, ServiceTime)>, Decision, u64, u64) {
    let policy = Policy {
        max_in_flight: Some(MaxInFlight::new(100)),
        ..Policy::default()
    };
    let mut member = Local::new(LocalTime(0), ServiceTime(NOON));
    let head = |status, remaining, reset, wait: Option<u64>| ResponseHead {
        status,
        date: Some(ServiceTime(NOON + MINUTE - SECOND)),
        reading: Some(Reading {
            limit: 60,
            remaining,
            reset: ServiceTime(reset),
        }),
        retry_after: wait.map(Duration::from_secs),
    };
    // This is in the last second of the first window.
    let (start, now) = (LocalTime(0), LocalTime(SECOND / 10));
    let send = |member: &mut Local| match member.decide(start, &policy) {
        Decision::Send { probe } => {
            let request = member.reserve(start, probe, &policy);
            assert!(member.start(request, start, Duration::from_secs(30)));
            request
        }
        decision => panic!("all of the burst may be sent: {decision:?}"),
    };
    let probe = send(&mut member);
    member.record_response(probe, start, &head(200, 59, NOON + MINUTE, None));
    let requests: Vec<Reservation> = all.iter().map(|_| send(&mut member)).collect();
    for said in all {
        let head = head(said.status, said.remaining, said.reset, said.wait);
        member.record_response(requests[said.request], now, &head);
    }
    let windows = member
        .ledger()
        .windows()
        .iter()
        .map(|w| (w.limit(), w.remaining(), w.reset()))
        .collect();
    (
        windows,
        member.decide(now, &policy),
        member.in_flight(),
        member.throttled(),
    )
}

// This does not hold if responses describe two quotas in turn. A response then also counts against
// the other quota, if that one is already known. So the order matters, but it can only lower what
// is left.
#[test]
fn the_same_answers_in_any_order_leave_the_same_state() {
    check(burst(), CASES, |(one, other)| {
        prop_assert_eq!(record(&one), record(&other));
        Ok(())
    });
}

#[derive(Default)]
struct Bell(AtomicU64);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn poll<F: Future>(call: &mut Pin<Box<F>>, bell: &Arc<Bell>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(bell));
    call.as_mut().poll(&mut Context::from_waker(&waker))
}

/// When a waiting call is dropped.
#[derive(Debug, Clone, Copy, PartialEq)]
enum GivesUp {
    Never,
    Waiting,
    /// After it was granted a permit that it has not taken yet.
    Granted,
}

fn calls() -> impl Strategy<Value = Vec<(bool, GivesUp)>> {
    let gives_up = prop_oneof![
        3 => Just(GivesUp::Never),
        1 => Just(GivesUp::Waiting),
        1 => Just(GivesUp::Granted),
    ];
    vec((any::<bool>(), gives_up), 1..30)
}

/// Lets the calls send one at a time. Returns their order, and how many times a call was woken.
fn stand_in_line(calls: &[(bool, GivesUp)]) -> (Vec<usize>, u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let _entered = runtime.enter();
    let limiter = Limiter::new(TimeSource::default());
    let policy = Policy {
        max_in_flight: Some(MaxInFlight::new(1)),
        ..Policy::default()
    };
    let acquire = |priority| {
        let latest = clock::now() + Duration::from_secs(3_600);
        let request = Acquire {
            place: None,
            priority,
            policy,
            latest,
            forced: false,
            lease: Duration::from_secs(30),
        };
        limiter.acquire(request, |_| ())
    };
    let bells: Vec<_> = calls.iter().map(|_| Arc::new(Bell::default())).collect();
    let mut first = Box::pin(acquire(Priority::Normal));
    let Poll::Ready(Ok(mut permit)) = poll(&mut first, &Arc::default()) else {
        panic!("nothing is known: the first goes")
    };
    let mut waiting: Vec<_> = calls
        .iter()
        .enumerate()
        .map(|(number, (low, _))| {
            let priority = if *low {
                Priority::Low
            } else {
                Priority::Normal
            };
            let mut call = Box::pin(acquire(priority));
            assert!(poll(&mut call, &bells[number]).is_pending());
            Some(call)
        })
        .collect();
    let rung = |number: usize| bells[number].0.load(Ordering::Relaxed);
    for (number, (_, gives_up)) in calls.iter().enumerate() {
        if *gives_up == GivesUp::Waiting {
            waiting[number] = None;
        }
    }
    let mut order = Vec::new();
    loop {
        drop(permit);
        let next = loop {
            let next = (0..calls.len()).find(|&n| waiting[n].is_some() && rung(n) > 0);
            match next {
                Some(given_up) if calls[given_up].1 == GivesUp::Granted => waiting[given_up] = None,
                next => break next,
            }
        };
        let Some(next) = next else { break };
        let mut call = waiting[next].take().unwrap();
        let Poll::Ready(Ok(granted)) = poll(&mut call, &bells[next]) else {
            panic!("{next} woke in vain")
        };
        order.push(next);
        permit = granted;
    }
    let limits = limiter.view(&policy);
    assert_eq!((limits.in_flight, limits.waiting), (0, 0));
    (order, (0..calls.len()).map(rung).sum())
}

#[test]
fn calls_go_in_their_order_and_low_priority_goes_last() {
    check(calls(), CASES, |calls| {
        let (order, woken) = stand_in_line(&calls);
        let stay = |background| {
            let calls = calls.iter().enumerate();
            calls
                .filter(move |(_, call)| **call == (background, GivesUp::Never))
                .map(|(n, _)| n)
        };
        prop_assert_eq!(order, stay(false).chain(stay(true)).collect::<Vec<_>>());
        let granted = calls
            .iter()
            .filter(|(_, gives_up)| *gives_up != GivesUp::Waiting)
            .count();
        prop_assert!(
            woken <= granted as u64 + 1,
            "{} woken for {} grants",
            woken,
            granted
        );
        Ok(())
    });
}
