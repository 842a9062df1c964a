//! Tests of access to the administration.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use petstore_mock::Builder;
use reqwest::Method;

use super::support::{Mock, client, reply, start, start_with};

const STEP: &str = r#"{"seconds": 60}"#;

#[tokio::test]
async fn a_page_of_another_site_can_not_move_the_clock() {
    let mock = start().await;
    let from = |origin: &str| {
        let request = mock.request(Method::POST, "/_mock/clock/advance");
        reply(request.header("origin", origin).body(STEP))
    };
    for origin in ["https://evil.example", "null", "http://localhost"] {
        from(origin).await.expect_error(404, "route_not_found");
    }
    assert_eq!(from(mock.server.origin()).await.status, 200);
}

#[tokio::test]
async fn a_page_whose_host_name_points_to_this_machine_is_refused() {
    let mock = start().await;
    let port = mock.server.addr().port();
    for (name, status) in [
        ("evil.example", 404),
        ("127.0.0.1", 200),
        ("localhost", 200),
    ] {
        let get = format!("GET /_mock/clock HTTP/1.1\r\nHost: {name}:{port}\r\n");
        let reply = mock
            .raw(format!("{get}Connection: close\r\n\r\n").as_bytes())
            .await;
        assert_eq!(reply.status, status, "{name}");
    }
}

/// The machine's address in its network, if any, which simulates another machine.
fn outside() -> Option<IpAddr> {
    let probe = UdpSocket::bind("0.0.0.0:0").unwrap();
    probe.connect("192.0.2.1:9").ok()?;
    Some(probe.local_addr().unwrap().ip())
}

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
    for path in ["health", "openapi.yaml", "admin.json"] {
        let reply = reply(client().get(format!("{origin}/_mock/{path}"))).await;
        assert_eq!(reply.status, 200, "{path}");
    }
    let url = format!("{origin}/_mock/clock/advance");
    reply(client().post(&url).body(STEP))
        .await
        .expect_error(404, "route_not_found");
    let refused = reply(client().get(&url)).await;
    refused.expect_error(404, "route_not_found");
    assert!(
        refused.message().contains("--admin-token-file"),
        "{}",
        refused.message()
    );
    reply(client().post(&url).bearer_auth("").body(STEP))
        .await
        .expect_error(404, "route_not_found");
}

#[tokio::test]
async fn other_machines_need_the_token() {
    let with_token = |builder: Builder| builder.admin_token("t0ken");
    let Some((mock, origin)) = on_all_addresses(with_token).await else {
        return;
    };
    let url = format!("{origin}/_mock/clock");
    let asked = |token: &str| reply(client().get(&url).bearer_auth(token));
    assert_eq!(asked("t0ken").await.status, 200);
    let refused = asked("enterprise-key").await;
    refused.expect_error(401, "unauthorized");
    assert_eq!(
        refused.header("www-authenticate"),
        "Bearer realm=\"petstore-mock\""
    );
    reply(client().get(&url))
        .await
        .expect_error(401, "unauthorized");
    assert_eq!(
        mock.get("/_mock/clock").await.status,
        200,
        "this machine needs none"
    );
    assert!(
        !format!(
            "{:?}",
            petstore_mock::MockServer::builder().admin_token("t0ken")
        )
        .contains("t0ken")
    );
}

#[tokio::test]
async fn a_token_that_can_not_be_sent_is_refused() {
    for token in ["", "a b", "\u{e9}"] {
        let error = petstore_mock::MockServer::builder()
            .admin_token(token)
            .start()
            .await
            .unwrap_err();
        assert!(error.to_string().contains("admin token"), "{error}");
    }
}
