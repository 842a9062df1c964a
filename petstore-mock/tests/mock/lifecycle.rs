//! Tests of the start and end of a server, on the runtime of a test or on its own thread.

use std::{
    collections::BTreeSet,
    io::{Read, Write},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use petstore_mock::{Clock, KeyError, MockServer, Plan, Seed, SeedPet, StartError};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
};

use super::process::ask;
use super::support::{NOW, REX, at, client, post_head, reply, start};

const REQUEST: &[u8] = b"GET /_mock/health HTTP/1.1\r\nHost: x\r\n\r\n";

/// Whether the port of a server still accepts connections.
fn is_open(addr: SocketAddr) -> bool {
    std::net::TcpStream::connect(addr).is_ok()
}

#[tokio::test]
async fn no_two_servers_of_a_process_get_the_same_free_port() {
    let mut ports = BTreeSet::new();
    for number in 0..300 {
        let port = MockServer::start().await.addr().port();
        assert!(ports.insert(port), "server {number} got port {port} again");
    }
}

#[tokio::test]
async fn the_url_says_where_it_is() {
    for (addr, host) in [
        (Ipv4Addr::LOCALHOST.into(), "127.0.0.1"),
        (Ipv4Addr::UNSPECIFIED.into(), "127.0.0.1"),
        (Ipv6Addr::LOCALHOST.into(), "[::1]"),
    ] {
        // Where the machine has no IPv6 there is nothing to check.
        if let Ok(server) = MockServer::builder().addr(addr).start().await {
            let origin = format!("http://{host}:{}", server.addr().port());
            assert_eq!(server.url(), format!("{origin}/v1"));
            assert_eq!(server.origin(), origin);
            assert_eq!(reply(client().get(server.url())).await.status, 404);
        }
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

#[tokio::test]
async fn dropping_it_closes_the_port_and_its_connections() {
    let mock = start().await;
    let addr = mock.server.addr();
    let mut idle = idle_connection(&mock.server).await;
    drop(mock);
    assert!(!is_open(addr));
    assert!(matches!(idle.read(&mut [0; 64]).await, Ok(0) | Err(_)));
}

#[test]
fn dropping_it_works_outside_a_runtime_and_after_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let start = || runtime.block_on(MockServer::start());
    let (first, second) = (start(), start());
    let addr = first.addr();
    drop(first);
    assert!(!is_open(addr));
    drop(runtime);
    drop(second);
}

#[tokio::test]
async fn stopping_it_does_not_wait_for_connections_without_a_request() {
    let mock = start().await;
    let addr = mock.server.addr();
    let unused = TcpStream::connect(addr).await.unwrap();
    let mut half = TcpStream::connect(addr).await.unwrap();
    half.write_all(&REQUEST[..20]).await.unwrap();
    // A response proves that the server has read the earlier bytes.
    let mut idle = idle_connection(&mock.server).await;
    mock.stop().await;
    assert_eq!(idle.read(&mut [0; 64]).await.unwrap(), 0);
    assert!(matches!(half.read(&mut [0; 64]).await, Ok(0) | Err(_)));
    assert!(!is_open(addr));
    drop(unused);
}

/// Sends the head of a request, and its body only after the server began to stop. Returns the
/// response.
fn hesitate(addr: SocketAddr, begun: oneshot::Sender<()>) -> std::io::Result<String> {
    let mut stream = std::net::TcpStream::connect(addr)?;
    let head = post_head("Content-Length: 32\r\nExpect: 100-continue");
    stream.write_all(head.as_bytes())?;
    let mut answer = [0; 1024];
    let read = stream.read(&mut answer)?;
    assert!(answer[..read].starts_with(b"HTTP/1.1 100"));
    begun.send(()).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100)))?;
    let early = stream.read(&mut answer);
    assert!(early.is_err(), "cut off, or answered before its body");
    stream.set_read_timeout(None)?;
    stream.write_all(REX.as_bytes())?;
    let mut rest = String::new();
    stream.read_to_string(&mut rest)?;
    Ok(rest)
}

#[tokio::test(start_paused = true)]
async fn stopping_it_lets_a_request_in_flight_finish_even_in_paused_time() {
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

#[tokio::test(start_paused = true)]
async fn paused_time_does_not_bring_a_limit_nearer() {
    let mock = start().await;
    let mut stream = TcpStream::connect(mock.server.addr()).await.unwrap();
    stream.write_all(&REQUEST[..20]).await.unwrap();
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    stream.write_all(&REQUEST[20..]).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
}

#[tokio::test]
async fn starting_returns_errors() {
    let first = MockServer::start().await;
    let taken = || MockServer::builder().port(first.addr().port());
    let blocking = taken().start_blocking().unwrap_err();
    assert!(matches!(blocking, StartError::Bind { .. }));
    // The message contains the cause. A source would be printed once more.
    assert!(std::error::Error::source(&blocking).is_none());
    let message = taken().start().await.unwrap_err().to_string();
    assert!(message.contains(&first.addr().to_string()), "{message}");
    let unsendable = MockServer::builder().key("a b", Plan::Free);
    let error = unsendable.start().await.unwrap_err();
    assert!(matches!(error, StartError::Key(_)));
    let namesakes = MockServer::builder().named_key("ci", "a", Plan::Free);
    let namesakes = namesakes.named_key("ci", "b", Plan::Pro);
    let error = namesakes.start().await.unwrap_err();
    assert!(matches!(error, StartError::Key(KeyError::NameTaken)));
    let twin = SeedPet::new("twin", 1).with_id(1);
    let twins = Seed::none().pet(twin.clone()).pet(twin);
    let error = MockServer::builder().seed(twins).start().await.unwrap_err();
    assert!(error.to_string().contains("pets[1]: the id 1"), "{error}");
}

#[tokio::test]
async fn debug_output_holds_no_key() {
    let builder = MockServer::builder().key("s3cr3t", Plan::Free);
    let builder = builder.admin_token("s3cr3t-token");
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
    let builder = MockServer::builder().key("mine", Plan::enterprise(1, 9));
    let server = builder.start_blocking().unwrap();
    assert_eq!(list(&server, "mine"), "HTTP/1.1 200 OK");
    assert_eq!(list(&server, "mine"), "HTTP/1.1 429 Too Many Requests");
    server.clock().advance(Duration::from_secs(60));
    assert_eq!(list(&server, "mine"), "HTTP/1.1 200 OK");
    let addr = server.addr();
    drop(server);
    assert!(!is_open(addr));
}

#[test]
fn a_clock_that_is_advanced_once_a_delay_has_hit_ends_the_delay() {
    let builder = MockServer::builder().clock(Clock::frozen(at(NOW)));
    let server = builder.start_blocking().unwrap();
    let slow = server.faults().on(..).delay(Duration::from_secs(1));
    for request in 1..=100 {
        std::thread::scope(|scope| {
            let answer = scope.spawn(|| list(&server, "enterprise-key"));
            while slow.hits() < request {
                std::hint::spin_loop();
            }
            server.clock().advance(Duration::from_secs(1));
            assert_eq!(answer.join().unwrap(), "HTTP/1.1 200 OK", "{request}");
        });
    }
}
