//! Tests of the announcement and the removal of `GET /pets/{petId}`.

use petstore_mock::Plan;
use reqwest::Method;

use super::support::{NOW, Reply, reply, start, start_with};

/// 2030-12-05T00:00:00Z.
const REMOVAL: u64 = 1_922_659_200;

#[track_caller]
fn expect_announcement(reply: &Reply) {
    assert_eq!(reply.header("deprecation"), "@1764892800");
    assert_eq!(reply.header("sunset"), "Thu, 05 Dec 2030 00:00:00 GMT");
    assert_eq!(
        reply.header("link"),
        "</v1/pets>; rel=\"successor-version\""
    );
}

#[tokio::test]
async fn every_response_of_the_operation_announces_the_removal() {
    let mock = start_with(|builder| {
        builder
            .key("one", Plan::enterprise(1, 9))
            .key("enterprise-key", Plan::default_enterprise())
    })
    .await;
    let unauthorized = reply(mock.request(Method::GET, "/v1/pets/1")).await;
    mock.get_as("one", "/v1/pets/1").await;
    let head = mock
        .request(Method::HEAD, "/v1/pets/1")
        .bearer_auth("enterprise-key");
    for (reply, status) in [
        (mock.get("/v1/pets/1").await, 200),
        (mock.get("/v1/pets/99").await, 404),
        (mock.get("/v1/pets/abc").await, 404),
        (unauthorized, 401),
        (mock.get_as("one", "/v1/pets/1").await, 429),
        (reply(head).await, 200),
    ] {
        assert_eq!(reply.status, status);
        expect_announcement(&reply);
    }
}

#[tokio::test]
async fn nothing_else_announces_a_removal() {
    let mock = start().await;
    for path in [
        "/v1/pets?limit=100",
        "/v1/store/orders",
        "/v1/pets/1/",
        "/v1/nowhere",
    ] {
        let reply = mock.get(path).await;
        for name in ["deprecation", "sunset", "link"] {
            assert_eq!(reply.header(name), "-", "{path} {name}");
        }
    }
}

#[tokio::test]
async fn the_operation_is_gone_from_the_removal_date_on() {
    let mock = start().await;
    mock.advance(REMOVAL - 1 - NOW);
    let last = mock.get("/v1/pets/1").await;
    assert_eq!(
        (last.status, last.header("date")),
        (200, "Wed, 04 Dec 2030 23:59:59 GMT")
    );
    mock.advance(1);
    for id in ["1", "99", "abc"] {
        let gone = mock.get(&format!("/v1/pets/{id}")).await;
        gone.expect_error(410, "operation_removed");
        expect_announcement(&gone);
        assert_eq!(gone.rate().0, 1_000_000);
    }
    let stranger = reply(mock.request(Method::GET, "/v1/pets/1")).await;
    stranger.expect_error(401, "unauthorized");
    mock.advance(86_400 * 60);
    mock.get("/v1/pets/1")
        .await
        .expect_error(410, "operation_removed");
    assert_eq!(
        mock.get("/v1/pets").await.status,
        200,
        "the replacement is there"
    );
    let put = reply(mock.request(Method::PUT, "/v1/pets/1")).await;
    put.expect_error(405, "method_not_allowed");
}
