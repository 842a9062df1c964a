//! What programs add to typed calls: headers, hooks that write headers, and a wrapped transport.

use std::sync::Mutex;
use std::time::Duration;

use petstore_client::bytes::Bytes;
use petstore_client::http::{HeaderValue, Method, Request, Response, StatusCode};
use petstore_client::transport::{Builtin, SendMark, Transport, TransportError, transport_fn};
use petstore_client::{ErrorKind, NewPet, RequestOptions};
use petstore_mock::Plan;

use super::kit::{REX, answer, builder, key, list_meta, mock, no_pets, serve};
use super::wire::Wire;

/// Returns the values of a header in the server's requests.
fn values(server: &Wire, name: &str) -> Vec<String> {
    let requests = server.seen();
    let value = |seen: &super::Seen| seen.header(name).unwrap_or_default().to_owned();
    requests.iter().map(value).collect()
}

#[tokio::test]
async fn every_call_takes_a_header_and_sends_it_with_each_attempt() {
    let failing = || answer(503, &[], "");
    let (server, client) = serve(vec![failing(), no_pets(), failing(), no_pets(), no_pets()]);
    client.pets().list().header("X-Tag", "a").await.unwrap();
    let orders = client.store().orders().header("x-tag", "b");
    orders.await.unwrap();
    let request = client.request(Method::GET, "/pets").header("X-Tag", "c");
    request.await.unwrap();
    assert_eq!(values(&server, "x-tag"), ["a", "a", "b", "b", "c"]);
}

#[tokio::test]
async fn a_list_takes_parameters_that_it_does_not_know() {
    let next = [("Link", "</v1/pets?cursor=2>; rel=\"next\"")];
    let (server, client) = serve(vec![answer(200, &next, "[]"), no_pets()]);
    let list = client.pets().list().status("sold").query("tag", "a b");
    let mut pages = list.query("tag", 2).limit(5).pages();
    while pages.try_next().await.unwrap().is_some() {}
    let first = "/v1/pets?status=sold&tag=a+b&tag=2&limit=5";
    assert_eq!(server.targets(), [first, "/v1/pets?cursor=2"]);
    for name in ["limit", "status"] {
        let error = client.pets().list().query(name, 5).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        let advice = format!("set the parameter `{name}` with the method `{name}`");
        assert!(error.to_string().contains(&advice), "{error}");
    }
}

#[tokio::test]
async fn a_content_type_replaces_that_of_the_body() {
    let (server, client) = serve(vec![answer(201, &[], REX), no_pets(), no_pets()]);
    let rex = NewPet::new("Rex", 7);
    let own = |name: &str| format!("application/vnd.{name}+json");
    let create = client.pets().create(&rex);
    create.header("content-type", own("a")).await.unwrap();
    let post = || client.request(Method::POST, "/pets");
    let after = post().json(&rex).header("Content-Type", own("b"));
    after.await.unwrap();
    let before = post().header("Content-Type", own("c")).json(&rex);
    before.await.unwrap();
    for (request, name) in server.seen().iter().zip(["a", "b", "c"]) {
        let sent: Vec<_> = request.values("content-type").collect();
        assert_eq!(sent, [own(name)]);
    }
}

#[tokio::test]
async fn headers_of_options_are_added_to_pages() {
    let next = [("Link", "</pets?cursor=2>; rel=\"next\"")];
    let (server, client) = serve(vec![answer(200, &next, "[]"), no_pets(), no_pets()]);
    let batch = RequestOptions::new().header("X-Tag", "batch");
    let client = client.with_options(&batch);
    let mut pages = client.pets().list().pages();
    while pages.try_next().await.unwrap().is_some() {}
    client.pets().list().header("X-Tag", "own").await.unwrap();
    assert_eq!(values(&server, "x-tag"), ["batch", "batch", "own"]);
}

