//! What programs rely on beside the signatures: which types may cross threads, and their sizes.

use std::fmt::Debug;

use futures_util::Stream;
use petstore_client::operations::{Call, CallFuture, ListPets, Pets, RawRequest, Store};
use petstore_client::rate_limit::RateLimits;
use petstore_client::{
    ApiKey, Bytes, Client, ClientBuilder, Error, ErrorKind, Items, NewPet, Page, Pages, Pet,
    RequestOptions, Response, ResponseMeta,
};

fn shared<T: Send + Sync + Unpin + Debug + 'static>() {}
fn sent<T: Send + Unpin + Debug + 'static>() {}
fn cloned<T: Clone>() {}
fn stream<T: Stream>() {}
fn future<T: Future>() {}

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
    shared::<ResponseMeta>();
    shared::<Page<Pet>>();
    shared::<RateLimits>();
    shared::<RequestOptions>();
    sent::<ClientBuilder>();
    sent::<CallFuture<Pet>>();
    sent::<CallFuture<Page<Pet>>>();
    sent::<Pages<Page<Pet>>>();
    sent::<Pages<Bytes>>();
    sent::<Items<Pet>>();
    cloned::<(Client, Pets, Store, ListPets, ApiKey, ErrorKind, NewPet, Response<Pet>)>();
    future::<CallFuture<Bytes>>();
    stream::<Pages<Bytes>>();
    stream::<Items<Pet>>();
}

/// An error is one word, so that a `Result` is as large as its value.
#[test]
fn errors_and_futures_are_small() {
    assert_eq!(size_of::<Error>(), size_of::<usize>());
    assert_eq!(size_of::<CallFuture<Page<Pet>>>(), 3 * size_of::<usize>());
    assert!(size_of::<Client>() <= 128, "{}", size_of::<Client>());
}
