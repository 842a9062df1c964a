//! Tests of a GET and a POST with every fault of the mock.

use std::num::NonZeroU32;

use http::{
    HeaderValue,
    header::{CONTENT_TYPE, DATE},
};
use petstore_client::{Client, ErrorKind, NewPet, RequestOptions};
use petstore_mock::{
    Effect, FaultGuard, HeaderField, MockServer, Operation, Plan, RateFault, RetryAfter, Seed,
    SeedPet,
};
use tokio::time::Instant;

use crate::client::kit::{builder, key, list_meta, secs};

/// A mock with one pet that follows the runtime's time.
async fn mock() -> MockServer {
    let builder = crate::client::kit::mock(key(), Plan::default_enterprise());
    builder
        .seed(Seed::new().pet(SeedPet::new("Rex", 7)))
        .start()
        .await
        .unwrap()
}

fn client(server: &MockServer) -> Client {
    builder(server.url()).build().unwrap()
}

fn on(server: &MockServer, operation: Operation, effect: Effect) -> FaultGuard {
    server.faults().on(operation).first(1).apply(effect)
}

/// Faults that lose a response, or that are temporary.
fn losses() -> Vec<Effect> {
    vec![
        Effect::Reset {
            after_body_bytes: None,
        },
        Effect::Reset {
            after_body_bytes: Some(0),
        },
        Effect::Reset {
            after_body_bytes: Some(3),
        },
        Effect::EmptyReply,
        Effect::Cut {
            after_body_bytes: 0,
        },
        Effect::Cut {
            after_body_bytes: 3,
        },
        Effect::Hang {
            after_body_bytes: None,
        },
        Effect::Hang {
            after_body_bytes: Some(0),
        },
        Effect::Hang {
            after_body_bytes: Some(3),
        },
        Effect::Delay(secs(86_400).into()),
        Effect::Trickle {
            bytes: NonZeroU32::MIN,
            every_seconds: secs(1),
        },
        Effect::status(408),
        Effect::status(500),
        Effect::bare_status(502),
        Effect::status(503),
        Effect::All(vec![
            Effect::status(504),
            Effect::Body {
                text: "<html>".to_owned(),
            },
        ]),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_get_is_retried_however_its_response_is_lost() {
    for effect in losses() {
        let server = mock().await;
        let fault = on(&server, Operation::ListPets, effect.clone());
        let page = client(&server).pets().list().with_meta().await;
        let page = page.unwrap_or_else(|error| panic!("{effect:?}: {error}"));
        assert_eq!(
            (page.meta.attempts(), page.value.len(), fault.hits()),
            (2, 1, 1),
            "{effect:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_post_with_a_lost_response_is_not_retried() {
    for effect in losses() {
        let server = mock().await;
        let fault = server
            .faults()
            .on(Operation::CreatePet)
            .processed(true)
            .apply(effect.clone());
        let error = client(&server)
            .pets()
            .create(&NewPet::new("Tom", 1))
            .await
            .unwrap_err();
        assert_eq!(
            (error.attempts(), fault.matched(), fault.hits()),
            (1, 1, 1),
            "{effect:?}"
        );
        assert!(error.may_have_been_processed(), "{effect:?}: {error}");
        drop(fault);
        let pets = client(&server).pets().list().await.unwrap();
        assert_eq!(pets.len(), 2, "{effect:?}: it was processed once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_post_that_may_not_have_been_processed_is_not_resent() {
    let server = mock().await;
    let _fault = server
        .faults()
        .on(Operation::CreatePet)
        .processed(false)
        .reset();
    let error = client(&server)
        .pets()
        .create(&NewPet::new("Tom", 1))
        .await
        .unwrap_err();
    assert!(
        error.may_have_been_processed() && error.kind() == ErrorKind::Interrupted,
        "{error}"
    );
    assert_eq!(client(&server).pets().list().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_post_that_was_refused_is_sent_again_and_processed_once() {
    let server = mock().await;
    let refused = Effect::All(vec![
        Effect::status(429),
        Effect::RetryAfter(RetryAfter::Seconds(2)),
    ]);
    let fault = on(&server, Operation::CreatePet, refused);
    let pet = client(&server)
        .pets()
        .create(&NewPet::new("Tom", 1))
        .with_meta()
        .await
        .unwrap();
    assert_eq!((pet.meta.attempts(), pet.value.id, fault.hits()), (2, 2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_makes_no_sense_harms_nobody() {
    for form in [
        RetryAfter::Text(String::new()),
        RetryAfter::Text("soon".to_owned()),
    ] {
        let server = mock().await;
        let effect = [Effect::status(503), Effect::RetryAfter(form)];
        let _fault = on(&server, Operation::ListPets, Effect::All(effect.into()));
        assert_eq!(list_meta(&client(&server)).await.attempts(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn headers_that_are_off_do_not_keep_a_page_from_being_read() {
    let html = HeaderValue::from_static("text/html");
    let date = HeaderValue::from_static;
    for effect in [
        Effect::RateHeaders(RateFault::Missing),
        Effect::RateHeaders(RateFault::Garbage),
        Effect::RateHeaders(RateFault::Wrong {
            limit: Some(0),
            remaining: Some(u64::MAX),
            reset: Some(0),
        }),
        Effect::SetHeader(HeaderField::new(
            DATE,
            date("Fri, 31 Dec 9999 23:59:59 GMT"),
        )),
        Effect::SetHeader(HeaderField::new(
            DATE,
            date("Thu, 01 Jan 1970 00:00:00 GMT"),
        )),
        Effect::RetryAfter(RetryAfter::Text("soon".to_owned())),
        Effect::SetHeader(HeaderField::new(CONTENT_TYPE, None)),
        Effect::SetHeader(HeaderField::new(CONTENT_TYPE, html)),
        Effect::SetHeader(HeaderField::new(DATE, None)),
    ] {
        let server = mock().await;
        let fault = server.faults().on_all().apply(effect.clone());
        for _ in 0..3 {
            let page = client(&server).pets().list().with_meta().await;
            let page = page.unwrap_or_else(|error| panic!("{effect:?}: {error}"));
            assert_eq!((page.value.len(), page.meta.attempts()), (1, 1));
        }
        assert_eq!(fault.hits(), 3, "{effect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_is_waited_for_within_the_time_that_was_given() {
    let server = mock().await;
    let _slow = server.faults().on_all().apply(Effect::Trickle {
        bytes: NonZeroU32::new(20).unwrap(),
        every_seconds: secs(1),
    });
    let options = RequestOptions::new().attempt_timeout(secs(300));
    let options = options.timeout(secs(600));
    let began = Instant::now();
    let page = client(&server)
        .pets()
        .list()
        .options(&options)
        .with_meta()
        .await
        .unwrap();
    assert_eq!((page.meta.attempts(), page.value.len()), (1, 1));
    assert!(
        began.elapsed() >= secs(10),
        "more than 200 bytes, 20 a second"
    );
}
