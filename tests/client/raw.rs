//! Requests of a program's own: decoded, paged, declared safe to repeat, built and sent as they are.

use petstore_client::{Bytes, ErrorKind, HeaderName, HeaderValue, Method, Pet};
use serde_json::{Value, json};

use super::kit::{REX, answer, builder, client, no_pets};
use super::wire::{Act, Wire};

#[tokio::test]
async fn takes_any_value_that_can_be_shown_and_decodes_into_any_type() {
    let server = Wire::start(|_| answer(200, &[], format!("[{REX}]")));
    let client = client(&server.base());
    let request = client.request(Method::GET, "/pets").query("limit", 5).query("all", true);
    let request = request.queries([("status", "sold"), ("q", "a b")]).header("X-Number", 7);
    let name = HeaderName::from_static("x-name");
    let request = request.header(name, HeaderValue::from_static("v"));
    let pets = request.operation("soldPets").decode::<Vec<Pet>>().max_attempts(2).await.unwrap();
    assert_eq!((pets.len(), &*pets[0].name), (1, "Rex"));
    assert_eq!(server.targets(), ["/v1/pets?limit=5&all=true&status=sold&q=a+b"]);
    let wrong = client.request(Method::GET, "/pets").operation("soldPets").decode::<Pet>().await;
    assert_eq!(wrong.unwrap_err().operation(), Some("soldPets"));
}

#[tokio::test]
async fn a_post_that_is_declared_idempotent_is_sent_again_and_a_get_that_is_not_is_not() {
    let flaky = || Wire::of(vec![Act::Cut(Vec::new()), answer(200, &[], "{}")]);
    let server = flaky();
    let order = client(&server.base()).request(Method::POST, "/store/orders").json(&json!({}));
    let order = order.header("Idempotency-Key", "1").idempotent(true).await.unwrap();
    assert_eq!((order.meta().attempts(), server.count()), (2, 2));

    let server = flaky();
    let get = client(&server.base()).request(Method::GET, "/draw").idempotent(false);
    let error = get.await.unwrap_err();
    assert_eq!((error.kind(), server.count()), (ErrorKind::Interrupted, 1));
    assert!(error.to_string().contains("may have been processed"), "{error}");
}

#[tokio::test]
async fn pages_of_any_kind_are_followed_on_the_same_origin_until_they_repeat() {
    let server = Wire::of(vec![
        answer(200, &[("Link", "<?after=1>; rel=next")], r#"{"orders":[1]}"#),
        answer(200, &[("Link", "<http://evil.example/>; rel=next")], r#"{"orders":[2]}"#),
        no_pets(),
    ]);
    let mut pages = client(&server.base()).request(Method::GET, "/store/orders").pages();
    let mut found = Vec::new();
    let error = loop {
        match pages.try_next().await {
            Ok(page) => found.push(page.unwrap().json::<Value>().unwrap()["orders"][0].clone()),
            Err(error) => break error,
        }
    };
    assert_eq!(found, [1, 2]);
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Paging, Some("GET /store/orders")));
    assert!(pages.try_next().await.unwrap().is_none(), "it ends after its first error");
    assert_eq!(server.targets(), ["/v1/store/orders", "/v1/store/orders?after=1"]);
}

#[tokio::test]
async fn a_built_request_is_what_would_be_sent_and_can_be_sent() {
    let server = Wire::start(|_| answer(200, &[], "{}"));
    let client = client(&server.base());
    let raw = client.request(Method::PATCH, "/pets/1?x=1").json(&json!({"name": "Max"}));
    let built = raw.header("X-Trace", "7").build().unwrap();
    assert_eq!(
        (built.method(), built.uri().to_string()),
        (&Method::PATCH, server.base() + "/pets/1?x=1")
    );
    assert_eq!(built.body(), r#"{"name":"Max"}"#);
    assert_eq!(
        (&built.headers()["x-trace"], &built.headers()["content-type"]),
        (&HeaderValue::from_static("7"), &HeaderValue::from_static("application/json"),)
    );
    assert!(!built.headers().contains_key("authorization"));
    assert_eq!(server.count(), 0);
    client.execute(built).await.unwrap();
    assert_eq!(server.targets(), ["/v1/pets/1?x=1"]);

    let list = client.pets().list().limit(5).build().unwrap();
    assert_eq!(list.uri().to_string(), server.base() + "/pets?limit=5");
    assert_eq!(
        client.pets().list().limit(0).build().unwrap_err().kind(),
        ErrorKind::InvalidRequest
    );
    assert!(client.request(Method::GET, "../x").build().is_err());
}

#[tokio::test]
async fn a_finished_request_never_takes_the_key_to_another_origin() {
    let thief = Wire::start(|_| no_pets());
    let server = Wire::start(|_| no_pets());
    let client = builder(&server.base()).build().unwrap();
    for address in [thief.base(), "/v1/pets".to_owned(), "http://evil.example/v1/pets".to_owned()] {
        let request = http::Request::get(address).body(Bytes::new()).unwrap();
        let error = client.execute(request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
    }
    let request = http::Request::get(server.base()).header("authorization", "Bearer other");
    let error = client.execute(request.body(Bytes::new()).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
    assert_eq!((thief.count(), server.count()), (0, 0));
}
