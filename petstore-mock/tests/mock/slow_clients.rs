//! Tests of slow clients, in real time.

use std::{future::pending, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc::Sender,
    task::JoinSet,
};

use super::support::{client, post_head, start};

/// A time limit that is short enough for a test to wait for it in real time.
const SOON: Duration = Duration::from_millis(80);

const GET: &[u8] =
    b"GET /v1/pets?limit=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer enterprise-key\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn paused_time_does_not_bring_a_limit_nearer() {
    let mock = start().await;
    let mut stream = TcpStream::connect(mock.server.addr()).await.unwrap();
    stream.write_all(&GET[..20]).await.unwrap();
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    stream.write_all(&GET[20..]).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
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

/// As many as the usual limits of open files leave room for: each connection has two ends here.
const MANY: usize = 300;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_slow_clients_do_not_hold_up_a_fast_one() {
    let mock = start().await;
    let addr = mock.server.addr();
    let (opened, mut are_open) = tokio::sync::mpsc::channel(1);
    let mut slow = JoinSet::new();
    for way in 0..MANY {
        slow.spawn(dawdle(addr, way, opened.clone()));
    }
    for _ in 0..MANY {
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
