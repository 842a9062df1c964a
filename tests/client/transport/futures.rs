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
use crate::client::wire::{Act, Wire};

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

fn shared<T: Send + Sync + Unpin + Debug + 'static>() {}
fn cloned<T: Clone>() {}
fn stream<T: Stream>() {}
fn future<T: Future>() {}

/// A provider's type that cannot be cloned.
struct NotClone;

#[test]
fn every_type_may_cross_threads_and_none_borrows() {
    shared::<(Client, ClientBuilder, ApiKey, Error, RequestOptions)>();
    shared::<(Pets, Store, Call<Pet>, ListPets, RawRequest, KeyLimits)>();
    shared::<(Response<Pet>, Meta, Page<Pet>, RateLimits, Deprecation)>();
    shared::<(Backoff, RetryBudget, RetryPolicy, Plan, Limits, Connection)>();
    shared::<(Tls, Proxy, TransportError, FileStore, StoreError)>();
    shared::<(QuotaWindow, Blocked, CachingProvider<ApiKey>)>();
    shared::<(BoxProvider, BoxTransport)>();
    shared::<(CallFuture<Pet>, CallFuture<Page<Pet>>)>();
    shared::<(ResponseFuture<Bytes>, Pages, Items)>();
    cloned::<(Client, Pets, Store, ListPets, ApiKey, ErrorKind)>();
    cloned::<(NewPet, Response<Pet>, RedisStore, ErrorBuilder)>();
    // Clones share the provider and the answers, which need not be `Clone`.
    cloned::<(CachingProvider<NotClone>, FakeService<NotClone>)>();
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
