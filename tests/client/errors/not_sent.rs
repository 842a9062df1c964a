//! Tests that an unsent request cannot have been processed, for every time limit. (On Linux, a full
//! backlog ignores new connections; other systems refuse them.)

#![cfg(target_os = "linux")]

use std::time::Duration;

use petstore_client::transport::Connection;
use petstore_client::{Client, Error, ErrorKind, NewPet, RequestOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::client::kit::{REX, answer, builder, http, millis, once, secs};
use crate::client::service::{get, poll_once};
use crate::client::wire::{Act, Wire, listen};

const LIMIT: Duration = secs(20);
const ATTEMPT: Duration = millis(300);

/// A listener that does not accept, its base URL, and the connections that fill its backlog.
pub(super) struct Full {
    listener: TcpListener,
    pub(super) base: String,
    waiting: Vec<TcpStream>,
}

pub(super) async fn full() -> Full {
    let listener = small_backlog();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let waiting = fill(&listener).await;
    Full {
        listener,
        base,
        waiting,
    }
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

async fn create(client: &Client) -> Result<u32, Error> {
    let pet = NewPet::new("Rex", 7);
    let call = client.pets().create(&pet).with_meta();
    timeout(LIMIT, call)
        .await
        .unwrap()
        .map(|pet| pet.meta.attempts())
}

#[tokio::test]
async fn an_attempt_that_ends_while_connecting_was_not_sent() {
    let full = full().await;
    let client = client(&full.base, 1);
    let error = create(&client).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(
        !error.may_have_been_processed(),
        "nothing left this machine: {error}"
    );
    assert_eq!(client.limits().snapshot().unresolved, 0);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_connects_after_a_failed_one_was_not_sent() {
    let listener = small_backlog();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let client = client(&base, 2);
    let fails_once = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
        let head = [("Retry-After", "9"), ("Connection", "close")];
        stream.write_all(&http(503, &head, "")).await.unwrap();
        drop(stream);
        fill(&listener).await
    };
    let (error, _waiting) = tokio::join!(
        async { client.pets().list().await.unwrap_err() },
        fails_once
    );
    assert!(error.is_timeout() && error.attempts() == 2, "{error}");
    assert!(
        error.may_have_been_processed(),
        "a 503 came before: {error}"
    );
    let unresolved = client.limits().snapshot().unresolved;
    assert_eq!(unresolved, 1, "the 503 alone, which shows no quota");
}

#[tokio::test]
async fn connecting_has_a_limit_of_its_own_and_nothing_was_sent_then() {
    let full = full().await;
    let client = builder(&full.base)
        .connection(Connection::new().connect_timeout(millis(30)))
        .options(&once());
    let error = create(&client.build().unwrap()).await.unwrap_err();
    assert!(error.is_connect() && error.is_timeout(), "{error}");
    assert!(!error.may_have_been_processed());
    assert!(error.to_string().contains("no connection"), "{error}");
}

#[tokio::test]
async fn a_post_that_ends_while_connecting_is_tried_again() {
    let full = full().await;
    let error = create(&client(&full.base, 3)).await.unwrap_err();
    assert_eq!(
        (error.attempts(), error.may_have_been_processed()),
        (3, false),
        "{error}"
    );
}

#[tokio::test]
async fn a_post_that_ends_while_connecting_succeeds_later() {
    let Full {
        listener,
        base,
        waiting,
    } = full().await;
    let busy = async {
        tokio::time::sleep(2 * ATTEMPT).await;
        drop(waiting);
        Wire::at(listener, |_| answer(201, &[], REX))
    };
    let client = client(&base, 20);
    let (server, attempts) = tokio::join!(busy, create(&client));
    assert!(attempts.unwrap() > 1);
    assert_eq!(server.count(), 1, "one attempt was sent");
}

/// The operating system accepts the connection, although the listener never does.
#[tokio::test]
async fn a_post_that_only_the_backlog_accepted_is_uncertain() {
    let listener = listen();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let error = create(&client(&base, 4)).await.unwrap_err();
    assert!(
        error.is_timeout() && error.may_have_been_processed(),
        "{error}"
    );
    assert_eq!(error.attempts(), 1);
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
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        let options = RequestOptions::new()
            .attempt_timeout(secs(1))
            .max_attempts(attempts);
        let client = builder(&base)
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
        let error = client
            .pets()
            .create(&NewPet::new("Rex", 7))
            .await
            .unwrap_err();
        holds_the_connection.await.unwrap().unwrap();
        assert!(error.may_have_been_processed(), "{error}");
        assert_eq!(server.count(), 3, "one POST");
    }
}

#[test]
fn a_call_that_ends_while_it_reconnects_may_have_been_processed() {
    let elsewhere = Runtime::new().unwrap();
    let (filled, is_filled) = std::sync::mpsc::channel();
    let listener = elsewhere.block_on(async { small_backlog() });
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    elsewhere.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
        let head = [("Retry-After", "2"), ("Connection", "close")];
        stream.write_all(&http(503, &head, "")).await.unwrap();
        drop(stream);
        filled.send(fill(&listener).await).unwrap();
        std::future::pending::<()>().await;
    });
    let client = builder(&base).build().unwrap();
    let mut call = client.pets().list().send();
    let ended = Builder::new_current_thread().enable_all().build().unwrap();
    let _waiting = ended.block_on(async {
        assert!(!poll_once(&mut call).await);
        let waiting = loop {
            match is_filled.try_recv() {
                Ok(waiting) => break waiting,
                Err(_) => tokio::time::sleep(millis(10)).await,
            }
        };
        while client.limits().snapshot().in_flight == 0 {
            tokio::time::sleep(millis(10)).await;
        }
        tokio::time::sleep(millis(100)).await;
        waiting
    });
    drop(ended);
    let error = elsewhere.block_on(call).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Runtime, "{error}");
    assert!(
        error.may_have_been_processed(),
        "the service answered 503 before: {error}"
    );
}
