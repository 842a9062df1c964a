//! Tests of servers on their own thread, for tests without a runtime.

use std::{net::TcpStream, time::Duration};

use petstore_mock::{Clock, MockServer, Plan, StartError};

use super::{process::ask, support::client};

/// Asks for the pets and returns the status line.
fn list(server: &MockServer, key: &str) -> String {
    let answer = ask(server.addr(), "GET /v1/pets", key, "").unwrap();
    answer.lines().next().unwrap().to_owned()
}

#[test]
fn a_server_needs_no_runtime_of_the_tests() {
    let server =
        MockServer::builder().key("mine", Plan::enterprise(1, 9)).start_blocking().unwrap();
    assert_eq!(list(&server, "mine"), "HTTP/1.1 200 OK");
    assert_eq!(list(&server, "mine"), "HTTP/1.1 429 Too Many Requests");
    server.clock().advance(Duration::from_secs(60));
    assert_eq!(list(&server, "mine"), "HTTP/1.1 200 OK");
    let addr = server.addr();
    let idle = TcpStream::connect(addr).unwrap();
    drop(server);
    assert!(TcpStream::connect(addr).is_err());
    drop(idle);
}

#[test]
fn a_clock_that_is_advanced_once_a_delay_has_hit_ends_the_delay() {
    let clock = Clock::frozen(super::support::at(super::support::NOW));
    let key = ("mine", Plan::enterprise(1_000, 9_000));
    let server = MockServer::builder().key(key.0, key.1).clock(clock).start_blocking().unwrap();
    let slow = server.faults().on_all().delay(Duration::from_secs(1));
    for request in 1..=200 {
        std::thread::scope(|scope| {
            let answer = scope.spawn(|| list(&server, "mine"));
            while slow.hits() < request {
                std::hint::spin_loop();
            }
            server.clock().advance(Duration::from_secs(1));
            assert_eq!(answer.join().unwrap(), "HTTP/1.1 200 OK", "request {request}");
        });
    }
}

#[test]
fn a_blocking_start_returns_errors_too() {
    let first = MockServer::start_blocking();
    let taken = MockServer::builder().port(first.addr().port()).start_blocking();
    assert!(matches!(taken.unwrap_err(), StartError::Bind { .. }));
}

#[tokio::test]
async fn a_blocking_server_starts_stops_and_is_dropped_within_a_runtime() {
    let (one, other) = (MockServer::start_blocking(), MockServer::start_blocking());
    let addr = other.addr();
    drop(one);
    other.stop().await;
    assert!(TcpStream::connect(addr).is_err());
}

#[test]
fn a_blocking_server_is_used_from_many_runtimes() {
    let server = MockServer::builder().clock(Clock::system()).start_blocking().unwrap();
    for _ in 0..3 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let answer =
            runtime.block_on(async { client().get(server.url()).send().await.unwrap().status() });
        assert_eq!(answer, 404);
    }
}
