//! Tests of assertions about requests, and of their messages.

use std::panic::{AssertUnwindSafe, catch_unwind};

use petstore_mock::{Operation, Pattern, Plan};
use reqwest::Method;
use serde_json::json;

use super::support::{Mock, REX, start, start_with};

/// Starts a mock, and sends it two lists, one GET of a pet, and two POSTs.
async fn asked() -> Mock {
    let mock = start().await;
    mock.get("/v1/pets?limit=5&status=sold").await;
    mock.get_as("free-key", "/v1/pets?limit=%35").await;
    mock.get("/v1/pets/99").await;
    mock.post(REX).await;
    mock.post(r#"{"name": "Tom", "categoryId": 7, "status": "sold"}"#)
        .await;
    mock
}

/// Returns the message of a failing assertion.
fn failure(assertion: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(assertion)).expect_err("a panic");
    match panic.downcast_ref::<&str>() {
        Some(text) => (*text).to_owned(),
        None => panic
            .downcast_ref::<String>()
            .expect("it has a message")
            .clone(),
    }
}

fn creates() -> Pattern {
    Operation::CreatePet.into()
}

#[tokio::test]
async fn counts_what_every_condition_means() {
    let mock = asked().await;
    let verify = |pattern: Pattern, count: usize| mock.server.verify(pattern, count);
    verify(Pattern::any(), 5);
    verify(Pattern::any().method(Method::GET), 3);
    verify(Pattern::any().path("/v1/pets"), 4);
    verify(Pattern::any().query("limit", "5"), 2);
    verify(Pattern::any().query("limit", ""), 0);
    verify(Pattern::any().header("content-type", "application/json"), 2);
    verify(Pattern::any().key("free-key"), 1);
    verify(Pattern::any().key("enterprise-key"), 4);
    verify(Pattern::any().key("no-key"), 0);
    verify(Pattern::any().status(404), 1);
    verify(creates().json(json!({"categoryId": 7, "name": "Rex"})), 1);
    verify(creates().json(json!({"name": "Tom"})), 0);
    verify(creates().json_including(json!({"name": "Tom"})), 1);
    verify(creates().body(r#"{"name": "Rex", "categoryId": 7}"#), 1);
    mock.server.verify(Operation::GetPet, 1..=2);
    mock.server.verify(.., 5..);
}

#[tokio::test]
async fn a_failure_shows_the_closest_requests_and_how_they_differ() {
    let mock = asked().await;
    let wanted = creates()
        .json(json!({"categoryId": 8, "name": "Rex"}))
        .status(201);
    let text = failure(|| mock.server.verify(wanted, 1));
    let expected = r#"expected 1 request with operation createPet, body {"categoryId":8,"name":"Rex"}, status 201, but 0 of 5 came
the nearest:
  request 4, POST /v1/pets -> 201
    its body differs: /categoryId is 7, not 8
  request 5, POST /v1/pets -> 201
    its body differs: /categoryId is 7, not 8; /name is "Tom", not "Rex"; /status is "sold", but not expected
  request 1, GET /v1/pets?limit=5&status=sold -> 200
    its operation is listPets
    it has no body
    its status is 200
  and 2 more"#;
    assert_eq!(text, expected);
}

#[tokio::test]
async fn a_failure_shows_surplus_requests() {
    let mock = asked().await;
    let text = failure(|| mock.server.verify(Operation::GetPet, 0));
    let expected = "expected no request with operation getPet, but 1 of 5 came\nthese did:\n  \
                    request 3, GET /v1/pets/99 -> 404";
    assert_eq!(text, expected);
}

#[tokio::test]
async fn the_order_is_that_of_arrival_and_others_may_come_in_between() {
    let mock = asked().await;
    mock.server
        .verify_order([Operation::ListPets, Operation::GetPet, Operation::CreatePet]);
    let name = |name: &str| creates().json_including(json!({ "name": name }));
    mock.server.verify_order([name("Rex"), name("Tom")]);
    let text = failure(|| {
        mock.server
            .verify_order([Operation::GetPet.into(), name("Tom"), name("Rex")]);
    });
    let expected = r#"expected requests in this order:
  1. operation getPet: request 3
  2. operation createPet, body with {"name":"Tom"}: request 5
  3. operation createPet, body with {"name":"Rex"}: did not come after that
request 4 fits 3., but came before"#;
    assert_eq!(text, expected);
}

#[tokio::test]
async fn expectations_are_checked_at_the_end_of_the_scope() {
    let mock = asked().await;
    {
        let _pets = mock.server.expect(Operation::ListPets, 1);
        let _none = mock.server.expect(Operation::GetPet, 0);
        mock.get("/v1/pets").await;
    }
    let missing = mock.server.expect(Operation::ListPets, 1);
    assert!(
        failure(|| drop(missing)).starts_with("expected 1 request with operation listPets, but 0")
    );
    let early = mock.server.expect(Operation::ListPets, 1..);
    assert!(failure(|| early.verify()).contains("but 0 of 0 came"));
    let unwinding = failure(|| {
        let _missing = mock.server.expect(Operation::ListPets, 1);
        panic!("something else");
    });
    assert_eq!(unwinding, "something else");
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
    let after = mock.server.expect(Operation::GetPet, 0);
    mock.get("/v1/pets").await;
    after.verify();
}

#[tokio::test]
async fn no_failure_shows_a_key() {
    let secret = "sk-0123456789-secret";
    let mock = start_with(|builder| builder.key(secret, Plan::Free)).await;
    mock.get_as(secret, &format!("/v1/pets?token={secret}"))
        .await;
    let wanted = Pattern::any()
        .key(secret)
        .query("token", secret)
        .header("x-key", secret)
        .status(500);
    assert_eq!(
        format!("{:?}", Pattern::any().key(secret)),
        "Pattern([key ***])"
    );
    let text = failure(|| mock.server.verify(wanted, 1));
    assert!(
        text.contains("key #1 …cret (free)") && !text.contains("0123456789"),
        "{text}"
    );
}
