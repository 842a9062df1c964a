//! Fleets of real processes that share a key and have no store, for two full windows in real time. Each
//! process is this program, started again. They take two minutes:
//! `cargo test --features redis-server --test redis fleet -- --ignored --nocapture`.

#![allow(clippy::print_stdout, reason = "the figures are the result")]

use std::any::Any;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::limits::{Limits, RedisStore};
use petstore_client::{Client, RequestOptions};
use petstore_mock::{Admission, MockServer};
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::server::Redis;
use super::{KEY, count, mock};

const MINUTE: Duration = Duration::from_secs(60);
/// The processes stop before the third window.
const LENGTH: Duration = Duration::from_secs(118);
/// The least used part of the quota.
const LEAST_USED: f64 = 0.9;
const INPUT: [&str; 4] = [
    "FLEET_SERVICE",
    "FLEET_STORE",
    "FLEET_TASKS",
    "FLEET_MILLIS",
];

#[tokio::test]
#[ignore = "what the other test starts, as processes of their own"]
#[expect(
    clippy::disallowed_methods,
    reason = "the test passes its input in variables"
)]
async fn a_process_of_a_fleet() {
    let [Ok(service), Ok(store), Ok(tasks), Ok(length)] = INPUT.map(std::env::var) else {
        return;
    };
    let end = Instant::now() + Duration::from_millis(length.parse().unwrap());
    let patient = RequestOptions::new()
        .max_wait(10 * MINUTE)
        .timeout(15 * MINUTE);
    let client = Client::builder(service)
        .api_key(KEY)
        .options(&patient)
        .limits(Limits::new().store(RedisStore::new(&store).unwrap()))
        .build()
        .unwrap();
    let task = async || {
        while let Ok(result) = timeout_at(end, client.pets().list().limit(1).send()).await {
            if result.is_err() {
                sleep(Duration::from_secs(1)).await;
            }
        }
    };
    join_all((0..tasks.parse().unwrap()).map(|_: usize| task())).await;
}

/// What keeps the processes of a fleet from sharing their limits.
#[derive(Debug, Clone, Copy)]
enum Store {
    /// It refuses connections.
    Refuses,
    /// It accepts connections and never answers.
    IsSilent,
    /// It is killed after 62 s, when the second window has begun.
    IsLost,
}

impl Store {
    /// Returns the port of a store, and what has to be kept for it.
    async fn open(self) -> (u16, Box<dyn Any>) {
        match self {
            Self::Refuses => {
                let socket = TcpSocket::new_v4().unwrap();
                socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
                (socket.local_addr().unwrap().port(), Box::new(socket))
            }
            Self::IsSilent => {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                (listener.local_addr().unwrap().port(), Box::new(listener))
            }
            Self::IsLost => {
                let redis = Redis::open().await;
                let (port, end) = (redis.port(), Instant::now() + Duration::from_secs(62));
                let lost = async move {
                    sleep_until(end).await;
                    drop(redis);
                };
                (port, Box::new(tokio::spawn(lost)))
            }
        }
    }
}

/// Runs a fleet. Returns what went wrong, if anything did.
async fn run(store: Store, per_minute: u32, processes: u32, tasks: usize) -> Option<String> {
    let server = mock(per_minute).await;
    let latency = Duration::from_millis(90);
    server.faults().on(..).delay(latency).detach();
    let end = Instant::now() + LENGTH;
    let (port, _kept) = store.open().await;
    let mut children = Vec::new();
    for _ in 0..processes {
        children.push(start(&server, port, tasks, end));
        sleep(Duration::from_secs(2) / processes).await;
    }
    sleep_until(end).await;
    for child in &mut children {
        assert!(child.wait().unwrap().success(), "{store:?}");
    }
    let kinds = [Admission::Admitted, Admission::Refused, Admission::Banned];
    let [admitted, refused, banned] = kinds.map(|kind| count(&server, kind));
    let shown = format!(
        "{store:?}, {processes} x {tasks} at {per_minute}: {admitted} admitted, {refused} refused, {banned} banned"
    );
    println!("{shown}");
    let used = admitted as f64 / f64::from(2 * per_minute);
    (banned > 0 || used < LEAST_USED).then_some(shown)
}

fn start(server: &MockServer, store: u16, tasks: usize, end: Instant) -> Child {
    let left = end.duration_since(Instant::now()).as_millis();
    let input = [
        server.url().to_string(),
        format!("redis://127.0.0.1:{store}"),
        tasks.to_string(),
        left.to_string(),
    ];
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "fleet::a_process_of_a_fleet", "--ignored"])
        .envs(INPUT.into_iter().zip(input))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes two minutes"]
async fn processes_that_cannot_share_do_not_ban_the_key() {
    let large = [Store::Refuses, Store::IsSilent, Store::IsLost].map(|it| run(it, 1_000, 8, 8));
    let (large, small) = tokio::join!(join_all(large), run(Store::Refuses, 300, 16, 4));
    let broken: Vec<_> = large.into_iter().chain([small]).flatten().collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
