//! Tests that hundreds of servers in one process leave no socket, thread or task behind. It is a
//! separate test binary, because it counts the resources of the whole process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
};

use petstore_mock::MockServer;
use tokio::runtime::Runtime;

/// Returns the number of file descriptors and of threads of the process.
fn held() -> (usize, usize) {
    let entries = |folder| fs::read_dir(folder).unwrap().count();
    (entries("/proc/self/fd"), entries("/proc/self/task"))
}

/// Waits until the process has no more descriptors and threads than before, except for the thread
/// that drives the time limits of all connections. With a leak, this never returns.
fn wait_for(before: (usize, usize)) {
    while {
        let now = held();
        now.0 > before.0 || now.1 > before.1 + 1
    } {
        std::thread::yield_now();
    }
}

/// The number of servers, for which the usual limits of open files leave room.
const MANY: usize = 400;

fn ask(server: &MockServer) {
    let mut stream = TcpStream::connect(server.addr()).unwrap();
    let head = "GET /v1/pets HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
    write!(stream, "{head}Authorization: Bearer free-key\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("x-ratelimit-remaining: 59\r\n"), "{answer}");
}

fn wait_for_tasks(runtime: &Runtime) {
    while runtime.metrics().num_alive_tasks() > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn hundreds_of_servers_leave_nothing_behind() {
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async { ask(&MockServer::start().await) });
    wait_for_tasks(&runtime);
    let before = held();

    let start = |_| runtime.block_on(MockServer::start());
    let servers: Vec<_> = (0..MANY).map(start).collect();
    assert!(held().0 >= before.0 + MANY);
    let threads = held().1;
    assert!(
        threads <= before.1 + 1,
        "a server needs no thread of its own"
    );
    servers.iter().for_each(ask);
    drop(servers);
    wait_for_tasks(&runtime);
    wait_for(before);

    let servers: Vec<_> = (0..MANY / 20)
        .map(|_| MockServer::start_blocking())
        .collect();
    servers.iter().for_each(ask);
    // This is within a runtime, where another runtime cannot simply be dropped.
    runtime.block_on(async { drop(servers) });
    wait_for(before);
}