#[tokio::test]
async fn reserved_headers_are_refused_before_anything_is_sent() {
    let (server, client) = serve(vec![no_pets()]);
    for name in ["Authorization", "Host", "content-length", "Connection"] {
        let said = format!("the client sets the header `{}`", name.to_lowercase());
        let error = client.pets().list().header(name, "x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{name}: {error}");
        assert!(error.to_string().contains(&said), "{error}");
    }
    let options = RequestOptions::new().header("Host", "x");
    let error = client.pets().list().options(&options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn hooks_write_headers_for_each_attempt_and_never_see_the_key() {
    let server = Wire::of(vec![answer(503, &[], ""), no_pets()]);
    let client = builder(&server.base())
        .on_request(|request| {
            assert!(request.headers().get("authorization").is_none());
            assert_eq!(request.operation(), "listPets");
            assert!(request.url().path().ends_with("/pets") && request.call_id() > 0);
            let trace = format!("trace-{}", request.attempt());
            request.insert_header("traceparent", trace).unwrap();
            let refused = request.insert_header("Authorization", "mine").unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidRequest);
        })
        .on_request(|request| {
            let before = request.headers()["traceparent"].clone();
            let before = before.to_str().unwrap();
            request.insert_header("x-second", before).unwrap();
        })
        .build()
        .unwrap();
    client.pets().list().await.unwrap();
    for name in ["traceparent", "x-second"] {
        assert_eq!(values(&server, name), ["trace-1", "trace-2"]);
    }
}

/// Sends a header, and answers from its cache if the service responds 304.
struct Caching(Builtin);

impl Transport for Caching {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let wrapped = HeaderValue::from_static("yes");
        request.headers_mut().insert("x-wrapped", wrapped);
        let mut response = self.0.send(request).await?;
        if response.status() == StatusCode::NOT_MODIFIED {
            *response.status_mut() = StatusCode::OK;
            *response.body_mut() = Bytes::from_static(b"[]");
        }
        Ok(response)
    }
}

#[tokio::test]
async fn a_wrapper_sees_each_attempt_and_may_change_it() {
    let server = Wire::of(vec![answer(503, &[], ""), answer(304, &[], "")]);
    let client = builder(&server.base()).wrap_transport(Caching);
    let client = client.build().unwrap();
    assert_eq!(list_meta(&client).await.attempts(), 2);
    assert_eq!(values(&server, "x-wrapped"), ["yes", "yes"]);
}

#[test]
fn a_client_either_wraps_or_replaces_the_transport() {
    let down = transport_fn(|_| async { Err(TransportError::connect("down")) });
    let both = builder("https://petstore.test").transport(down);
    let both = both.wrap_transport(|builtin| builtin);
    let error = both.build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("`wrap_transport`"), "{error}");
}

/// A wrapper that answers all requests after the first one itself, as if no quota were left.
struct Cache {
    builtin: Builtin,
    stored: Mutex<Option<Response<Bytes>>>,
}

impl Transport for Cache {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let stored = self.stored.lock().unwrap().clone();
        if let Some(stored) = stored {
            let _unset = SendMark::take(&mut request);
            return Ok(stored);
        }
        let response = self.builtin.send(request).await?;
        let mut stored = response.clone();
        let used_up = HeaderValue::from_static("0");
        let headers = stored.headers_mut();
        headers.insert("x-ratelimit-remaining", used_up);
        *self.stored.lock().unwrap() = Some(stored);
        Ok(response)
    }
}

#[tokio::test]
async fn an_answer_of_the_transport_itself_uses_no_quota() {
    let server = mock(key(), Plan::Free).start().await.unwrap();
    let cached = |builtin| Cache {
        builtin,
        stored: Mutex::default(),
    };
    let client = builder(server.url()).isolated_limits();
    let client = client.wrap_transport(cached).build().unwrap();
    for _ in 0..100 {
        let list = client.pets().list().max_wait(Duration::ZERO);
        assert_eq!(list.await.unwrap().len(), 20);
    }
    assert_eq!(server.requests(..).len(), 1);
    assert_eq!(client.limits().snapshot().windows[0].remaining, 59);
}
