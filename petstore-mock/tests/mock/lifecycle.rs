//! Tests of the start and end of a server, on the runtime of a test or on its own thread.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use petstore_mock::{Builder, Clock, MockServer, Plan, Seed, SeedPet, StartError};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
};

use super::process::ask;
use super::support::{REX, client, post_head, reply, start};

const REQUEST: &[u8] = b"GET /_mock/health HTTP/1.1\r\nHost: x\r\n\r\n";

#[tokio::test]
async fn no_two_servers_of_a_process_get_the_same_free_port() {
    let mut ports = std::collections::BTreeSet::new();
    for number in 0..1_000 {
        let port = MockServer::start().await.addr().port();
        assert!(ports.insert(port), "server {number} got port {port} again");
    }
}

/// Opens a connection that has been used once and is kept open.
async fn idle_connection(server: &MockServer) -> TcpStream {
    let mut stream = TcpStream::connect(server.addr()).await.unwrap();
    stream.write_all(REQUEST).await.unwrap();
    let mut answer = [0; 1024];
    let read = stream.read(&mut answer).await.unwrap();
    assert!(answer[..read].starts_with(b"HTTP/1.1 200"));
    stream
}

const WAITS_FOR_100: &str = "Content-Length: 32\r\nExpect: 100-continue";

/// Opens a connection with a request in flight whose body is missing.
async fn in_flight(server: &MockServer) -> TcpStream {
    let mut stream = TcpStream::connect(server.addr()).await.unwrap();
    stream
        .write_all(post_head(WAITS_FOR_100).as_bytes())
        .await
        .unwrap();
    let mut answer = [0; 25];
    stream.read_exact(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 100"));
    stream
}

#[tokio::test]
async fn the_url_says_where_it_is() {
    let server = MockServer::start().await;
    let port = server.addr().port();
    assert_eq!(server.url(), format!("http://127.0.0.1:{port}/v1"));
    assert_eq!(server.origin(), format!("http://127.0.0.1:{port}"));
    let everywhere = MockServer::builder().addr(Ipv4Addr::UNSPECIFIED.into());
    let everywhere = everywhere.start().await.unwrap();
    assert!(everywhere.url().starts_with("http://127.0.0.1:"));
    assert_eq!(reply(client().get(everywhere.url())).await.status, 404);
}

#[tokio::test]
async fn it_listens_on_ipv6_too() {
    // Where the machine has no IPv6 there is nothing to check.
    if let Ok(server) = MockServer::builder()
        .addr(Ipv6Addr::LOCALHOST.into())
        .start()
        .await
    {
        assert!(
            server.url().starts_with("http://[::1]:"),
            "{}",
            server.url()
        );
        assert_eq!(reply(client().get(server.url())).await.status, 404);
    }
}

#[tokio::test]
async fn dropping_it_closes_the_port_and_its_connections() {
    let mock = start().await;
    let addr = mock.server.addr();
    let mut idle = idle_connection(&mock.server).await;
    drop(mock);
    assert!(std::net::TcpStream::connect(addr).is_err());
    assert!(matches!(idle.read(&mut [0; 64]).await, Ok(0) | Err(_)));
}

#[test]
fn dropping_it_works_outside_a_runtime_and_after_it() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let (first, second) =
        runtime.block_on(async { (MockServer::start().await, MockServer::start().await) });
    let addrs = [first.addr(), second.addr()];
    drop(first);
    assert!(std::net::TcpStream::connect(addrs[0]).is_err());
    drop(runtime);
    drop(second);
    assert!(std::net::TcpStream::connect(addrs[1]).is_err());
}

#[tokio::test]
async fn stopping_it_closes_idle_connections_without_waiting_for_them() {
    let mock = start().await;
    let addr = mock.server.addr();
    let mut idle = idle_connection(&mock.server).await;
    let unused = TcpStream::connect(addr).await.unwrap();
    let stopped = tokio::time::timeout(Duration::from_secs(4), mock.server.stop()).await;
    assert!(stopped.is_ok(), "the stop waited for idle connections");
    assert_eq!(idle.read(&mut [0; 64]).await.unwrap(), 0);
    assert!(TcpStream::connect(addr).await.is_err());
    drop(unused);
}

#[tokio::test]
async fn stopping_it_lets_a_request_in_flight_finish() {
    let mock = start().await;
    let mut stream = in_flight(&mock.server).await;
    let finish = async {
        tokio::task::yield_now().await;
        stream.write_all(REX.as_bytes()).await.unwrap();
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        rest
    };
    let ((), rest) = tokio::join!(mock.server.stop(), finish);
    assert!(rest.starts_with("HTTP/1.1 201"), "{rest}");
}

#[tokio::test]
async fn stopping_it_does_not_wait_for_the_rest_of_a_head() {
    let server = MockServer::start().await;
    let mut half = TcpStream::connect(server.addr()).await.unwrap();
    half.write_all(&REQUEST[..20]).await.unwrap();
    // A response proves that the server has read the earlier bytes.
    drop(idle_connection(&server).await);
    let stopped = tokio::time::timeout(Duration::from_secs(4), server.stop()).await;
    assert!(stopped.is_ok(), "the stop waited for half a request");
    assert!(matches!(half.read(&mut [0; 64]).await, Ok(0) | Err(_)));
}

