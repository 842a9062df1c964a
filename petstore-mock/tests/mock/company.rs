//! Tests of the compliance report with parallel clients over sockets. The mock's clock is frozen,
//! and advanced when a client waits. On a slow machine, too, compliant clients cause no finding.

use std::time::Duration;

use futures_util::future::join_all;
use petstore_mock::{Operation, Plan, Rule, Severity};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    protocols::Http2,
    support::{Mock, client, start, start_with},
};

/// Returns each rule of at least a warning, and how many requests broke it.
fn failing(mock: &Mock) -> Vec<(Rule, u64)> {
    let report = mock.server.report();
    let failing = report
        .findings()
        .filter(|finding| finding.severity > Severity::Notice);
    failing
        .map(|finding| (finding.rule, finding.offences))
        .collect()
}

/// Lists pets with one of the workers' clients, and returns the status.
async fn list(client: &reqwest::Client, mock: &Mock) -> u16 {
    let request = client.get(format!("{}/pets", mock.server.url()));
    let response = request.bearer_auth("enterprise-key").send().await.unwrap();
    let status = response.status().as_u16();
    // An unread body would keep the connection in use.
    response.bytes().await.unwrap();
    status
}

/// Lets a worker per client list pets with back-off until it gets a 200. Returns the number of
/// requests.
async fn work(mock: &Mock, clients: &[reqwest::Client]) -> usize {
    let mut wait = Duration::from_millis(500);
    let mut working: Vec<_> = clients.iter().collect();
    let mut requests = 0;
    while !working.is_empty() {
        let statuses = join_all(working.iter().map(|client| list(client, mock))).await;
        requests += statuses.len();
        let mut statuses = statuses.iter();
        working.retain(|_| *statuses.next().unwrap() != 200);
        mock.server.clock().advance(wait);
        wait *= 2;
    }
    requests
}

/// Starts a mock with a quota per minute for `enterprise-key`, of which 8 requests may be under way.
async fn with_quota(per_minute: u32) -> Mock {
    let plan = Plan::enterprise(per_minute, 10_000);
    let mock = start_with(|builder| builder.key("enterprise-key", plan)).await;
    mock.server.keys().get("enterprise-key").unwrap().senders(8);
    mock
}

#[tokio::test]
async fn eight_workers_with_back_off_are_let_go() {
    let pool = client();
    let shared: Vec<_> = (0..8).map(|_| pool.clone()).collect();
    let own: Vec<_> = (0..8).map(|_| client()).collect();
    for clients in [shared, own] {
        let mock = with_quota(1_000).await;
        let outage = mock.on(Operation::ListPets).first(24).status(503);
        assert_eq!(work(&mock, &clients).await, 32);
        assert_eq!(failing(&mock), [], "{}", mock.server.report());
        drop(outage);
    }
}

#[tokio::test]
async fn eight_workers_that_are_told_to_wait_are_let_go() {
    let own: Vec<_> = (0..8).map(|_| client()).collect();
    let mock = with_quota(5).await;
    let statuses = join_all(own.iter().map(|client| list(client, &mock))).await;
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 3);
    mock.advance(50);
    for (client, status) in own.iter().zip(statuses) {
        if status == 429 {
            assert_eq!(list(client, &mock).await, 200);
        }
    }
    assert_eq!(failing(&mock), [], "{}", mock.server.report());
}

#[tokio::test]
async fn eight_workers_that_go_on_while_told_to_wait_are_found() {
    let own: Vec<_> = (0..8).map(|_| client()).collect();
    let mock = with_quota(0).await;
    for _ in 0..2 {
        join_all(own.iter().map(|client| list(client, &mock))).await;
        mock.advance(5);
    }
    let failing = failing(&mock);
    assert!(
        matches!(*failing, [(Rule::ToldToWait, 8..)]),
        "{}",
        mock.server.report()
    );
}

#[tokio::test]
async fn a_gateway_without_retries_is_let_go() {
    let mock = start().await;
    let _outage = mock.on(Operation::ListPets).status(503);
    let gateway = client();
    for _ in 0..60 {
        assert_eq!(list(&gateway, &mock).await, 503);
        mock.server.clock().advance(Duration::from_millis(50));
    }
    assert_eq!(failing(&mock), [], "{}", mock.server.report());
}

#[tokio::test]
async fn a_thousand_requests_over_http_2_while_told_to_wait_are_found() {
    let mock = with_quota(5).await;
    let http2 = Http2::connect(&mock).await;
    for _ in 0..1_000 {
        http2.get("/v1/pets").await;
    }
    // The ban begins another wait.
    let report = mock.server.report();
    let offences: u64 = report.of(Severity::Violation).map(|it| it.offences).sum();
    assert!(offences > 980, "{report}");
}

/// Sends the same request several times in one write, so without any wait in between.
async fn pipeline(mock: &Mock, key: &str, requests: usize) {
    let mut stream = TcpStream::connect(mock.server.addr()).await.unwrap();
    let head = format!("GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n");
    let mut all = format!("{head}\r\n").repeat(requests - 1);
    all += &format!("{head}Connection: close\r\n\r\n");
    stream.write_all(all.as_bytes()).await.unwrap();
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).await.unwrap();
    let answers = String::from_utf8(answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 503 ").count(), requests);
}

#[tokio::test]
async fn retries_at_once_are_found() {
    let mock = start().await;
    let _outage = mock.on(Operation::ListPets).status(503);
    pipeline(&mock, "enterprise-key", 300).await;
    assert_eq!(failing(&mock).len(), 1);
    // A busy machine may take longer for three retries than a client that waits.
    while failing(&mock).len() == 1 {
        let key = mock.server.key(Plan::default_enterprise());
        pipeline(&mock, &key, 4).await;
    }
    let report = mock.server.report();
    let found = report.of(Severity::Violation).last().unwrap();
    assert_eq!((found.rule, found.offences), (Rule::BackOff, 3));
    let begin = "GET /v1/pets failed and was sent again 3 times, ";
    assert!(found.text.starts_with(begin), "{report}");
}

#[tokio::test]
async fn a_ban_is_in_the_report_with_the_requests_that_caused_it() {
    let mock = with_quota(5).await;
    mock.server
        .keys()
        .get("enterprise-key")
        .unwrap()
        .senders(20);
    let own: Vec<_> = (0..20).map(|_| client()).collect();
    let mut statuses = join_all(own.iter().map(|client| list(client, &mock))).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [[200; 5].as_slice(), &[429; 15]].concat());
    let report = mock.server.report();
    let begin = "the key was banned until 00:05:10, because 11 requests arrived before Retry-After";
    let ban = report.findings().find(|it| it.text.starts_with(begin));
    let ban = ban.unwrap_or_else(|| panic!("{report}"));
    assert_eq!((ban.severity, ban.offences), (Severity::Notice, 11));
    assert_eq!(failing(&mock), [], "{report}");
    // A single client that keeps sending is accused, and the ban is named as well.
    let mock = with_quota(5).await;
    mock.server.keys().get("enterprise-key").unwrap().senders(1);
    for _ in 0..20 {
        list(&own[0], &mock).await;
    }
    assert_eq!(failing(&mock), [(Rule::ToldToWait, 14)]);
    let report = mock.server.report();
    let text = report.to_text();
    let numbers = "elapsed (#7, #8, #9, #10, #11, #12, #13, #14, #15, #16 and #17)";
    assert!(text.contains(numbers), "{text}");
}
