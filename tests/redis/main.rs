//! Limits that members share through a real Redis server, on a port and in a folder of its own:
//! `cargo test --features redis-server --test redis`, which needs `redis-server`.
//!
//! The server listens on several loopback addresses. Clients with different addresses simulate
//! processes, because those with the same address share a limiter.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod fleet;
mod server;

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use petstore_client::events::EventKind;
use petstore_client::limits::{Limits, RedisStore};
use petstore_client::{Client, RequestOptions};
use petstore_mock::{Admission, Clock, MockServer, Plan};
use rustix::process::Signal;
use tokio::time::Instant;

use server::{Redis, Security, far_away, slow_to_open};

const KEY: &str = "a-key-of-the-fleet";

type Problems = Arc<Mutex<Vec<Option<String>>>>;

/// A client, and its events about the store.
fn member(server: &MockServer, url: &str) -> (Client, Problems) {
    member_on(server, RedisStore::new(url).unwrap())
}

fn member_on(server: &MockServer, store: RedisStore) -> (Client, Problems) {
    let problems = Problems::default();
    let seen = Arc::clone(&problems);
    // That is long enough for the others' responses, and too short for the next window.
    let options = RequestOptions::new().max_wait(Duration::from_secs(5));
    let client = Client::builder(server.url())
        .api_key(KEY)
        .options(&options)
        .limits(Limits::new().store(store))
        .on_event(move |event| {
            if let EventKind::SharedStore(store) = event.kind {
                seen.lock().unwrap().push(store.problem.clone());
            }
        })
        .build()
        .unwrap();
    (client, problems)
}

/// A service at the beginning of a minute.
async fn mock(per_minute: u32) -> MockServer {
    let minute = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let builder = MockServer::builder().key(KEY, Plan::enterprise(per_minute, 100_000));
    builder
        .journal(20_000)
        // More than any test has in flight.
        .senders(256)
        .clock(Clock::starting_at(minute))
        .start()
        .await
        .unwrap()
}

/// Sends requests until one would have to wait for the next window. Returns their number.
async fn greedy(client: &Client, tasks: usize) -> u32 {
    let task = async || {
        let mut done = 0;
        while client.pets().list().limit(1).await.is_ok() {
            done += 1;
        }
        done
    };
    join_all((0..tasks).map(|_| task())).await.into_iter().sum()
}

/// Members that each send as fast as allowed, on separate threads and runtimes.
async fn together(count: u8, tasks: usize, per_minute: u32) {
    let (redis, server) = (Redis::open().await, mock(per_minute).await);
    let start = std::sync::Barrier::new(count.into());
    let run = &|number| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(async {
            let (client, problems) = member(&server, &redis.url(number));
            start.wait();
            let done = greedy(&client, tasks).await;
            // A member that ends without this is counted for another 5 s.
            client.limits().exchange().await;
            (done, problems.lock().unwrap().clone())
        })
    };
    let results: Results = tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (1..=count).map(|n| scope.spawn(move || run(n))).collect();
            let joined = threads.into_iter().map(|thread| thread.join().unwrap());
            joined.collect()
        })
    });
    assert_shared(&server, per_minute, &results);
}

/// What members have sent, and what they said of the store.
type Results = Vec<(u32, Vec<Option<String>>)>;

/// Fails unless members used at least 97 % of a limit, were never refused, and reached the store.
#[track_caller]
fn assert_shared(server: &MockServer, limit: u32, results: &Results) {
    assert_eq!(refused(server), 0, "{results:?}");
    let reached = results.iter().all(|(_, problems)| problems.is_empty());
    assert!(reached, "{results:?}");
    let sum: u32 = results.iter().map(|(done, _)| done).sum();
    assert!(sum >= limit * 97 / 100, "{results:?}");
    server.report().assert_compliant();
}

