//! Tests of the order of responses and of queued calls.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::hostile_headers::limiter;
use super::story::{Sent, Story, reading};
use crate::cases::cases;
use crate::clock;
use crate::rate_limit::{Acquire, Policy, Priority, RateLimits};

fn limited_to(most: u32) -> Policy {
    let mut policy = Policy::default();
    policy.limit_in_flight(most);
    policy
}

/// The response to one request of a burst: what is left, the reset, and the wait if it is a 429.
type Said = (u64, i64, Option<i64>);

/// Generates the responses to a burst, in one window or across its end, the same in another order, and what was
/// left before.
fn burst() -> impl Strategy<Value = (u64, Vec<Said>, Vec<Said>)> {
    let refusals = vec(option(0.2, 1..100_i64), 1..30);
    (refusals, 0..30_u64, 31..60_u64).prop_flat_map(|(waits, next_window, left)| {
        let said = (0..).zip(waits).map(move |(request, wait)| {
            if request < next_window {
                (left - 1 - request, 60, wait)
            } else {
                (59 - (request - next_window), 120, wait)
            }
        });
        let said: Vec<_> = said.collect();
        (Just(left), Just(said.clone()), Just(said).prop_shuffle())
    })
}

fn option<S: Strategy>(probability: f64, strategy: S) -> impl Strategy<Value = Option<S::Value>> {
    proptest::option::weighted(probability, strategy)
}

/// Records responses to requests that were in flight together. Returns what is known then.
fn record(left: u64, burst: &[Said]) -> RateLimits {
    let mut story = Story::with_window(60, left);
    let sent: Vec<Sent> = burst.iter().map(|_| story.send_anyway()).collect();
    story.at(59);
    for (request, (remaining, reset, wait)) in sent.iter().zip(burst) {
        let status = if wait.is_some() { 429 } else { 200 };
        story.respond(*request, status, reading(60, *remaining, *reset), *wait);
    }
    story.limits()
}

// This does not hold if responses describe two quotas in turn. A response then also counts against the other
// quota, if that one is already known. So the order matters, but it can only lower what is left.
proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn the_same_answers_in_any_order_leave_the_same_state((left, one, other) in burst()) {
        prop_assert_eq!(record(left, &one), record(left, &other));
    }
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

/// Generates calls: their priorities, and when they give up.
fn calls() -> impl Strategy<Value = Vec<(Priority, GivesUp)>> {
    let gives_up = prop_oneof![
        3 => Just(GivesUp::Never),
        1 => Just(GivesUp::Waiting),
        1 => Just(GivesUp::Granted),
    ];
    let priority = prop_oneof![Just(Priority::Normal), Just(Priority::Low)];
    vec((priority, gives_up), 1..30)
}

/// Lets the calls send one at a time. Returns their order.
fn stand_in_line(calls: &[(Priority, GivesUp)]) -> Vec<usize> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    let _entered = runtime.enter();
    let limiter = limiter(limited_to(1));
    let acquire = |priority| {
        let request = Acquire {
            place: None,
            priority,
            max_wait: Duration::from_secs(3_600),
            deadline: clock::now() + Duration::from_secs(3_600),
            forced: false,
            lease: Duration::from_secs(30),
        };
        Box::pin(limiter.acquire(request, |_| ()))
    };
    let Poll::Ready(Ok(mut permit)) = poll(&mut acquire(Priority::Normal), &Arc::default()) else {
        panic!("nothing is known: the first goes")
    };
    let bells: Vec<_> = calls.iter().map(|_| Arc::new(Bell::default())).collect();
    let begin = |(bell, (priority, _)): (&Arc<Bell>, &(Priority, GivesUp))| {
        let mut call = acquire(*priority);
        assert!(poll(&mut call, bell).is_pending());
        Some(call)
    };
    let mut waiting: Vec<_> = bells.iter().zip(calls).map(begin).collect();
    for (call, (_, gives_up)) in waiting.iter_mut().zip(calls) {
        if *gives_up == GivesUp::Waiting {
            *call = None;
        }
    }
    let mut order = Vec::new();
    loop {
        drop(permit);
        let rung = |number: usize| bells[number].0.swap(0, Ordering::Relaxed) > 0;
        let granted = loop {
            let next = (0..calls.len()).find(|&number| waiting[number].is_some() && rung(number));
            let Some(next) = next else { break None };
            if calls[next].1 == GivesUp::Granted {
                waiting[next] = None;
                continue;
            }
            let mut call = waiting[next].take().unwrap();
            let Poll::Ready(Ok(granted)) = poll(&mut call, &bells[next]) else {
                panic!("{next} woke in vain")
            };
            order.push(next);
            break Some(granted);
        };
        let Some(granted) = granted else { break };
        permit = granted;
    }
    let limits = limiter.view();
    assert_eq!((limits.in_flight, limits.waiting), (0, 0));
    order
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn calls_go_in_their_order_and_low_priority_goes_last(calls in calls()) {
        let calls = &calls[..];
        let stay = |priority| {
            let stays = (priority, GivesUp::Never);
            (0..calls.len()).filter(move |&number| calls[number] == stays)
        };
        let expected: Vec<_> = stay(Priority::Normal).chain(stay(Priority::Low)).collect();
        prop_assert_eq!(stand_in_line(calls), expected);
    }
}