/// Sends the head of a request, and its body only after the server began to stop. Returns the
/// response.
fn hesitate(addr: SocketAddr, begun: oneshot::Sender<()>) -> std::io::Result<String> {
    let mut stream = std::net::TcpStream::connect(addr)?;
    stream.write_all(post_head(WAITS_FOR_100).as_bytes())?;
    let mut answer = [0; 1024];
    let read = stream.read(&mut answer)?;
    assert!(answer[..read].starts_with(b"HTTP/1.1 100"));
    begun.send(()).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100)))?;
    assert!(
        stream.read(&mut answer).is_err(),
        "cut off, or answered before the server stopped"
    );
    stream.set_read_timeout(None)?;
    stream.write_all(REX.as_bytes())?;
    let mut rest = String::new();
    stream.read_to_string(&mut rest)?;
    Ok(rest)
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_a_request_in_flight_in_paused_time() {
    let server = MockServer::start().await;
    let addr = server.addr();
    let (begin, begun) = oneshot::channel();
    let (finish, finished) = oneshot::channel();
    // On a thread, because the runtime's time is paused.
    std::thread::spawn(move || finish.send(hesitate(addr, begin)));
    begun.await.unwrap();
    server.stop().await;
    let rest = finished.await.unwrap().unwrap();
    assert!(rest.starts_with("HTTP/1.1 201"), "{rest}");
}

#[tokio::test]
async fn starting_returns_errors() {
    let first = MockServer::start().await;
    let taken = MockServer::builder()
        .port(first.addr().port())
        .start()
        .await;
    let message = taken.unwrap_err().to_string();
    assert!(message.contains(&first.addr().to_string()), "{message}");
    let taken = MockServer::builder()
        .port(first.addr().port())
        .start_blocking();
    assert!(matches!(taken.unwrap_err(), StartError::Bind { .. }));
    for key in ["", "a b", "ключ", "a\n"] {
        let error = MockServer::builder()
            .key(key, Plan::Free)
            .start()
            .await
            .unwrap_err();
        assert!(matches!(error, StartError::Key(_)));
    }
    let twin = SeedPet::new("twin", 1).with_id(1);
    let twins = Seed::new().pet(twin.clone()).pet(twin);
    let error = MockServer::builder().seed(twins).start().await.unwrap_err();
    assert!(error.to_string().contains("pets[1]: the id 1"), "{error}");
}

#[test]
fn its_types_cross_threads() {
    fn check<T: Send + Sync>() {}
    fn check_clone<T: Clone>() {}
    check::<MockServer>();
    check::<Builder>();
    check::<Clock>();
    check_clone::<Clock>();
    let _: fn(&MockServer) = |server| {
        let _ = format!("{server:?}");
    };
}

#[tokio::test]
async fn debug_output_holds_no_key() {
    let builder = MockServer::builder().key("s3cr3t", Plan::Free);
    assert!(!format!("{builder:?}").contains("s3cr3t"));
    let server = builder.start().await.unwrap();
    assert!(!format!("{server:?}").contains("s3cr3t"));
}

/// Asks a server on its own thread for the pets, and returns the status line.
fn list(server: &MockServer, key: &str) -> String {
    let answer = ask(server.addr(), "GET /v1/pets", key, "").unwrap();
    answer.lines().next().unwrap().to_owned()
}

#[test]
fn a_server_needs_no_runtime_of_the_tests() {
    let server = MockServer::builder()
        .key("mine", Plan::enterprise(1, 9))
        .start_blocking()
        .unwrap();
    assert_eq!(list(&server, "mine"), "HTTP/1.1 200 OK");
    assert_eq!(list(&server, "mine"), "HTTP/1.1 429 Too Many Requests");
    server.clock().advance(Duration::from_secs(60));
    assert_eq!(list(&server, "mine"), "HTTP/1.1 200 OK");
    let addr = server.addr();
    let idle = std::net::TcpStream::connect(addr).unwrap();
    drop(server);
    assert!(std::net::TcpStream::connect(addr).is_err());
    drop(idle);
}

#[test]
fn a_clock_that_is_advanced_once_a_delay_has_hit_ends_the_delay() {
    let clock = Clock::frozen(super::support::at(super::support::NOW));
    let key = ("mine", Plan::enterprise(1_000, 9_000));
    let server = MockServer::builder()
        .key(key.0, key.1)
        .clock(clock)
        .start_blocking()
        .unwrap();
    let slow = server.faults().on_all().delay(Duration::from_secs(1));
    for request in 1..=200 {
        std::thread::scope(|scope| {
            let answer = scope.spawn(|| list(&server, "mine"));
            while slow.hits() < request {
                std::hint::spin_loop();
            }
            server.clock().advance(Duration::from_secs(1));
            assert_eq!(
                answer.join().unwrap(),
                "HTTP/1.1 200 OK",
                "request {request}"
            );
        });
    }
}

#[tokio::test]
async fn a_blocking_server_starts_and_stops_within_a_runtime() {
    let (one, other) = (MockServer::start_blocking(), MockServer::start_blocking());
    let addr = other.addr();
    drop(one);
    other.stop().await;
    assert!(std::net::TcpStream::connect(addr).is_err());
}

#[test]
fn a_blocking_server_is_used_from_many_runtimes() {
    let server = MockServer::builder()
        .clock(Clock::system())
        .start_blocking()
        .unwrap();
    for _ in 0..3 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let answer =
            runtime.block_on(async { client().get(server.url()).send().await.unwrap().status() });
        assert_eq!(answer, 404);
    }
}
