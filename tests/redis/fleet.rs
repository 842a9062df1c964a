//! Fleets of real processes that share a key and have no store, for two full windows in real time. Each
//! process is this program, started again. They take two minutes:
//! `cargo test --features redis-server --test redis fleet -- --ignored --nocapture`.

#![allow(clippy::print_stdout, reason = "the figures are the result")]

use std::any::Any;
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use petstore_client::limits::{Limits, RedisStore};
use petstore_client::{Client, RequestOptions};
use petstore_mock::{Admission, Clock, MockServer, Plan, Seed};
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::KEY;
use super::server::Redis;

const MINUTE: Duration = Duration::from_secs(60);
/// The processes stop before the third window.
const LENGTH: Duration = Duration::from_secs(118);
/// The most refusals in a window, which get no key banned, and the least used part of the quota.
const MOST_REFUSED: usize = 10;
const LEAST_USED: f64 = 0.9;
const LATENCY: Duration = Duration::from_millis(90);
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

#[derive(Debug, Clone, Copy)]
struct Fleet {
    store: Store,
    limit: u32,
    processes: usize,
    tasks: usize,
}

impl Fleet {
    fn new(store: Store) -> Self {
        Self {
            store,
            limit: 1_000,
            processes: 8,
            tasks: 8,
        }
    }

    /// Runs the fleet. Returns what went wrong, if anything did.
    async fn run(self) -> Option<String> {
        let server = service(self.limit).await;
        let end = Instant::now() + LENGTH;
        let (port, store): (u16, Box<dyn Any>) = match self.store {
            Store::Refuses => {
                let socket = TcpSocket::new_v4().unwrap();
                socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
                (socket.local_addr().unwrap().port(), Box::new(socket))
            }
            Store::IsSilent => {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                (listener.local_addr().unwrap().port(), Box::new(listener))
            }
            Store::IsLost => {
                let redis = Redis::open().await;
                let port = redis.port();
                let lost = async move {
                    sleep_until(end - LENGTH + Duration::from_secs(62)).await;
                    drop(redis);
                };
                (port, Box::new(tokio::spawn(lost)))
            }
        };
        let children = self.run_on(&server, port, end).await;
        drop(store);
        assert_eq!(children, self.processes, "{self:?}: a process has failed");
        self.judge(&server)
    }

    /// Starts the processes, and waits for their end. Returns how many have succeeded.
    async fn run_on(self, server: &MockServer, store: u16, end: Instant) -> usize {
        let mut children = Vec::new();
        let pause = Duration::from_secs(2) / u32::try_from(self.processes).unwrap();
        for _ in 0..self.processes {
            children.push(start(server, store, self.tasks, end));
            sleep(pause).await;
        }
        let wait = |child: &mut Child| child.wait().unwrap().success();
        let ended = move || children.iter_mut().map(wait).filter(|is_ok| *is_ok).count();
        tokio::task::spawn_blocking(ended).await.unwrap()
    }

    fn judge(self, server: &MockServer) -> Option<String> {
        let second = minute() + MINUTE;
        let requests = server.requests(..);
        let window = |is_first: bool| {
            [Admission::Admitted, Admission::Refused, Admission::Banned].map(|admission| {
                let of_window = requests
                    .iter()
                    .filter(|one| (one.arrived < second) == is_first);
                of_window.filter(|one| one.admission == admission).count()
            })
        };
        let windows = [window(true), window(false)];
        let shown = format!("{self:?}: admitted, refused, banned {windows:?}");
        println!("{shown}");
        let used = windows.iter().map(|[admitted, ..]| admitted).sum::<usize>();
        let least = f64::from(2 * self.limit) * LEAST_USED;
        let is_fine = |[_, refused, banned]: &[usize; 3]| *banned == 0 && *refused <= MOST_REFUSED;
        let is_kept = windows.iter().all(is_fine) && used as f64 >= least;
        (!is_kept).then_some(shown)
    }
}

/// Starts a service at the beginning of a minute. Its journal holds all requests of the test.
async fn service(per_minute: u32) -> MockServer {
    let server = MockServer::builder()
        .key(KEY, Plan::enterprise(per_minute, 100_000))
        .clock(Clock::scaled(minute(), 1.0))
        .journal(20_000)
        .seed(Seed::none())
        .start()
        .await
        .unwrap();
    server.faults().on_all().delay(LATENCY).detach();
    server
}

/// When the first window begins, on the service's clock.
fn minute() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
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
    let small = Fleet {
        limit: 300,
        processes: 16,
        tasks: 4,
        ..Fleet::new(Store::Refuses)
    };
    let [refuses, silent, lost] = [Store::Refuses, Store::IsSilent, Store::IsLost].map(Fleet::new);
    let broken = join_all([refuses, silent, lost, small].map(Fleet::run)).await;
    let broken: Vec<_> = broken.into_iter().flatten().collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
