//! Tests of a GET and a POST whose responses are lost.

use petstore_client::{Client, NewPet};
use petstore_mock::{Effect, MockServer, Operation, Plan, Seed, SeedPet};

use crate::client::kit::{self, REX, answer, builder, create, http, key, serve};
use crate::client::wire::Act;

/// A mock with one pet that follows the runtime's time.
async fn mock() -> MockServer {
    let builder = kit::mock(key(), Plan::default_enterprise());
    builder
        .seed(Seed::none().pet(SeedPet::new("Rex", 7)))
        .start()
        .await
        .unwrap()
}

fn client(server: &MockServer) -> Client {
    builder(server.url()).build().unwrap()
}

/// Faults that lose a response, or that are temporary.
fn losses() -> Vec<Effect> {
    let before_the_body = None;
    vec![
        Effect::Reset {
            after_body_bytes: before_the_body,
        },
        Effect::Reset {
            after_body_bytes: Some(3),
        },
        Effect::EmptyReply {},
        Effect::Cut {
            after_body_bytes: 3,
        },
        Effect::Hang {
            after_body_bytes: before_the_body,
        },
        Effect::Status(408),
        Effect::All(vec![
            Effect::Status(502),
            Effect::Body {
                text: String::new(),
            },
        ]),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_get_is_retried_however_its_response_is_lost() {
    for effect in losses() {
        let server = mock().await;
        let fault = server.faults().on(Operation::ListPets).first(1);
        let fault = fault.apply(effect.clone());
        let page = client(&server).pets().list().with_meta().await;
        let page = page.unwrap_or_else(|error| panic!("{effect:?}: {error}"));
        assert_eq!((page.meta.attempts(), fault.hits()), (2, 1), "{effect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_post_with_a_lost_response_is_processed_once() {
    for effect in losses() {
        let server = mock().await;
        let fault = server.faults().on(Operation::CreatePet).processed(true);
        let fault = fault.apply(effect.clone());
        let tom = NewPet::new("Tom", 1);
        let error = client(&server).pets().create(&tom).await.unwrap_err();
        assert_eq!((error.attempts(), fault.hits()), (1, 1), "{effect:?}");
        assert!(error.may_have_been_processed(), "{effect:?}: {error}");
        drop(fault);
        let pets = client(&server).pets().list().await.unwrap();
        assert_eq!(pets.len(), 2, "{effect:?}");
    }
}

#[tokio::test]
async fn a_post_after_an_idle_connection_closed_takes_a_new_one() {
    let (server, client) = serve(vec![Act::Cut(http(200, &[], "[]")), answer(201, &[], REX)]);
    client.pets().list().await.unwrap();
    // The client can read the end of the connection before the next request.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    create(&client).await.unwrap();
    assert_eq!(server.count(), 2);
}
