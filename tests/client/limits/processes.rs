//! Tests of processes that share a key and whose store is unreachable: real ones, which are this program,
//! started again, and simulated ones in paused time.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use petstore_client::limits::{Limits, RedisStore};
use petstore_client::{Client, RequestOptions};
use petstore_mock::{Admission, MockServer};
use tokio::net::TcpSocket;

use crate::client::kit::{KEY, millis, secs};
use crate::client::service::{self, keep_busy};

/// How long the processes send.
const LENGTH: Duration = secs(20);
const INPUT: [&str; 3] = ["FLEET_SERVICE", "FLEET_STORE", "FLEET_TASKS"];

#[tokio::test]
#[ignore = "what the next test starts, as processes of their own"]
#[expect(
    clippy::disallowed_methods,
    reason = "the test passes its input in variables"
)]
async fn a_process_that_cannot_reach_its_store() {
    let [Ok(service), Ok(store), Ok(tasks)] = INPUT.map(std::env::var) else {
        return;
    };
    let patient = RequestOptions::new().max_wait(secs(600)).timeout(secs(900));
    let client = Client::builder(service)
        .api_key(KEY)
        .options(&patient)
        .limits(Limits::new().store(RedisStore::new(&store).unwrap()))
        .build()
        .unwrap();
    keep_busy(&client, tasks.parse().unwrap(), LENGTH).await;
    let shared = client.limits().snapshot().shared.unwrap();
    assert!(shared.problem.is_some(), "{shared:?}");
}

/// An address that refuses connections while the socket is open.
fn refusing() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

fn start(server: &MockServer, store: SocketAddr, tasks: usize) -> Child {
    let input = [
        server.url().to_string(),
        format!("redis://{store}"),
        tasks.to_string(),
    ];
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "client::limits::processes::a_process_that_cannot_reach_its_store",
            "--ignored",
        ])
        .envs(INPUT.into_iter().zip(input))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn count(server: &MockServer, admission: Admission) -> usize {
    let requests = server.requests(..);
    let requests = requests.iter();
    requests.filter(|one| one.admission == admission).count()
}

/// Runs a fleet for a part of a minute. Returns how many requests were admitted.
async fn run(limit: u32, processes: usize, tasks: usize) -> usize {
    let server = service::start_with(KEY.to_owned(), limit, millis(90)).await;
    let (_socket, store) = refusing();
    let fleet: Vec<_> = (0..processes)
        .map(|_| start(&server, store, tasks))
        .collect();
    let ended = tokio::task::spawn_blocking(|| {
        let ended = fleet.into_iter().map(|mut process| process.wait().unwrap());
        ended.collect::<Vec<_>>()
    });
    let ended = ended.await.unwrap();
    assert!(ended.iter().all(ExitStatus::success), "{ended:?}");
    assert_eq!(count(&server, Admission::Banned), 0, "{limit} a minute");
    count(&server, Admission::Admitted)
}

#[tokio::test(flavor = "multi_thread")]
async fn real_processes_without_their_store_do_not_ban_the_key() {
    let (few, many) = tokio::join!(run(300, 4, 8), run(1_000, 8, 8));
    println!("{few} of 300, {many} of 1,000");
    // The processes must be slow enough to see each other, and fast enough to use the quota in a
    // minute.
    assert!((50..=300).contains(&few), "{few} of 300");
    assert!((200..=1_000).contains(&many), "{many} of 1,000");
}
