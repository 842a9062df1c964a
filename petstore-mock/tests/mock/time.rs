//! Tests of the clock.

use std::time::{Duration, SystemTime};

use petstore_mock::{Clock, MockServer};

use super::support::{NOW, at, client, reply, start};

#[tokio::test]
async fn the_date_is_the_clocks_on_every_response() {
    let mock = start().await;
    mock.advance(86_400);
    for path in ["/v1/pets", "/v1/nowhere", "/", "/_mock/health"] {
        let date = mock.get(path).await.header("date").to_owned();
        assert_eq!(date, "Fri, 02 Jan 2026 00:00:10 GMT", "{path}");
    }
}

#[tokio::test]
async fn time_and_quota_headers_agree_in_2031_and_at_times_end() {
    let mock = start().await;
    mock.advance(1_925_000_000 - NOW);
    let reply = mock.get_as("free-key", "/v1/pets").await;
    assert_eq!(reply.rate(), (60, 59, 1_925_000_040));
    mock.server.clock().advance(Duration::MAX);
    let last = mock.get_as("free-key", "/v1/pets").await;
    assert_eq!(last.header("date"), "Fri, 31 Dec 9999 23:59:59 GMT");
    assert_eq!(last.rate().2, 253_402_300_800);
}

#[tokio::test(start_paused = true)]
async fn a_runtime_clock_follows_paused_time() {
    let builder = MockServer::builder().clock(Clock::runtime(at(NOW)));
    let server = builder.start().await.unwrap();
    let client = client();
    let list = || {
        let url = format!("{}/store/orders", server.url());
        reply(client.get(url).bearer_auth("free-key"))
    };
    for _ in 0..60 {
        assert_eq!(list().await.status, 200);
    }
    let refused = list().await;
    assert_eq!(refused.status, 429);
    let wait = refused.header("retry-after").parse().unwrap();
    tokio::time::sleep(Duration::from_secs(wait)).await;
    let answer = list().await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("date"), "Thu, 01 Jan 2026 00:01:00 GMT");
}

#[tokio::test]
async fn the_system_clock_is_the_default() {
    let server = MockServer::start().await;
    let answer = reply(client().get(server.url())).await;
    let date = httpdate::parse_http_date(answer.header("date")).unwrap();
    let now = server.clock().now();
    assert!(date <= now && date > SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000));
}
