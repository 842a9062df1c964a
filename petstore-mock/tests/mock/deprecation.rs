//! Tests of the announcement and the removal of `GET /pets/{petId}`.

use petstore_mock::Plan;
use reqwest::Method;

use super::support::{NOW, Reply, reply, start, start_with};

/// 2030-12-05T00:00:00Z.
const REMOVAL: u64 = 1_922_659_200;

#[track_caller]
fn expect_announcement(reply: &Reply) {
    for (name, value) in [
        ("deprecation", "@1764892800"),
        ("sunset", "Thu, 05 Dec 2030 00:00:00 GMT"),
        ("link", "</v1/pets>; rel=\"successor-version\""),
    ] {
        assert_eq!(reply.header(name), value);
    }
}

#[tokio::test]
async fn every_response_of_the_operation_and_no_other_announces_the_removal() {
    let (few, rest) = (Plan::enterprise(2, 9), Plan::default_enterprise());
    let mock = start_with(|it| it.key("few", few).key("enterprise-key", rest)).await;
    for (key, path, status) in [
        ("nobody", "/v1/pets/1", 401),
        ("few", "/v1/pets/1", 200),
        ("few", "/v1/pets/99", 404),
        ("few", "/v1/pets/1", 429),
    ] {
        let announced = mock.get_as(key, path).await;
        assert_eq!(announced.status, status);
        expect_announcement(&announced);
    }
    let head = mock.request(Method::HEAD, "/v1/pets/1");
    expect_announcement(&reply(head.bearer_auth("enterprise-key")).await);
    for path in ["/v1/pets?limit=100", "/v1/store/orders", "/v1/pets/1/"] {
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
    let date = "Wed, 04 Dec 2030 23:59:59 GMT";
    assert_eq!((last.status, last.header("date")), (200, date));
    mock.advance(1);
    for id in ["1", "abc"] {
        let gone = mock.get(&format!("/v1/pets/{id}")).await;
        gone.expect_error(410, "operation_removed");
        expect_announcement(&gone);
    }
    let replacement = mock.get("/v1/pets").await;
    replacement.expect_status(200);
}
