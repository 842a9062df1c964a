//! Tests of the compliance report with parallel clients over sockets. The mock's clock is frozen,
//! and advanced when a client waits. On a slow machine, too, compliant clients cause no finding.

use std::time::Duration;

use futures_util::future::join_all;
use petstore_mock::{Operation, Plan, Rule, Severity};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::support::{Mock, client, start, start_with};

/// Returns each rule of at least a warning, and how many requests broke it.
fn failing(mock: &Mock) -> Vec<(Rule, u64)> {
    let report = mock.server.report();
    let failing = report
        .findings()
        .filter(|it| it.severity > Severity::Notice);
    failing.map(|it| (it.rule, it.offences)).collect()
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

/// Lists pets with all clients at once, and returns the statuses.
async fn list_all(clients: &[reqwest::Client], mock: &Mock) -> Vec<u16> {
    join_all(clients.iter().map(|client| list(client, mock))).await
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
    let clients: Vec<_> = (0..8).map(|_| client()).collect();
    let mock = with_quota(1_000).await;
    let outage = mock.on(Operation::ListPets).first(24).status(503);
    for wait in [500, 1_000, 2_000] {
        assert_eq!(list_all(&clients, &mock).await, [503; 8]);
        mock.server.clock().advance(Duration::from_millis(wait));
    }
    assert_eq!(list_all(&clients, &mock).await, [200; 8]);
    assert_eq!((failing(&mock), outage.hits()), (vec![], 24));
}

#[tokio::test]
async fn eight_workers_may_each_learn_of_a_wait_and_no_more() {
    let clients: Vec<_> = (0..8).map(|_| client()).collect();
    let mock = with_quota(0).await;
    list_all(&clients, &mock).await;
    assert_eq!(failing(&mock), [], "{}", mock.server.report());
    mock.advance(5);
    list_all(&clients, &mock).await;
    let failing = failing(&mock);
    let is_found = matches!(*failing, [(Rule::ToldToWait, 8..)]);
    assert!(is_found, "{}", mock.server.report());
}

/// Sends the same request several times in one write, so without any wait in between.
async fn pipeline(mock: &Mock, key: &str, requests: usize) {
    let mut stream = TcpStream::connect(mock.server.addr()).await.unwrap();
    let head = format!("GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n");
    let mut all = format!("{head}\r\n").repeat(requests - 1);
    all += &format!("{head}Connection: close\r\n\r\n");
    stream.write_all(all.as_bytes()).await.unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap();
    assert_eq!(answers.matches("HTTP/1.1 503 ").count(), requests);
}

#[tokio::test]
async fn retries_at_once_are_found() {
    let mock = start().await;
    let _outage = mock.on(Operation::ListPets).status(503);
    // A busy machine may take longer for three retries than a client that waits.
    while failing(&mock).is_empty() {
        let key = mock.server.key(Plan::default_enterprise());
        pipeline(&mock, &key, 4).await;
    }
    assert_eq!(failing(&mock), [(Rule::BackOff, 3)]);
}

#[tokio::test]
async fn a_ban_is_in_the_report_with_the_requests_that_caused_it() {
    let mock = with_quota(5).await;
    mock.server
        .keys()
        .get("enterprise-key")
        .unwrap()
        .senders(20);
    let clients: Vec<_> = (0..20).map(|_| client()).collect();
    list_all(&clients, &mock).await;
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
        list(&clients[0], &mock).await;
    }
    assert_eq!(failing(&mock), [(Rule::ToldToWait, 14)]);
    let text = mock.server.report().to_text();
    assert!(
        text.contains("the key was banned until 00:05:10, "),
        "{text}"
    );
}
