//! Tests of the module `test_util`.

use std::time::SystemTime;

use petstore_client::http::{HeaderMap, StatusCode};
use petstore_client::limits::{BlockReason, Blocked, FileStore, Limits, Quota, QuotaWindow};
use petstore_client::test_util::{self, ErrorBuilder, FakeService, problem};
use petstore_client::transport::TransportError;
use petstore_client::{Client, ErrorKind, Meta, NewPet, Page, Response};
use petstore_mock::{Clock, Plan};

use super::kit::{START, at, create, mock, secs};

#[tokio::test]
async fn a_fake_service_records_its_requests_without_the_key() {
    let fake = FakeService::new(|_| Err(TransportError::interrupted("reset by peer")));
    let client = test_util::builder().transport(fake.clone());
    let client = client.build().unwrap();
    let error = create(&client).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    let requests = fake.requests();
    assert_eq!((requests.len(), requests[0].uri().path()), (1, "/v1/pets"));
    assert!(!requests[0].headers().contains_key("authorization"));
    client.pets().list().await.unwrap_err();
    assert_eq!(fake.requests().len(), 5, "a GET is sent four times");
}

#[tokio::test]
async fn two_isolated_clients_with_one_key_share_no_limits() {
    let banned = || {
        test_util::client(|_| {
            let mut response = problem(StatusCode::TOO_MANY_REQUESTS, "key_banned", "")?;
            response.headers_mut().insert("retry-after", 999.into());
            Ok(response)
        })
    };
    let (one, two) = (banned(), banned());
    one.pets().list().await.unwrap_err();
    assert!(one.limits().snapshot().blocked.is_some());
    assert_eq!(two.limits().snapshot().blocked, None);
}

#[test]
fn errors_of_each_kind_can_be_made() {
    for (kind, may_have_been_processed) in [
        (ErrorKind::Connect, false),
        (ErrorKind::NotFound, false),
        (ErrorKind::Server, true),
        (ErrorKind::Timeout, true),
    ] {
        let error = ErrorBuilder::new(kind).attempts(3).build();
        assert_eq!((error.kind(), error.attempts()), (kind, 3));
        let processed = error.may_have_been_processed();
        assert_eq!(processed, may_have_been_processed, "{kind:?}");
    }
    let wait = secs(3);
    for kind in [ErrorKind::RateLimited, ErrorKind::Server] {
        let error = ErrorBuilder::new(kind).retry_after(wait).build();
        assert_eq!(error.retry_after(), Some(wait));
        assert!(error.retry_at().is_some());
    }
    let error = ErrorBuilder::response(StatusCode::CONFLICT, r#"{"code":"taken"}"#);
    let error = error.may_have_been_processed(true).build();
    assert_eq!(error.code(), Some("taken"));
    assert!(error.may_have_been_processed());
}

#[test]
fn values_of_a_response_can_be_made() {
    let mut headers = HeaderMap::new();
    headers.insert("deprecation", "true".parse().unwrap());
    let meta = Meta::default().with_headers(headers);
    let page = Page::from(vec![NewPet::new("Rex", 7).into_pet(1)]);
    let page = Response::from_parts(page, meta);
    assert_eq!(page.value[0].name, "Rex");
    assert!(page.meta.deprecation().is_some());
    let reset = SystemTime::UNIX_EPOCH;
    assert_eq!(QuotaWindow::new(Quota::Minute, 60, 7, reset).remaining, 7);
    let blocked = Blocked::new(BlockReason::Ban, reset, secs(1));
    assert_eq!(blocked.reason, BlockReason::Ban);
}

#[tokio::test]
async fn a_clock_that_is_moved_ends_a_wait_without_a_request() {
    let server = mock("test-key", Plan::Free).clock(Clock::frozen(at(START)));
    let server = server.start().await.unwrap();
    let clock = server.clock().clone();
    let builder = || Client::builder(server.url()).api_key("test-key");
    let client = builder().service_clock(move || clock.now());
    let client = client.build().unwrap();
    for _ in 0..60 {
        client.pets().list().limit(1).await.unwrap();
    }
    assert!(client.limits().snapshot().blocked.is_some());
    let waiting = tokio::spawn(client.pets().list().limit(1).send());
    while client.limits().snapshot().waiting == 0 {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished());
    server.clock().advance(secs(61));
    let blocked = client.limits().snapshot().blocked;
    assert_eq!(blocked, None, "it is known at once");
    waiting.await.unwrap().unwrap();
    assert_eq!(server.requests(..).len(), 61);
    let shared = FileStore::new(std::env::temp_dir());
    let both = builder().limits(Limits::new().store(shared));
    let error = both.service_clock(|| at(START)).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}
