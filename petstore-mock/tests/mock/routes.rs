//! Tests of own routes.

use http::Method;
use petstore_mock::{Admission, MockServer, Operation, RouteResponse};
use serde_json::json;

use super::support::{REX, Reply, client, reply};

async fn start() -> MockServer {
    let put = RouteResponse::json(&json!({"id": 7})).with_status(202);
    let builder = MockServer::builder().route(Method::PUT, "/pets/{petId}", put.clone());
    let builder = builder.route(Method::PUT, "/pets/9", put);
    let seven = RouteResponse::text("seven");
    let builder = builder.route(Method::GET, "/store/inventory", seven);
    builder.start().await.unwrap()
}

async fn send(server: &MockServer, method: Method, path: &str, key: &str) -> Reply {
    let request = client().request(method, format!("{}{path}", server.url()));
    reply(request.bearer_auth(key).body(REX)).await
}

#[tokio::test]
async fn an_own_route_has_keys_quotas_and_a_place_in_the_journal() {
    let server = start().await;
    let put = send(&server, Method::PUT, "/pets/9", "free-key").await;
    assert_eq!((put.status, &*put.body), (202, r#"{"id":7}"#));
    assert_eq!((put.rate().0, put.rate().1), (60, 59));
    let stranger = send(&server, Method::PUT, "/pets/9", "no-key").await;
    stranger.expect_error(401, "unauthorized");
    let last = &server.requests((Method::PUT, "/pets/{id}"))[0];
    assert_eq!(
        (last.status, last.admission),
        (Some(202), Admission::Admitted)
    );
    assert_eq!((last.operation, &*last.body), (None, REX.as_bytes()));
    server.verify((Method::PUT, "/v1/pets/9"), 2);
    let got = send(&server, Method::GET, "/pets/9", "free-key").await;
    assert_eq!(got.status, 200, "the contract's operation stays");
    server.verify(Operation::GetPet, 1);
}

#[tokio::test]
async fn head_options_and_allow_include_own_routes() {
    let server = start().await;
    let head = send(&server, Method::HEAD, "/store/inventory", "free-key").await;
    assert_eq!((head.status, head.header("content-length")), (200, "5"));
    assert_eq!(head.body, "");
    for (method, path, allow) in [
        (Method::OPTIONS, "/pets/9", "GET, HEAD, PUT"),
        (Method::POST, "/store/inventory", "GET, HEAD"),
    ] {
        let refused = send(&server, method, path, "free-key").await;
        refused.expect_error(405, "method_not_allowed");
        assert_eq!(refused.header("allow"), allow);
    }
    let preflight = client().request(Method::OPTIONS, format!("{}/pets/9", server.url()));
    let preflight = preflight.header("origin", "http://localhost:3000");
    let preflight = reply(preflight.header("access-control-request-method", "PUT")).await;
    let methods = preflight.header("access-control-allow-methods");
    assert_eq!(methods, "*");
    let unknown = send(&server, Method::GET, "/store/inventori", "free-key").await;
    let listed =
        "GET /v1/store/orders, PUT /v1/pets/{petId}, PUT /v1/pets/9, GET /v1/store/inventory;";
    assert!(unknown.message().contains(listed), "{}", unknown.body);
}
