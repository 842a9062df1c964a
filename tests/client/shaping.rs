//! How a quota is used: evenly or at once, in part, by how many at a time, and by whom first.

use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use petstore_client::{CallOptions, Client, ClientBuilder};
use petstore_mock::{Clock, MockServer, Plan};
use tokio::time::Instant;

use super::kit::{builder, http};
use super::wire::{Act, Wire};

/// A service whose minute begins now.
async fn free() -> MockServer {
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let builder = MockServer::builder().key("key", Plan::Free).clock(Clock::runtime(start));
    builder.start().await.unwrap()
}

fn patient(base: &str) -> ClientBuilder {
    let options =
        CallOptions::new().max_wait(Duration::from_secs(600)).timeout(Duration::from_secs(900));
    Client::builder(base).api_key("key").defaults(options)
}

/// Makes so many calls at once; returns when each was answered, in order, as seconds.
async fn at_once(client: &Client, count: usize) -> Vec<f64> {
    let start = Instant::now();
    let call = async || {
        client.pets().list().send().await.unwrap();
        start.elapsed().as_secs_f64()
    };
    let mut ends = join_all((0..count).map(|_| call())).await;
    ends.sort_by(f64::total_cmp);
    ends
}

#[tokio::test(start_paused = true)]
async fn pacing_spreads_a_minutes_requests_evenly_over_it() {
    let server = free().await;
    let client = patient(server.url()).pacing(true).build().unwrap();
    let ends = at_once(&client, 60).await;
    for pair in ends.windows(2) {
        assert!((0.9..1.2).contains(&(pair[1] - pair[0])), "{ends:?}");
    }
    assert_eq!(client.rate_limit().refusals, 0);
}

#[tokio::test(start_paused = true)]
async fn without_pacing_a_burst_that_fits_is_not_slowed() {
    let server = free().await;
    let client = patient(server.url()).build().unwrap();
    let ends = at_once(&client, 60).await;
    assert!(ends[59] < 1.0, "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn two_programs_with_half_the_quota_each_use_it_all_and_are_never_refused() {
    let server = free().await;
    // By two names, so that they do not know of each other.
    let other = server.url().replace("127.0.0.1", "localhost");
    let one = patient(server.url()).quota_share(0.5).build().unwrap();
    let two = patient(&other).quota_share(0.5).build().unwrap();
    let (first, second) = tokio::join!(at_once(&one, 90), at_once(&two, 90));
    for ends in [first, second] {
        for (window, ends) in ends.chunks(30).enumerate() {
            let begin = 60.0 * window as f64;
            assert!(ends.iter().all(|end| (begin..begin + 59.0).contains(end)), "{ends:?}");
        }
    }
    assert_eq!((one.rate_limit().refusals, two.rate_limit().refusals), (0, 0));
}

/// A service that answers after a second, with room for a thousand a minute.
async fn slow() -> Wire {
    let quota = [
        ("X-RateLimit-Limit", "1000"),
        ("X-RateLimit-Remaining", "999"),
        ("X-RateLimit-Reset", "60"),
    ];
    Wire::start(move |_| Act::Later(Duration::from_secs(1), http(200, &quota, "[]"))).await
}

/// Returns how many calls were answered in each second, of so many made at once.
async fn in_each_second(client: &Client, count: usize) -> Vec<usize> {
    let ends = at_once(client, count).await;
    let second = |end: &f64| Duration::from_secs_f64(end + 0.5).as_secs();
    let rounded: Vec<_> = ends.iter().map(second).collect();
    (1..=rounded[count - 1]).map(|at| rounded.iter().filter(|end| **end == at).count()).collect()
}

#[tokio::test(start_paused = true)]
async fn no_more_are_under_way_than_may_be() {
    let server = slow().await;
    let client = builder(&server.base()).max_in_flight(4).build().unwrap();
    assert_eq!(in_each_second(&client, 13).await, [1, 4, 4, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_tenth_of_the_limit_may_be_under_way_unless_set() {
    let server = slow().await;
    let client = builder(&server.base()).build().unwrap();
    assert_eq!(in_each_second(&client, 150).await, [1, 100, 49]);
}

#[tokio::test(start_paused = true)]
async fn an_interactive_call_passes_a_hundred_in_the_background() {
    let server = slow().await;
    let client = builder(&server.base()).max_in_flight(1).build().unwrap();
    let waits = async |background| {
        let options = CallOptions::new().background(background);
        client.pets().list().with(options).send().await.unwrap().waited().as_secs()
    };
    let hundred = join_all((0..100).map(|_| waits(true)));
    let interactive = async {
        tokio::time::sleep(Duration::from_millis(5_500)).await;
        waits(false).await
    };
    let (background, interactive) = tokio::join!(hundred, interactive);
    assert_eq!(interactive, 0, "the one that was under way came first, for half a second");
    // In order of arrival, but for the one that passed them.
    let expected: Vec<_> = (0..=100).filter(|second| *second != 6).collect();
    assert!(background.iter().zip(&expected).all(|(a, b)| a.abs_diff(*b) <= 1), "{background:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pace_holds_no_call_for_longer_than_it_may_wait() {
    let server = free().await;
    let hasty = CallOptions::new().max_wait(Duration::from_millis(100));
    let builder = Client::builder(server.url()).api_key("key").pacing(true).defaults(hasty);
    let ends = at_once(&builder.build().unwrap(), 3).await;
    assert!(ends[1] <= 0.11 && ends[2] <= 0.22, "{ends:?}");
}
