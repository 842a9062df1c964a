//! Tests of the use of a quota: share, concurrency and priority.

use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::limits::{Limits, Priority};
use petstore_client::{Client, RequestOptions};
use petstore_mock::{MockServer, Plan};
use tokio::time::Instant;

use crate::client::kit::{builder, client, http, key, millis, mock, secs};
use crate::client::service::patient;
use crate::client::wire::{Act, Wire};

/// A service whose minute starts now.
async fn free() -> MockServer {
    mock(key(), Plan::Free).start().await.unwrap()
}

/// Sends concurrent calls. Returns the seconds at which they were answered, in order.
async fn at_once(client: &Client, count: usize) -> Vec<f64> {
    let start = Instant::now();
    let call = async || {
        client.pets().list().await.unwrap();
        start.elapsed().as_secs_f64()
    };
    let mut ends = join_all((0..count).map(|_| call())).await;
    ends.sort_by(f64::total_cmp);
    ends
}

#[tokio::test(start_paused = true)]
async fn two_programs_with_half_the_quota_each_use_almost_all() {
    let server = free().await;
    // The two clients use different host names, so that they do not share a limiter.
    let other = server.url().replace("127.0.0.1", "localhost");
    let one = patient(server.url())
        .limits(Limits::new().share(0.5))
        .build()
        .unwrap();
    let two = patient(&other)
        .limits(Limits::new().share(0.5))
        .build()
        .unwrap();
    let (first, second) = tokio::join!(at_once(&one, 90), at_once(&two, 90));
    for minute in 0..3 {
        let begin = 60.0 * f64::from(minute);
        let count = |ends: &[f64]| {
            let within = begin..begin + 60.0;
            ends.iter().filter(|end| within.contains(end)).count()
        };
        let used = [count(&first), count(&second)];
        // Each leaves a few requests to the other one, which it cannot see.
        assert!(used.iter().all(|used| *used <= 30), "{minute}: {used:?}");
        assert!(used.iter().sum::<usize>() >= 54, "{minute}: {used:?}");
    }
    assert_eq!(
        (
            one.limits().snapshot().throttled,
            two.limits().snapshot().throttled
        ),
        (0, 0)
    );
}

/// A service that answers after a second, with room for a thousand a minute.
fn slow() -> Wire {
    let quota = [
        ("X-RateLimit-Limit", "1000"),
        ("X-RateLimit-Remaining", "999"),
        ("X-RateLimit-Reset", "60"),
    ];
    Wire::start(move |_| Act::Later(secs(1), http(200, &quota, "[]")))
}

/// Makes calls at the same time, and returns how many were answered in each second.
async fn in_each_second(client: &Client, count: usize) -> Vec<usize> {
    let ends = at_once(client, count).await;
    let second = |end: &f64| Duration::from_secs_f64(end + 0.5).as_secs();
    let rounded: Vec<_> = ends.iter().map(second).collect();
    (1..=rounded[count - 1])
        .map(|at| rounded.iter().filter(|end| **end == at).count())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn at_most_an_eighth_of_what_is_left_is_in_flight() {
    let server = slow();
    let four = builder(&server.base())
        .limits(Limits::new().max_in_flight(4))
        .build()
        .unwrap();
    assert_eq!(in_each_second(&four, 13).await, [1, 4, 4, 4]);
    let server = slow();
    let client = client(&server.base());
    assert_eq!(in_each_second(&client, 150).await, [1, 124, 25]);
}

#[tokio::test(start_paused = true)]
async fn a_call_passes_a_hundred_of_low_priority() {
    let server = slow();
    let client = builder(&server.base())
        .limits(Limits::new().max_in_flight(1))
        .build()
        .unwrap();
    let waits = async |priority| {
        let options = RequestOptions::new().priority(priority);
        client
            .pets()
            .list()
            .options(&options)
            .with_meta()
            .await
            .unwrap()
            .meta
            .waited()
            .as_secs()
    };
    let hundred = join_all((0..100).map(|_| waits(Priority::Low)));
    let normal = async {
        tokio::time::sleep(millis(5_500)).await;
        waits(Priority::Normal).await
    };
    let (low, normal) = tokio::join!(hundred, normal);
    assert_eq!(normal, 0, "the one in flight came first, for half a second");
    // The calls go in order of arrival, except for the call with normal priority.
    let expected: Vec<_> = (0..=100).filter(|second| *second != 6).collect();
    assert!(
        low.iter().zip(&expected).all(|(a, b)| a.abs_diff(*b) <= 1),
        "{low:?}"
    );
}
