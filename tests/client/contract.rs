//! Every status of the contract becomes a typed result.

use petstore_client::rate_limit::{BlockReason, Quota};
use petstore_client::{Client, Error, ErrorKind, More, NewPet, PetStatus, Response};
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::any};

use super::kit::{DATE, REX, base, client, once, reason};

async fn server(answer: ResponseTemplate) -> (MockServer, Client) {
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(answer).mount(&server).await;
    let client = client(&base(&server));
    (server, client)
}

fn json(status: u16, body: &str) -> ResponseTemplate {
    ResponseTemplate::new(status)
        .insert_header("date", DATE)
        .insert_header("x-ratelimit-limit", "60")
        .insert_header("x-ratelimit-remaining", "59")
        .insert_header("x-ratelimit-reset", "1800000023")
        .set_body_raw(body, "application/json")
}

fn fault(status: u16, code: &str) -> ResponseTemplate {
    json(status, &format!(r#"{{"code":"{code}","message":"no luck","status":{status}}}"#))
}

/// Checks what every error of the service shows.
fn assert_fault(error: &Error, status: u16, code: &str) {
    assert!(error.headers().is_some());
    assert_eq!(error.status().unwrap(), status);
    assert_eq!((error.code(), error.message()), (Some(code), Some("no luck")));
    assert_eq!(error.json::<serde_json::Value>().unwrap()["message"], "no luck");
    assert_eq!(error.headers().unwrap()["x-ratelimit-limit"], "60");
    assert_eq!(error.attempts(), 1);
    assert_eq!(error.decode_path(), None);
    assert!(!error.is_connect() && !error.is_timeout());
}

fn assert_head<T>(response: &Response<T>, status: u16) {
    assert_eq!(response.meta().status(), status);
    assert_eq!(response.meta().headers()["x-ratelimit-limit"], "60");
    let rate = response.meta().quota().unwrap();
    assert_eq!((rate.limit, rate.remaining), (60, 59));
    let reset = rate.reset.duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(reset.as_secs(), 1_800_000_023);
    assert_eq!(response.meta().attempts(), 1);
    assert!(response.meta().waited().is_zero());
}

#[tokio::test]
async fn a_list_of_pets() {
    let (_server, client) = server(json(200, &format!("[{REX}]"))).await;
    let page = client.pets().list().send().await.unwrap();
    assert_head(&page, 200);
    assert_eq!((page.len(), page.more()), (1, More::No));
    assert_eq!((page[0].id, page[0].name.as_str(), page[0].category_id), (1, "Rex", 7));
    assert_eq!(page[0].status, Some(PetStatus::Available));
    assert_eq!(page.meta().deprecation(), None);
}

#[tokio::test]
async fn a_created_pet() {
    let (_server, client) = server(json(201, REX)).await;
    let pet = client.pets().create(&NewPet::new("Rex", 7)).await.unwrap();
    assert_head(&pet, 201);
    assert_eq!(pet.into_inner().id, 1);
}

#[tokio::test]
#[expect(deprecated, reason = "it is part of the contract")]
async fn a_pet_that_was_found_or_was_not() {
    let (_server, client) = server(json(200, REX)).await;
    assert_head(&client.pets().get(1).await.unwrap(), 200);

    let (_server, client) = self::server(fault(404, "pet_not_found")).await;
    let error = client.pets().get(1).await.unwrap_err();
    assert_fault(&error, 404, "pet_not_found");
    assert_eq!((error.kind(), error.is_not_found()), (ErrorKind::NotFound, true));
    assert!(!error.may_have_been_processed());

    let (_server, client) = self::server(fault(410, "operation_removed")).await;
    let error = client.pets().get(1).await.unwrap_err();
    assert_fault(&error, 410, "operation_removed");
    assert_eq!((error.kind(), error.is_not_found()), (ErrorKind::Gone, false));
}

#[tokio::test]
async fn the_orders_as_whatever_they_are() {
    let (_server, client) = server(json(200, r#"[{"any":[1,null]}]"#)).await;
    let orders = client.store().orders().await.unwrap();
    assert_head(&orders, 200);
    assert_eq!(orders[0]["any"][0], 1);
}

#[tokio::test]
async fn a_body_that_the_service_refuses() {
    let (_server, client) = server(fault(400, "invalid_body")).await;
    let error = client.pets().create(&NewPet::new("", 7)).await.unwrap_err();
    assert_fault(&error, 400, "invalid_body");
    assert_eq!(error.kind(), ErrorKind::Rejected);
    assert!(!error.may_have_been_processed());
}

#[tokio::test]
#[expect(deprecated, reason = "it is part of the contract")]
async fn a_refused_key_on_every_operation() {
    let (server, client) = server(fault(401, "unauthorized")).await;
    let errors = [
        client.pets().list().send().await.unwrap_err(),
        client.pets().create(&NewPet::new("a", 1)).await.unwrap_err(),
        client.pets().get(1).await.unwrap_err(),
        client.store().orders().await.unwrap_err(),
    ];
    for (error, name) in errors.iter().zip(["listPets", "createPet", "getPet", "GET /store/orders"])
    {
        assert_fault(error, 401, "unauthorized");
        assert!(error.is_unauthorized() && !error.may_have_been_processed());
        assert_eq!(error.operation(), Some(name));
    }
    assert_eq!(server.received_requests().await.unwrap().len(), 4);
}

#[tokio::test]
async fn a_rate_limit_with_its_instant_and_quota() {
    let refusal = fault(429, "rate_limit_exceeded")
        .insert_header("x-ratelimit-remaining", "0")
        .insert_header("retry-after", "23");
    let (_server, client) = server(refusal).await;
    let error = client.store().orders().options(&once()).await.unwrap_err();
    assert_fault(&error, 429, "rate_limit_exceeded");
    assert!(error.is_rate_limited() && !error.may_have_been_processed());
    assert_eq!(reason(&error), Some(BlockReason::Quota(Quota::Minute)));
    let at = error.retry_at().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(at.as_secs(), 1_800_000_023);
    let wait = error.retry_after().unwrap().as_secs_f64();
    assert!((22.0..=23.0).contains(&wait), "{wait}");
}

#[tokio::test]
async fn a_ban_of_the_key() {
    let refusal = fault(429, "key_banned").insert_header("retry-after", "300");
    let (_server, client) = server(refusal).await;
    let error = client.store().orders().options(&once()).await.unwrap_err();
    assert_eq!(reason(&error), Some(BlockReason::Ban));
}

#[tokio::test]
async fn a_fault_of_the_service() {
    let (_server, client) = server(fault(500, "internal_error")).await;
    let error = client.pets().create(&NewPet::new("a", 1)).await.unwrap_err();
    assert_fault(&error, 500, "internal_error");
    assert_eq!(error.kind(), ErrorKind::Server);
    assert!(error.may_have_been_processed());
}