/// Returns how many requests were admitted, refused or refused during a ban.
fn count(server: &MockServer, kind: Admission) -> usize {
    let requests = server.requests(..);
    let of_kind = requests.iter().filter(|one| one.admission == kind);
    of_kind.count()
}

fn refused(server: &MockServer) -> usize {
    count(server, Admission::Refused) + count(server, Admission::Banned)
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_start_at_once_use_all_and_none_is_refused() {
    together(4, 16, 400).await;
    together(16, 16, 800).await;
    together(64, 1, 1_600).await;
}

#[tokio::test]
async fn a_slow_connection_is_waited_for() {
    let (redis, server) = (Redis::open().await, mock(1).await);
    let (first, _) = member(&server, &redis.url(1));
    first.pets().list().limit(1).await.unwrap();
    first.limits().exchange().await;
    let port = slow_to_open(redis.port(), Duration::from_millis(1_500)).await;
    let (second, problems) = member(&server, &format!("redis://127.0.0.1:{port}/0?member=2"));
    let error = second.pets().list().limit(1).await.unwrap_err();
    assert!(error.is_rate_limited() && error.attempts() == 0, "{error}");
    assert!(problems.lock().unwrap().is_empty(), "{problems:?}");
}

/// Four members with 16 tasks each send requests for most of a minute, through a server at this port.
async fn share(server: &MockServer, port: u16) -> Results {
    let end = Instant::now() + Duration::from_secs(56);
    let members = (1..=4).map(|member| {
        let url = format!("redis://127.0.0.1:{port}/0?member={member}");
        let (client, problems) = member_on(server, RedisStore::new(&url).unwrap());
        async move {
            let patient = RequestOptions::new().max_wait(Duration::from_secs(120));
            let client = client.with_options(&patient);
            let task = async || {
                let mut done = 0_u32;
                let list = || client.pets().list().limit(1).send();
                while let Ok(page) = tokio::time::timeout_at(end, list()).await {
                    page.unwrap();
                    done += 1;
                }
                done
            };
            let done = join_all((0..16).map(|_| task())).await;
            let problems = problems.lock().unwrap().clone();
            (done.into_iter().sum::<u32>(), problems)
        }
    });
    join_all(members).await
}

async fn share_from_far(delay: Duration) {
    const LIMIT: u32 = 1_000;

    let (redis, server) = (Redis::open().await, mock(LIMIT).await);
    let proxy = far_away(redis.port(), delay).await;
    assert_shared(&server, LIMIT, &share(&server, proxy).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_far_server_is_shared_to_the_last_request() {
    let delays = [20, 100, 250].map(|round_trip| Duration::from_millis(round_trip / 2));
    join_all(delays.map(share_from_far)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_stopped_for_20_s_costs_at_most_a_refusal() {
    const LIMIT: u32 = 1_000;

    let (redis, server) = (Redis::open().await, mock(LIMIT).await);
    let stop = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        redis.signal(Signal::STOP);
        tokio::time::sleep(Duration::from_secs(20)).await;
        redis.signal(Signal::CONT);
    };
    let (results, ()) = tokio::join!(share(&server, redis.port()), stop);
    assert!(refused(&server) <= 1, "{results:?}");
    for (_, problems) in &results {
        let is_away: Vec<_> = problems.iter().map(Option::is_some).collect();
        assert_eq!(is_away, [true, false], "{results:?}");
    }
    let done: u32 = results.iter().map(|(done, _)| done).sum();
    assert!(done >= LIMIT * 90 / 100, "{results:?}");
}

#[tokio::test]
async fn a_newcomer_knows_what_hundreds_of_reports_have_told() {
    let (redis, server) = (Redis::open().await, mock(700).await);
    let (first, _) = member(&server, &redis.url(1));
    for _ in 0..690 {
        first.pets().list().limit(1).await.unwrap();
    }
    first.limits().exchange().await;
    let length = redis.cli(&["XLEN", &redis.cli(&["KEYS", "*"])]);
    let length: u32 = length.parse().unwrap();
    assert!(length < 600, "{length} entries");
    let (newcomer, problems) = member(&server, &redis.url(2));
    assert_eq!(greedy(&newcomer, 1).await, 10);
    assert_eq!(refused(&server), 0);
    assert!(problems.lock().unwrap().is_empty(), "{problems:?}");
}

#[tokio::test]
async fn nothing_in_the_store_is_secret_or_kept_for_ever() {
    let (redis, server) = (Redis::open().await, mock(100).await);
    let (client, _) = member(&server, &redis.url(1));
    client.pets().list().limit(1).await.unwrap();
    client.limits().exchange().await;
    let name = redis.cli(&["KEYS", "*"]);
    assert_eq!(name.lines().count(), 1, "{name}");
    let all = name.clone() + &redis.cli(&["XRANGE", &name, "-", "+"]);
    assert!(!all.contains(KEY) && all.len() > 60, "{all}");
    let left: u64 = redis.cli(&["TTL", &name]).parse().unwrap();
    assert!((1..=27 * 3_600).contains(&left), "{left} s");
    client.limits().forget().await.unwrap();
    let (other, _) = member(&server, &redis.url(2));
    let limits = other.limits().exchange().await;
    assert!(limits.windows.is_empty(), "{limits:?}");
}

#[tokio::test]
async fn a_server_that_is_restarted_empty_costs_nothing_but_a_probe() {
    let (mut redis, server) = (Redis::open().await, mock(100_000).await);
    let (client, _) = member(&server, &redis.url(1));
    for round in 0..3 {
        join_all((0..50).map(|_| client.pets().list().limit(1).into_future())).await;
        redis.restart().await;
        client.pets().list().limit(1).await.unwrap();
        assert_eq!(client.limits().snapshot().throttled, 0, "{round}");
    }
    server.report().assert_compliant();
}

/// Uses a store as its only member, and returns its location as it is shown.
async fn share_alone(server: &MockServer, store: RedisStore) -> String {
    let (client, problems) = member_on(server, store);
    client.pets().list().limit(1).await.unwrap();
    let shared = client.limits().snapshot().shared.unwrap();
    assert_eq!((shared.holders, shared.problem), (1, None));
    assert!(problems.lock().unwrap().is_empty(), "{problems:?}");
    shared.location
}

#[tokio::test]
async fn a_password_is_used_and_never_repeated_in_an_error() {
    let redis = Redis::start(Security::Password("open-sesame")).await;
    let server = mock(100).await;
    let store = RedisStore::new(&redis.url(1)).unwrap();
    let location = share_alone(&server, store).await;
    assert!(!location.contains("open-sesame"), "{location}");
    let wrong = format!(
        "redis://:a-wrong-word@127.0.0.1:{}/0?member=2",
        redis.port()
    );
    let (client, problems) = member(&server, &wrong);
    client.pets().list().limit(1).await.unwrap();
    let problem = problems.lock().unwrap()[0].clone().unwrap();
    assert!(problem.to_lowercase().contains("password"), "{problem}");
    assert!(!problem.contains("a-wrong-word"), "{problem}");
}

#[tokio::test]
async fn tls_is_used_where_asked_and_its_certificate_is_checked() {
    let (redis, server) = (Redis::start(Security::Tls).await, mock(100).await);
    let url = redis.url(1);
    let store = || RedisStore::new(&url).unwrap();
    store().root_certificates("no certificate").unwrap_err();
    let trusting = store().root_certificates(redis.certificate()).unwrap();
    share_alone(&server, trusting).await;
    // The certificate is not trusted, so the call continues alone.
    let (client, problems) = member_on(&server, RedisStore::new(&format!("{url}/1")).unwrap());
    client.pets().list().await.unwrap();
    let problem = problems.lock().unwrap()[0].clone().unwrap();
    assert!(problem.to_lowercase().contains("certificate"), "{problem}");
}
