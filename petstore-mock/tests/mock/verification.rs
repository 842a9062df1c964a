//! Tests of assertions about requests, and of their messages.

use std::panic::{AssertUnwindSafe, catch_unwind};

use petstore_mock::{Operation, Plan, Target};
use reqwest::Method;

use super::support::{REX, start, start_with};

/// Returns the message of a failing assertion.
fn failure(assertion: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(assertion)).expect_err("a panic");
    *panic.downcast::<String>().expect("it has a message")
}

#[tokio::test]
async fn counts_the_requests_of_a_target_and_shows_the_last_if_it_fails() {
    let mock = start().await;
    assert_eq!(
        failure(|| mock.server.verify((Method::PUT, "/pets/{petId}"), 1..)),
        "expected at least 1 request of PUT /v1/pets/{petId}, but 0 came; the journal is empty"
    );
    mock.get("/v1/pets?limit=5&status=sold").await;
    mock.get_as("free-key", "/v1/%70ets?limit=5").await;
    mock.get("/v1/pets/99").await;
    mock.post(REX).await;
    let targets: [(Target, usize); 7] = [
        ((..).into(), 4),
        (Operation::ListPets.into(), 2),
        ((Method::GET, "/pets").into(), 2),
        ((Method::GET, "/v1/pets/{id}").into(), 1),
        ((Method::GET, "/pets/7").into(), 0),
        ((Method::POST, "/pets").into(), 1),
        ((Method::PUT, "/pets").into(), 0),
    ];
    for (target, count) in targets {
        assert_eq!(mock.server.requests(target.clone()).len(), count);
        mock.server.verify(target, count);
    }
    mock.server.verify(Operation::GetPet, 1..=2);
    mock.server.verify(.., 4..);
    assert_eq!(
        failure(|| mock.server.verify(Operation::GetPet, 0)),
        "expected no request of getPet, but 1 came; the last requests were:\n  \
         #1 GET /v1/pets?limit=5&status=sold -> 200\n  \
         #2 GET /v1/%70ets?limit=5 -> 200\n  \
         #3 GET /v1/pets/99 -> 404\n  \
         #4 POST /v1/pets -> 201"
    );
}

#[tokio::test]
async fn dropped_requests_make_an_assertion_uncertain() {
    let mock = start_with(|builder| builder.journal(2)).await;
    for path in ["/v1/pets/1", "/v1/pets", "/v1/pets"] {
        mock.get(path).await;
    }
    mock.server.verify(Operation::ListPets, 1..);
    let text = failure(|| mock.server.verify(Operation::GetPet, 0));
    assert!(text.contains("the journal, but it has dropped"), "{text}");
}

#[tokio::test]
async fn no_failure_shows_a_key() {
    let secret = "sk-0123456789-secret";
    let mock = start_with(|builder| builder.key(secret, Plan::Free)).await;
    let path = format!("/v1/pets?token={secret}");
    mock.get_as(secret, &path).await;
    let text = failure(|| mock.server.verify(Operation::ListPets, 2));
    assert!(text.contains("/v1/pets?token=*** -> 200"), "{text}");
}
