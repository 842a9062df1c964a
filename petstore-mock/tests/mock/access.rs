//! Tests of access to the administration, and of CORS.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use petstore_mock::Builder;
use reqwest::Method;

use super::support::{Mock, Reply, client, reply, start, start_with};

const STEP: &str = r#"{"seconds": 60}"#;

#[tokio::test]
async fn a_page_of_another_site_can_not_move_the_clock() {
    let mock = start().await;
    for (origin, status) in [("https://evil.example", 404), (mock.server.origin(), 200)] {
        let request = mock.request(Method::POST, "/_mock/clock/advance");
        let answer = reply(request.header("origin", origin).body(STEP)).await;
        assert_eq!(answer.status, status, "{origin}");
    }
    // The host name of such a page may point to this machine.
    let port = mock.server.addr().port();
    for (name, status) in [("evil.example", 404), ("localhost", 200)] {
        let head = format!("GET /_mock/clock HTTP/1.1\r\nHost: {name}:{port}\r\n");
        let close = format!("{head}Connection: close\r\n\r\n");
        assert_eq!(mock.raw(close.as_bytes()).await.status, status, "{name}");
    }
}

/// The machine's address in its network, if any, which simulates another machine.
fn outside() -> Option<IpAddr> {
    let probe = UdpSocket::bind("0.0.0.0:0").unwrap();
    probe.connect("192.0.2.1:9").ok()?;
    Some(probe.local_addr().unwrap().ip())
}

/// Starts a mock on all addresses, and returns its origin for other machines.
async fn on_all_addresses(set: impl FnOnce(Builder) -> Builder) -> Option<(Mock, String)> {
    let outside = outside()?;
    let mock = start_with(|builder| set(builder).addr(Ipv4Addr::UNSPECIFIED.into())).await;
    let origin = format!("http://{outside}:{}", mock.server.addr().port());
    Some((mock, origin))
}

#[tokio::test]
async fn other_machines_can_only_read_health_and_documents() {
    let Some((_mock, origin)) = on_all_addresses(|builder| builder).await else {
        return;
    };
    for path in ["health", "openapi.yaml"] {
        let open = reply(client().get(format!("{origin}/_mock/{path}"))).await;
        assert_eq!(open.status, 200, "{path}");
    }
    let step = client().post(format!("{origin}/_mock/clock/advance"));
    let refused = reply(step.body(STEP)).await;
    refused.expect_error(404, "route_not_found");
    assert!(refused.message().contains("--admin-token-file"));
}

#[tokio::test]
async fn other_machines_need_the_token() {
    let with_token = |builder: Builder| builder.admin_token("t0ken");
    let Some((mock, origin)) = on_all_addresses(with_token).await else {
        return;
    };
    let ask = || client().get(format!("{origin}/_mock/clock"));
    assert_eq!(reply(ask().bearer_auth("t0ken")).await.status, 200);
    for request in [ask(), ask().bearer_auth("enterprise-key")] {
        let refused = reply(request).await;
        refused.expect_error(401, "unauthorized");
        let challenge = refused.header("www-authenticate");
        assert_eq!(challenge, "Bearer realm=\"petstore-mock\"");
    }
    let here = mock.get("/_mock/clock").await;
    assert_eq!(here.status, 200, "this machine needs none");
}

const PAGE: &str = "http://localhost:3000";

async fn preflight(mock: &Mock, path: &str) -> Reply {
    let request = mock.request(Method::OPTIONS, path).header("origin", PAGE);
    let request = request.header("access-control-request-method", "POST");
    let fields = "authorization,content-type";
    reply(request.header("access-control-request-headers", fields)).await
}

async fn from_a_page(mock: &Mock, path: &str, key: &str) -> Reply {
    let request = mock.request(Method::GET, path).header("origin", PAGE);
    reply(request.bearer_auth(key)).await
}

#[tokio::test]
async fn a_preflight_needs_no_key_costs_no_quota_and_is_no_request_of_the_page() {
    let mock = start().await;
    let busy = mock.on(..).first(1).status(503);
    let reply = preflight(&mock, "/v1/pets").await;
    assert_eq!((reply.status, &*reply.body), (204, ""));
    for (name, value) in [
        ("access-control-allow-origin", "*"),
        ("access-control-allow-methods", "*"),
        ("access-control-allow-headers", "Authorization, *"),
    ] {
        assert_eq!(reply.header(name), value);
    }
    mock.server.verify(.., 0);
    assert_eq!(mock.server.report().requests(), 0);
    // The page can read the fault's response, too.
    let reply = from_a_page(&mock, "/v1/pets", "free-key").await;
    assert_eq!((reply.status, reply.rate().1), (503, 59));
    assert_eq!(reply.header("access-control-allow-origin"), "*");
    assert_eq!(busy.matched(), 1);
}

#[tokio::test]
async fn a_page_can_read_every_answer_and_its_rate_limits() {
    let mock = start().await;
    for (key, status) in [("free-key", 200), ("x", 401)] {
        let reply = from_a_page(&mock, "/v1/pets", key).await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.header("access-control-allow-origin"), "*");
        let exposed = reply.header("access-control-expose-headers").to_lowercase();
        for name in [
            "x-ratelimit-limit",
            "x-ratelimit-reset",
            "retry-after",
            "link",
        ] {
            let is_exposed = exposed.split(", ").any(|one| one == name);
            assert!(is_exposed, "{name}: {exposed}");
        }
    }
    let no_page = mock.get("/v1/pets").await;
    assert_eq!(no_page.header("access-control-allow-origin"), "-");
}

#[tokio::test]
async fn pages_of_other_origins_can_be_kept_out() {
    let mock = start_with(|builder| builder.cors(false)).await;
    let refused = preflight(&mock, "/v1/pets").await;
    refused.expect_error(405, "method_not_allowed");
    for reply in [refused, from_a_page(&mock, "/v1/pets", "free-key").await] {
        assert_eq!(reply.header("access-control-allow-origin"), "-");
    }
}

#[tokio::test]
async fn the_administration_is_never_open_to_pages() {
    let mock = start().await;
    for path in ["/_mock/health", "/_mock/clock/advance"] {
        let refused = preflight(&mock, path).await;
        assert_ne!(refused.status, 204);
        for reply in [refused, from_a_page(&mock, path, "x").await] {
            assert_eq!(reply.header("access-control-allow-origin"), "-", "{path}");
        }
    }
}
