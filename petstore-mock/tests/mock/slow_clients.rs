//! Tests of the limits for slow clients and for connections, in real time.

use std::{future::pending, net::SocketAddr, time::Duration};

use petstore_mock::Limits;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc::Sender,
    task::JoinSet,
};

use super::support::{Mock, Reply, client, post_head, start_with};

/// A time limit that is short enough for a test to wait for it in real time.
const SOON: Duration = Duration::from_millis(80);

/// A time limit that is long enough for a request on a slow machine.
const IDLE: Duration = Duration::from_secs(1);

const GET: &[u8] =
    b"GET /v1/pets?limit=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer enterprise-key\r\n\r\n";

async fn with_limits(set: impl FnOnce(Limits) -> Limits) -> Mock {
    start_with(|builder| builder.limits(set(Limits::default()))).await
}

async fn connect(mock: &Mock) -> TcpStream {
    TcpStream::connect(mock.server.addr()).await.unwrap()
}

/// Sends bytes and keeps the connection open.
async fn send(mock: &Mock, bytes: &[u8]) -> TcpStream {
    let mut stream = connect(mock).await;
    stream.write_all(bytes).await.unwrap();
    stream
}

async fn rest(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_head_that_takes_too_long_is_408() {
    let mock = with_limits(|limits| Limits {
        head: SOON,
        ..limits
    })
    .await;
    for head in ["G", "GET /v1/pets HTTP/1.1\r\nHost: x\r\nX-Slow: "] {
        let reply = Reply::parse(&rest(send(&mock, head.as_bytes()).await).await);
        reply.expect_error(408, "request_timeout");
        assert_eq!(reply.header("date"), "Thu, 01 Jan 2026 00:00:10 GMT");
        assert_eq!(reply.header("connection"), "close");
        assert_eq!(reply.rate().0, 60);
    }
}

#[tokio::test]
async fn a_slow_head_gets_no_extra_time() {
    let mock = with_limits(|limits| Limits {
        head: SOON,
        ..limits
    })
    .await;
    let (mut read, mut write) = connect(&mock).await.into_split();
    let drip = async {
        write
            .write_all(b"GET /v1/pets HTTP/1.1\r\nX-Slow: ")
            .await
            .unwrap();
        while write.write_all(b"x").await.is_ok() {
            tokio::time::sleep(SOON / 8).await;
        }
        pending::<()>().await;
    };
    let mut answer = Vec::new();
    tokio::select! {
        () = drip => {}
        // A client that keeps sending may lose the response because of a reset. In both cases, the
        // connection has ended.
        _ = read.read_to_end(&mut answer) => {}
    }
}

#[tokio::test]
async fn a_body_that_takes_too_long_is_408() {
    let mock = with_limits(|limits| Limits {
        body: SOON,
        ..limits
    })
    .await;
    let begun = post_head("Content-Length: 32") + "{\"name\":";
    let reply = Reply::parse(&rest(send(&mock, begun.as_bytes()).await).await);
    reply.expect_error(408, "request_timeout");
    assert_eq!(reply.header("connection"), "close");
    assert_eq!(reply.rate().1, 59, "admitted requests use quota");
}

#[tokio::test]
async fn an_idle_connection_is_closed_without_a_word() {
    let mock = with_limits(|limits| Limits {
        idle: IDLE,
        ..limits
    })
    .await;
    assert_eq!(rest(connect(&mock).await).await, "");
    let answer = rest(send(&mock, GET).await).await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("}]"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answers_is_cut() {
    let mock = with_limits(|limits| Limits {
        write: SOON,
        ..limits
    })
    .await;
    let (read, mut write) = connect(&mock).await.into_split();
    let page = GET
        .escape_ascii()
        .to_string()
        .replace("limit=1", "limit=100");
    let page = page.replace("\\r\\n", "\r\n").into_bytes();
    // Write until all buffers are full, and then until the server resets the connection.
    let end = loop {
        if let Err(error) = write.write_all(&page).await {
            break error;
        }
    };
    assert_eq!(end.kind(), std::io::ErrorKind::ConnectionReset);
    drop(read);
}

#[tokio::test(start_paused = true)]
async fn paused_time_does_not_bring_a_limit_nearer() {
    let mock = with_limits(|limits| Limits {
        head: Duration::from_secs(60),
        ..limits
    })
    .await;
    let mut stream = send(&mock, &GET[..20]).await;
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    stream.write_all(&GET[20..]).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
}

#[tokio::test]
async fn too_many_connections_are_answered_503() {
    let mock = with_limits(|limits| Limits {
        connections: 2,
        ..limits
    })
    .await;
    let mut status = [0; 12];
    let mut first = send(&mock, GET).await;
    first.read_exact(&mut status).await.unwrap();
    let second = connect(&mock).await;
    let refused = Reply::parse(&rest(send(&mock, GET).await).await);
    refused.expect_error(503, "overloaded");
    assert_eq!(
        (refused.header("retry-after"), refused.header("connection")),
        ("1", "close")
    );
    drop(second);
    // The server may not have noticed yet.
    let get = b"GET /v1/pets/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    while mock.raw(get).await.status != 401 {}
    // 64 more connections are accepted and answered 503. Further ones are closed immediately.
    let mut waiting = Vec::new();
    for _ in 0..80 {
        waiting.push(connect(&mock).await);
    }
    assert_eq!(rest(waiting.pop().unwrap()).await, "");
}

/// Opens a connection that is slow in one of six ways, and holds it.
async fn dawdle(addr: SocketAddr, way: usize, opened: Sender<()>) {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let post = post_head("Content-Length: 32") + "{";
    let many = GET.repeat(1_000);
    let bytes = match way % 6 {
        0 => b"",
        1 => &b"GET /v1/pets HTTP/1.1\r\nHost: x\r\nX-Slow: "[..],
        2 => post.as_bytes(),
        3 => GET,
        4 => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
        // Reads none of the responses.
        _ => &many,
    };
    // The mock stops reading when its responses are not read.
    let sent = stream.write_all(bytes);
    let _ = tokio::time::timeout(SOON, sent).await;
    opened.send(()).await.unwrap();
    pending::<()>().await;
}

/// A thousand, or what the limit of open files leaves room for: each connection has two ends here.
fn many() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let mut lines = limits.lines();
    let soft = lines
        .find(|line| line.starts_with("Max open files"))
        .and_then(|line| line.split_whitespace().nth(3)?.parse::<usize>().ok());
    (soft.unwrap_or(800).saturating_sub(200) / 2).min(1_000)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_slow_clients_do_not_hold_up_a_fast_one() {
    let mock = with_limits(|limits| limits).await;
    let addr = mock.server.addr();
    let (opened, mut are_open) = tokio::sync::mpsc::channel(1);
    let mut slow = JoinSet::new();
    for way in 0..many() {
        slow.spawn(dawdle(addr, way, opened.clone()));
    }
    for _ in 0..many() {
        are_open.recv().await.unwrap();
    }
    let url = format!("{}/pets?limit=1", mock.server.url());
    let fast = client();
    for _ in 0..300 {
        let request = fast.get(&url).bearer_auth("enterprise-key");
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    assert!(slow.try_join_next().is_none(), "a slow client has failed");
}

#[tokio::test]
async fn a_client_that_takes_no_body_over_http_2_is_cut() {
    let mock = with_limits(|limits| Limits {
        write: IDLE,
        ..limits
    })
    .await;
    let connect = async |window| {
        let stream = connect(&mock).await;
        let mut settings = h2::client::Builder::new();
        settings
            .initial_window_size(window)
            .handshake::<_, &[u8]>(stream)
            .await
            .unwrap()
    };
    let get = || {
        let request = http::Request::get("http://mock/v1/pets");
        request
            .header("authorization", "Bearer enterprise-key")
            .body(())
            .unwrap()
    };
    let (mut requests, connection) = connect(0).await;
    let connection = tokio::spawn(connection);
    // A response that the client drops does not count.
    let (left, _) = requests.send_request(get(), true).unwrap();
    drop(left.await.unwrap());
    let (answer, _) = requests.send_request(get(), true).unwrap();
    let mut body = answer.await.unwrap().into_body();
    assert!(
        body.data().await.is_none_or(|data| data.is_err()),
        "the body cannot be sent"
    );
    assert!(
        connection.await.unwrap().is_err(),
        "the mock resets the connection"
    );
    // A client that has read its response is idle, not slow.
    let (mut requests, connection) = connect(65_535).await;
    let connection = tokio::spawn(connection);
    let (answer, _) = requests.send_request(get(), true).unwrap();
    let mut body = answer.await.unwrap().into_body();
    while body.data().await.is_some() {}
    tokio::time::sleep(IDLE * 2).await;
    assert!(!connection.is_finished());
}
