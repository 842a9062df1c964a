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
    let ((), results) = tokio::join!(biased; asking, futures_util::future::join_all(hasty));
    assert!(results.iter().all(Result::is_err));
    assert!(clock::now() - start < Duration::from_secs(13));
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
