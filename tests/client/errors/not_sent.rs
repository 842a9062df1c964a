//! Tests that an unsent request cannot have been processed, for every time limit. (On Linux, a full
//! backlog ignores new connections; other systems refuse them.)

#![cfg(target_os = "linux")]

use std::time::Duration;

use petstore_client::transport::Connection;
use petstore_client::{Client, NewPet, RequestOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::client::kit::{REX, answer, builder, create, http, millis, secs};
use crate::client::service::get;
use crate::client::wire::{Act, Wire};

const ATTEMPT: Duration = millis(300);

/// Returns a listener that accepts no connection, and those that fill its backlog.
pub(super) async fn full() -> (TcpListener, Vec<TcpStream>) {
    let listener = small_backlog();
    let waiting = fill(&listener).await;
    (listener, waiting)
}

pub(super) fn base(listener: &TcpListener) -> String {
    format!("http://{}/v1", listener.local_addr().unwrap())
}

fn small_backlog() -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket.listen(1).unwrap()
}

/// Fills a backlog until a connection stalls.
async fn fill(listener: &TcpListener) -> Vec<TcpStream> {
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = timeout(ATTEMPT, TcpStream::connect(address)).await {
        waiting.push(stream.unwrap());
        assert!(waiting.len() < 16, "the backlog has no end");
    }
    waiting
}

fn client(base: &str, attempts: u32) -> Client {
    let options = RequestOptions::new()
        .attempt_timeout(ATTEMPT)
        .max_attempts(attempts);
    builder(base).options(&options).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_connects_after_a_failed_one_was_not_sent() {
    let listener = small_backlog();
    let client = client(&base(&listener), 2);
    let fails_once = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
        let head = [("Retry-After", "9"), ("Connection", "close")];
        stream.write_all(&http(503, &head, "")).await.unwrap();
        drop(stream);
        fill(&listener).await
    };
    let list = client.pets().list().send();
    let (page, _waiting) = tokio::join!(list, fails_once);
    let error = page.unwrap_err();
    assert!(error.is_timeout() && error.attempts() == 2, "{error}");
    assert!(
        error.may_have_been_processed(),
        "a 503 came before: {error}"
    );
    let unresolved = client.limits().snapshot().unresolved;
    assert_eq!(unresolved, 1, "the 503 alone, which shows no quota");
}

#[tokio::test]
async fn a_post_that_ends_while_connecting_succeeds_later() {
    let (listener, waiting) = full().await;
    let client = client(&base(&listener), 20);
    let busy = async {
        tokio::time::sleep(2 * ATTEMPT).await;
        drop(waiting);
        Wire::at(listener, |_| answer(201, &[], REX))
    };
    let rex = NewPet::new("Rex", 7);
    let create = client.pets().create(&rex).with_meta().into_future();
    let (server, created) = tokio::join!(busy, create);
    assert!(created.unwrap().meta.attempts() > 1);
    assert_eq!(server.count(), 1, "one attempt was sent");
}

/// A new connection for the POST fails in the background, after an idle connection has taken the
/// POST.
#[tokio::test]
async fn a_post_that_another_connection_took_is_not_repeated() {
    for attempts in [1, 3] {
        let mut gets = 0;
        let server = Wire::reading(move |seen| {
            if seen.line.starts_with("POST") {
                return Act::Stall(vec![]);
            }
            gets += 1;
            let wait = if gets == 2 { 300 } else { 0 };
            Act::Later(millis(wait), http(200, &[], "[]"))
        });
        // Only the first connection is accepted: the others stall once the backlog is full.
        let listener = small_backlog();
        let options = RequestOptions::new()
            .attempt_timeout(secs(1))
            .max_attempts(attempts);
        let client = builder(&base(&listener))
            .connection(Connection::new().connect_timeout(millis(500)))
            .options(&options)
            .build()
            .unwrap();
        let origin = server.origin()["http://".len()..].to_owned();
        let first = async {
            let (mut accepted, _) = listener.accept().await.unwrap();
            let mut behind = TcpStream::connect(origin).await.unwrap();
            tokio::spawn(async move {
                let _ = copy_bidirectional(&mut accepted, &mut behind).await;
            });
        };
        let (listed, ()) = tokio::join!(get(&client), first);
        listed.unwrap();
        let _waiting = fill(&listener).await;
        let holds_the_connection = tokio::spawn(get(&client));
        tokio::time::sleep(millis(100)).await;
        let error = create(&client).await.unwrap_err();
        holds_the_connection.await.unwrap().unwrap();
        assert!(error.may_have_been_processed(), "{error}");
        assert_eq!(server.count(), 3, "one POST");
    }
}
