//! Tests of the clock.

use std::time::{Duration, SystemTime};

use petstore_mock::{Clock, MockServer, Operation};
use reqwest::Method;

use super::support::{NOW, client, reply, start};

#[tokio::test]
async fn the_date_is_the_clocks_on_every_response() {
    let mock = start().await;
    for path in ["/v1/pets", "/v1/nowhere", "/", "/_mock/health"] {
        assert_eq!(
            mock.get(path).await.header("date"),
            "Thu, 01 Jan 2026 00:00:10 GMT"
        );
    }
    mock.advance(86_400);
    assert_eq!(
        mock.get("/").await.header("date"),
        "Fri, 02 Jan 2026 00:00:10 GMT"
    );
}

#[tokio::test]
async fn time_and_quota_headers_agree_in_2031_and_at_times_end() {
    let mock = start().await;
    mock.advance(1_925_000_000 - NOW);
    let reply = mock.get_as("free-key", "/v1/pets").await;
    assert_eq!(reply.rate(), (60, 59, 1_925_000_040));
    for _ in 0..3 {
        mock.server.clock().advance(Duration::MAX);
        let last = mock.get_as("free-key", "/v1/pets").await;
        assert_eq!(last.header("date"), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(last.rate().2, 253_402_300_800);
    }
}

#[tokio::test(start_paused = true)]
async fn a_runtime_clock_follows_paused_time() {
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW);
    let server = MockServer::builder()
        .clock(Clock::runtime(start))
        .start()
        .await
        .unwrap();
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
    assert_eq!(list().await.status, 200);
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    assert_eq!(list().await.header("date"), "Fri, 02 Jan 2026 00:01:00 GMT");
}

#[tokio::test]
async fn the_system_clock_is_the_default() {
    let server = MockServer::start().await;
    let answer = reply(client().get(server.url())).await;
    let date = answer.header("date").to_owned();
    assert!(date.ends_with(" GMT"), "{date}");
    let now = server.clock().now();
    assert!(now > SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000));
}

#[tokio::test]
async fn a_delay_on_a_frozen_clock_says_so_in_the_journal() {
    let mock = start().await;
    let _late = mock.on(Operation::ListPets).delay(Duration::from_secs(5));
    let waits = tokio::spawn(reply(
        mock.request(Method::GET, "/v1/pets").bearer_auth("pro-key"),
    ));
    while mock.server.faults().list()[0].hits == 0 {
        tokio::task::yield_now().await;
    }
    mock.advance(5);
    assert_eq!(waits.await.unwrap().status, 200);
    let note = mock.server.requests(Operation::ListPets)[0].note;
    assert!(note.is_some_and(|note| note.contains("frozen")), "{note:?}");
}
