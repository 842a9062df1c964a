//! The order in which answers come back, and the one in which calls stand in line, on the real
//! state and the real gate.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::scenarios::check;
use super::setup::NOON;
use super::window::{MINUTE, SECOND};
use crate::clock;
use crate::gate::{Gate, Lane, Wish};
use crate::quota::{Head, Keeper, Local, Policy, Rate, Ticket, Time, Verdict};

const CASES: (u32, u64) = (200, 3);

/// What the service said to one request of a burst.
#[derive(Debug, Clone, Copy)]
struct Said {
    request: usize,
    status: u16,
    remaining: u64,
    reset: i64,
    wait: Option<u64>,
}

/// The answers to a burst on one window, or across the end of one, and the same in another order.
fn burst() -> impl Strategy<Value = (Vec<Said>, Vec<Said>)> {
    let refusals = vec(proptest::option::weighted(0.2, 1..100_u64), 1..30);
    (refusals, 0..30_usize, 31..60_u64).prop_flat_map(|(waits, next_window, left)| {
        let said = waits.into_iter().enumerate().map(move |(request, wait)| {
            let counted = if request < next_window { request } else { request - next_window };
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

/// Takes in answers to requests that were under way together; returns all that can be seen after.
fn take_in(all: &[Said]) -> (Vec<(u64, u64, Time)>, Verdict, u64, u64) {
    let policy = Policy { max_in_flight: Some(100), ..Policy::default() };
    let mut keeper = Keeper::new(Local(0), Time(NOON));
    let head = |status, remaining, reset, wait: Option<u64>| Head {
        status,
        date: Some(Time(NOON + MINUTE - SECOND)),
        rate: Some(Rate { limit: 60, remaining, reset: Time(reset) }),
        retry_after: wait.map(Duration::from_secs),
    };
    // In the last second of the first window.
    let (start, now) = (Local(0), Local(SECOND / 10));
    let grant = |keeper: &mut Keeper| match keeper.verdict(start, &policy) {
        Verdict::Go(pass) => keeper.grant(start, pass),
        held => panic!("all of the burst may go: {held:?}"),
    };
    let probe = grant(&mut keeper);
    let told = head(200, 59, NOON + MINUTE, None);
    keeper.answered(probe, start, start, &told, Duration::ZERO);
    let tickets: Vec<Ticket> = all.iter().map(|_| grant(&mut keeper)).collect();
    for said in all {
        let head = head(said.status, said.remaining, said.reset, said.wait);
        keeper.answered(tickets[said.request], start, now, &head, Duration::ZERO);
    }
    let state = &keeper.state;
    let accounts = state.accounts().iter().map(|a| (a.limit, a.remaining, a.reset)).collect();
    (accounts, keeper.verdict(now, &policy), state.reserved(), state.refusals)
}

// Not so where answers speak of two quotas in turn: each then counts against the other as well,
// unless the other was not known yet. That order can only make the gate believe in less.
#[test]
fn the_same_answers_in_any_order_leave_the_same_state() {
    check(burst(), CASES, |(one, other)| {
        prop_assert_eq!(take_in(&one), take_in(&other));
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

/// When a call that stands in line gives up.
#[derive(Debug, Clone, Copy, PartialEq)]
enum GivesUp {
    Never,
    Waiting,
    /// With a grant that it has not seen yet.
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

/// Lets all through, one at a time; returns in which order they went and how many were woken.
fn stand_in_line(calls: &[(bool, GivesUp)]) -> (Vec<usize>, u64) {
    let gate = Gate::new(None);
    let policy = Policy { max_in_flight: Some(1), ..Policy::default() };
    let wish = |lane| {
        let latest = clock::now() + Duration::from_secs(3_600);
        gate.acquire(Wish { number: None, lane, policy, latest }, |_| ())
    };
    let bells: Vec<_> = calls.iter().map(|_| Arc::new(Bell::default())).collect();
    let mut first = Box::pin(wish(Lane::Interactive));
    let Poll::Ready(Ok(mut permit)) = poll(&mut first, &Arc::default()) else {
        panic!("nothing is known: the first goes")
    };
    let mut waiting: Vec<_> = calls
        .iter()
        .enumerate()
        .map(|(number, (background, _))| {
            let lane = if *background { Lane::Background } else { Lane::Interactive };
            let mut call = Box::pin(wish(lane));
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
    let limits = gate.snapshot(&policy);
    assert_eq!((limits.in_flight, limits.waiting), (0, 0));
    (order, (0..calls.len()).map(rung).sum())
}

#[test]
fn calls_go_in_the_order_in_which_they_came_the_interactive_ones_first() {
    check(calls(), CASES, |calls| {
        let (order, woken) = stand_in_line(&calls);
        let stay = |background| {
            let calls = calls.iter().enumerate();
            calls.filter(move |(_, call)| **call == (background, GivesUp::Never)).map(|(n, _)| n)
        };
        prop_assert_eq!(order, stay(false).chain(stay(true)).collect::<Vec<_>>());
        let granted = calls.iter().filter(|(_, gives_up)| *gives_up != GivesUp::Waiting).count();
        prop_assert!(woken <= granted as u64 + 1, "{} woken for {} grants", woken, granted);
        Ok(())
    });
}
