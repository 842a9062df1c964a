//! Tests of hostile headers: the limiter neither panics nor makes a call wait too long.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::clock;
use crate::properties::{check, hostile_answer};
use crate::rate_limit::store::KeyStore;
use crate::rate_limit::store::memory::MemoryStore;
use crate::rate_limit::time::Clock;
use crate::rate_limit::{Acquire, Limiter, Plan, Policy, Priority, TimeSource};

const MAX_WAIT: Duration = Duration::from_secs(120);

/// Creates a limiter of a lone process.
pub(super) fn limiter(policy: Policy) -> Arc<Limiter> {
    let clock = Arc::new(Clock::start(TimeSource::default()));
    let store = KeyStore::Memory(MemoryStore::new(Arc::clone(&clock)));
    Limiter::new(clock, Arc::new(store), policy)
}

/// Sends one request after another, and gives them these answers.
async fn all_waits_end_in_time(
    answers: Vec<(u16, HeaderMap)>,
    policy: Policy,
) -> Result<(), TestCaseError> {
    let limiter = limiter(policy);
    for (status, headers) in answers {
        let start = clock::now();
        let request = Acquire {
            place: None,
            priority: Priority::Normal,
            max_wait: MAX_WAIT,
            deadline: start + 2 * MAX_WAIT,
            forced: false,
            lease: Duration::from_secs(30),
        };
        let acquired = limiter.acquire(request, |_| ()).await;
        let waited = start.elapsed();
        let longest = MAX_WAIT + Duration::from_millis(1);
        prop_assert!(waited <= longest, "{:?}", waited);
        match acquired {
            Ok(permit) => {
                permit.observe(StatusCode::from_u16(status).unwrap(), &headers);
            }
            Err(refused) => {
                let remaining = refused.blocked.map(|blocked| blocked.remaining);
                let is_in_time = remaining.is_some_and(|left| waited + left <= MAX_WAIT);
                prop_assert!(!is_in_time, "failed although the block ends in time");
                tokio::time::advance(MAX_WAIT).await;
            }
        }
        limiter.view();
    }
    Ok(())
}

#[test]
fn no_headers_make_a_call_wait_longer_than_it_may() {
    let plan = option::of(Just(Plan::FREE));
    let cases = (vec(hostile_answer(), 1..20), plan);
    check(cases, (150, 5), |(answers, plan)| {
        let mut policy = Policy::default();
        policy.terms_mut().set_plan(plan);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(all_waits_end_in_time(answers, policy))
    });
}
