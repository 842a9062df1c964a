//! The timer of the first in line, in paused time.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::time::timeout;

use super::{Gate, Lane, Permit, Wish};
use crate::clock;
use crate::quota::Policy;

fn wish(lane: Lane) -> Wish {
    let latest = clock::now() + Duration::from_secs(3_600);
    Wish { number: None, lane, policy: Policy::default(), latest }
}

fn answer(permit: Permit<'_>, status: u16, lines: &[(&'static str, &str)]) {
    let mut permit = permit;
    permit.sent();
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.insert(*name, HeaderValue::from_str(value).unwrap());
    }
    permit.observe(StatusCode::from_u16(status).unwrap(), &headers);
}

/// A gate whose quota is used up for ten seconds.
async fn used_up() -> Gate {
    let gate = Gate::new(None);
    let permit = gate.acquire(wish(Lane::Interactive), |_| ()).await.unwrap();
    let quota =
        [("x-ratelimit-limit", "1"), ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "10")];
    answer(permit, 200, &quota);
    gate
}

#[tokio::test(start_paused = true)]
async fn the_first_in_line_sets_its_timer_anew_where_another_went_first() {
    let gate = Arc::new(used_up().await);
    let start = clock::now();
    // A task of its own: only its own waker brings it back.
    let behind = Arc::clone(&gate);
    let waiting = tokio::spawn(async move {
        drop(behind.acquire(wish(Lane::Background), |_| ()).await.unwrap());
        clock::now() - start
    });
    // Another comes just as the window opens, goes ahead to ask, and is refused for thirty seconds
    // after the timer of the one that waits has rung.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let permit = gate.acquire(wish(Lane::Interactive), |_| ()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    answer(permit, 429, &[("retry-after", "30")]);
    let waited = timeout(Duration::from_secs(600), waiting).await.unwrap().unwrap();
    assert!(waited >= Duration::from_secs(41), "{waited:?}");
    assert!(waited < Duration::from_secs(42), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn the_next_in_line_takes_the_timer_over_from_one_that_leaves() {
    let gate = used_up().await;
    let start = clock::now();
    let leaving = timeout(Duration::from_secs(5), gate.acquire(wish(Lane::Interactive), |_| ()));
    let staying = gate.acquire(wish(Lane::Interactive), |_| ());
    let (left, stayed) = tokio::join!(leaving, staying);
    assert!(left.is_err());
    let _permit = stayed.unwrap();
    let waited = clock::now() - start;
    assert!((10..=12).contains(&waited.as_secs()), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn all_whose_wait_becomes_too_long_are_told_at_once() {
    let gate = used_up().await;
    let start = clock::now();
    let patient = gate.acquire(wish(Lane::Interactive), |_| ());
    let short =
        || Wish { latest: clock::now() + Duration::from_secs(60), ..wish(Lane::Interactive) };
    // One that waits for as long as it takes stands before them.
    let calm = Wish { latest: start + Duration::from_secs(100_000), ..wish(Lane::Interactive) };
    let calm = gate.acquire(calm, |_| ());
    let hasty: Vec<_> = (0..400).map(|_| gate.acquire(short(), |_| ())).collect();
    let asking = async {
        // The first in line asks after the reset, and learns that the day is used up.
        let permit = patient.await.unwrap();
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
    assert!(told < Duration::from_secs(13), "{told:?}");
    assert!(calm.is_ok() && clock::now() - start > Duration::from_secs(40_000));
}

#[tokio::test(start_paused = true)]
async fn a_lost_request_that_may_have_used_the_plan_up_is_waited_out() {
    let gate = Gate::new(None);
    let plan = Policy { plan: Some((2, 100)), ..Policy::default() };
    let wish = || Wish { policy: plan, ..wish(Lane::Interactive) };
    answer(gate.acquire(wish(), |_| ()).await.unwrap(), 200, &[]);
    let mut lost = gate.acquire(wish(), |_| ()).await.unwrap();
    lost.sent();
    drop(lost);
    let start = clock::now();
    let third = timeout(Duration::from_secs(600), gate.acquire(wish(), |_| ())).await;
    assert!(third.unwrap().is_ok());
    assert!(clock::now() - start <= Duration::from_secs(62));
}

#[tokio::test(start_paused = true)]
async fn one_that_comes_as_the_window_opens_does_not_pass_those_who_wait() {
    let gate = used_up().await;
    let order = std::cell::RefCell::new(Vec::new());
    let call = async |name| {
        let permit = gate.acquire(wish(Lane::Interactive), |_| ()).await.unwrap();
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
async fn the_first_in_line_takes_along_all_that_may_go_with_it() {
    let gate = Arc::new(Gate::new(None));
    let plan = Policy { plan: Some((2, 100)), ..Policy::default() };
    let wish = move || Wish { policy: plan, ..wish(Lane::Interactive) };
    for _ in 0..2 {
        answer(gate.acquire(wish(), |_| ()).await.unwrap(), 200, &[]);
    }
    let both = [(); 2].map(|()| {
        let gate = Arc::clone(&gate);
        // What it sends is never answered.
        tokio::spawn(async move {
            Box::leak(Box::new(gate.acquire(wish(), |_| ()).await));
        })
    });
    let both = timeout(Duration::from_secs(600), futures_util::future::join_all(both)).await;
    assert!(both.is_ok(), "both go when the minute is over");
}

#[tokio::test(start_paused = true)]
async fn what_was_not_sent_is_not_lost() {
    let gate = Gate::new(None);
    drop(gate.acquire(wish(Lane::Interactive), |_| ()).await.unwrap());
    let mut permit = gate.acquire(wish(Lane::Interactive), |_| ()).await.unwrap();
    permit.sent();
    permit.never_left();
    let limits = gate.snapshot(&Policy::default());
    assert_eq!((limits.in_flight, limits.unsettled), (0, 0));
}
