//! Tests that futures, streams and types can be moved, shared and dropped.

use std::fmt::Debug;

use futures_util::Stream;
use petstore_client::auth::{BoxProvider, CachingProvider};
use petstore_client::bytes::Bytes;
use petstore_client::operations::{
    Call, CallFuture, Items, KeyLimits, ListPets, Pages, Pets, RawRequest, ResponseFuture, Store,
};
use petstore_client::transport::BoxTransport;
use petstore_client::{ApiKey, Client, ClientBuilder, Error, Page, Pet, Response};

use crate::client::kit::{no_pets, secs, serve};
use crate::client::wire::Act;

#[tokio::test(start_paused = true)]
async fn a_call_dropped_at_any_point_leaves_the_client_working() {
    let stalls: [&[u8]; 3] = [
        b"",
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
fn stream<T: Stream>() {}
fn future<T: Future>() {}

#[test]
fn every_type_may_cross_threads_and_none_borrows() {
    shared::<(Client, ClientBuilder, Error, Response<Pet>, Page<Pet>)>();
    shared::<(Pets, Store, Call<Pet>, ListPets, RawRequest, KeyLimits)>();
    shared::<(CallFuture<Pet>, ResponseFuture<Bytes>, Pages, Items)>();
    shared::<(BoxProvider, BoxTransport, CachingProvider<ApiKey>)>();
    future::<ResponseFuture<Bytes>>();
    stream::<Pages>();
    stream::<Items>();
}
