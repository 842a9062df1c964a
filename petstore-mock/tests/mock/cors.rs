//! Tests of CORS.

use petstore_mock::Cors;
use reqwest::{Method, RequestBuilder};

use super::support::{Mock, Reply, reply, start, start_with};

const PAGE: &str = "http://localhost:3000";

fn from_a_page(mock: &Mock, method: Method, path: &str) -> RequestBuilder {
    mock.request(method, path).header("origin", PAGE)
}

async fn preflight(mock: &Mock, path: &str) -> Reply {
    let request = from_a_page(mock, Method::OPTIONS, path)
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "authorization,content-type",
        );
    reply(request).await
}

#[tokio::test]
async fn a_preflight_needs_no_key_and_costs_no_quota() {
    let mock = start().await;
    for path in ["/v1/pets", "/v1/pets/1", "/v1/store/orders"] {
        let reply = preflight(&mock, path).await;
        assert_eq!((reply.status, &*reply.body), (204, ""));
        assert_eq!(reply.header("access-control-allow-origin"), "*");
        assert_eq!(
            reply.header("access-control-allow-methods"),
            "GET, HEAD, POST"
        );
        assert_eq!(
            reply.header("access-control-allow-headers"),
            "Authorization, *"
        );
        assert_eq!(reply.rate().1, 60);
    }
    assert_eq!(mock.get_as("free-key", "/v1/pets").await.rate().1, 59);
}

#[tokio::test]
async fn a_page_can_read_every_answer_and_its_rate_limits() {
    let mock = start().await;
    for (path, key, status) in [
        ("/v1/pets", "free-key", 200),
        ("/v1/pets/99", "free-key", 404),
        ("/v1/pets", "x", 401),
    ] {
        let request = from_a_page(&mock, Method::GET, path).bearer_auth(key);
        let reply = reply(request).await;
        assert_eq!(
            (reply.status, reply.header("access-control-allow-origin")),
            (status, "*")
        );
        let exposed = reply.header("access-control-expose-headers").to_lowercase();
        for name in [
            "x-ratelimit-limit",
            "x-ratelimit-remaining",
            "x-ratelimit-reset",
            "retry-after",
            "link",
        ] {
            assert!(
                exposed.split(", ").any(|one| one == name),
                "{name}: {exposed}"
            );
        }
    }
    let no_page = mock.get("/v1/pets").await;
    assert_eq!(no_page.header("access-control-allow-origin"), "-");
}

#[tokio::test]
async fn one_origin_can_be_let_in_alone() {
    let mock = start_with(|builder| builder.cors(PAGE.parse().unwrap())).await;
    let reply = reply(from_a_page(&mock, Method::GET, "/v1/pets")).await;
    assert_eq!(reply.header("access-control-allow-origin"), PAGE);
    assert_eq!(reply.header("vary"), "Origin");
    assert_eq!(
        preflight(&mock, "/v1/pets")
            .await
            .header("access-control-allow-origin"),
        PAGE
    );
}

#[tokio::test]
async fn without_cors_there_are_no_headers_and_options_is_405() {
    let mock = start_with(|builder| builder.cors(Cors::off())).await;
    let refused = preflight(&mock, "/v1/pets").await;
    refused.expect_error(405, "method_not_allowed");
    assert_eq!(refused.header("access-control-allow-origin"), "-");
}

#[tokio::test]
async fn the_administration_is_never_open_to_pages() {
    let mock = start().await;
    for path in ["/_mock/health", "/_mock/clock/advance"] {
        let refused = preflight(&mock, path).await;
        assert_ne!(refused.status, 204);
        assert_eq!(refused.header("access-control-allow-origin"), "-", "{path}");
    }
    let health = reply(from_a_page(&mock, Method::GET, "/_mock/health")).await;
    assert_eq!(health.header("access-control-allow-origin"), "-");
}
