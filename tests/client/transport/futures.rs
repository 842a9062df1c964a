//! Tests that futures, streams and types can be moved, shared and dropped.

use std::fmt::Debug;

use futures_util::{Stream, StreamExt as _};
use petstore_client::auth::{BoxProvider, CachingProvider};
use petstore_client::bytes::Bytes;
use petstore_client::limits::{
    Blocked, FileStore, Limits, Plan, QuotaWindow, RateLimits, RedisStore, StoreError,
};
use petstore_client::operations::{
    Call, CallFuture, Items, KeyLimits, ListPets, Pages, Pets, RawRequest, ResponseFuture, Store,
};
use petstore_client::retry::{Backoff, RetryBudget, RetryPolicy};
use petstore_client::test_util::{ErrorBuilder, FakeService};
use petstore_client::transport::{BoxTransport, Connection, Proxy, Tls, TransportError};
use petstore_client::{
    ApiKey, Client, ClientBuilder, Deprecation, Error, ErrorKind, Meta, NewPet, Page, Pet,
    RequestOptions, Response,
};

use crate::client::kit::{REX, answer, client, no_pets, secs, serve};
use crate::client::wire::{Act, Wire, listen};

#[tokio::test]
async fn a_stream_outlives_the_client_it_came_from() {
    let server = Wire::start(|_| answer(200, &[], format!("[{REX}]")));
    let mut items = {
        let client = client(&server.base());
        client.pets().list().items()
    };
    let task = tokio::spawn(async move { items.next().await.unwrap().unwrap().name });
    assert_eq!(task.await.unwrap(), "Rex");
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_at_any_point_leaves_the_client_working() {
    let stalls: [&[u8]; 4] = [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[",
        b"HTTP/1.1 429 X\r\nRetry-After: 1\r\nContent-Length: 2\r\n\r\n",
    ];
    for stall in stalls {
        let (server, client) = serve(vec![Act::Stall(stall.to_vec()), no_pets()]);
        let call = client.pets().list().send();
        tokio::time::timeout(secs(1), call).await.unwrap_err();
        client.pets().list().await.unwrap();
        assert_eq!(server.count(), 2);
    }
}

#[tokio::test]
async fn a_call_that_is_never_awaited_sends_nothing() {
    let (server, client) = serve(vec![no_pets()]);
    let call = client.pets().create(&NewPet::new("a", 1));
    drop(call);
    let sent = client.store().orders().into_future();
    drop(sent);
    tokio::task::yield_now().await;
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn connections_are_kept_and_shared() {
    let listener = listen();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let client = client(&base);
    let serve = async {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4096];
        for _ in 0..5 {
            assert!(stream.read(&mut buffer).await.unwrap() > 0);
            stream
                .write_all(&crate::client::kit::http(200, &[], "[]"))
                .await
                .unwrap();
        }
    };
    let calls = async {
        for _ in 0..5 {
            client.clone().pets().list().await.unwrap();
        }
    };
    tokio::join!(serve, calls);
}

fn shared<T: Send + Sync + Unpin + Debug + 'static>() {}
fn cloned<T: Clone>() {}
fn stream<T: Stream>() {}
fn future<T: Future>() {}

/// A provider's type that cannot be cloned.
struct NotClone;

#[test]
fn every_type_may_cross_threads_and_none_borrows() {
    shared::<Client>();
    shared::<ApiKey>();
    shared::<Error>();
    shared::<Pets>();
    shared::<Store>();
    shared::<Call<Pet>>();
    shared::<ListPets>();
    shared::<RawRequest>();
    shared::<Response<Pet>>();
    shared::<Meta>();
    shared::<Page<Pet>>();
    shared::<RateLimits>();
    shared::<RequestOptions>();
    shared::<ClientBuilder>();
    shared::<(
        Backoff,
        RetryBudget,
        Plan,
        Tls,
        Proxy,
        TransportError,
        FileStore,
    )>();
    shared::<(
        Deprecation,
        QuotaWindow,
        Blocked,
        CachingProvider<ApiKey>,
        BoxProvider,
        BoxTransport,
        StoreError,
    )>();
    shared::<CallFuture<Pet>>();
    shared::<CallFuture<Page<Pet>>>();
    shared::<ResponseFuture<Bytes>>();
    shared::<Pages>();
    shared::<Items>();
    shared::<(KeyLimits, Limits, RetryPolicy, Connection)>();
    cloned::<(
        Client,
        Pets,
        Store,
        ListPets,
        ApiKey,
        ErrorKind,
        NewPet,
        Response<Pet>,
    )>();
    // A `CachingProvider` is `Clone` even if its provider is not.
    cloned::<(
        CachingProvider<NotClone>,
        FileStore,
        RedisStore,
        ErrorBuilder,
    )>();
    cloned::<FakeService<NotClone>>();
    future::<ResponseFuture<Bytes>>();
    stream::<Pages>();
    stream::<Items>();
}

/// An error is one word, so that a `Result` is as large as its value.
#[test]
fn errors_and_futures_are_small() {
    assert_eq!(size_of::<Error>(), size_of::<usize>());
    assert_eq!(size_of::<CallFuture<Page<Pet>>>(), 2 * size_of::<usize>());
    assert!(size_of::<Client>() <= 128, "{}", size_of::<Client>());
}
