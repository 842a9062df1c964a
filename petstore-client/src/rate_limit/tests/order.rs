//! Tests of the order of responses.

use proptest::collection::vec;
use proptest::prelude::*;

use super::story::{Sent, Story, reading};
use crate::cases::cases;
use crate::rate_limit::RateLimits;

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
