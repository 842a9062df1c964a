//! Tests of the compliance report with parallel clients over sockets. The mock's clock is frozen,
//! and advanced when a client waits. On a slow machine, too, compliant clients cause no finding.

use std::{
    io::{Read as _, Write as _},
    time::{Duration, UNIX_EPOCH},
};

use futures_util::future::join_all;
use petstore_mock::{Clock, MockServer, Operation, Plan, Rule, Severity};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    protocols::Http2,
    support::{Mock, client, start, start_with},
};

/// Returns each rule of at least a warning, and how often it was broken.
fn failing(mock: &Mock) -> Vec<(Rule, u64)> {
    let report = mock.server.report();
    let failing = report
        .findings()
        .filter(|finding| finding.severity > Severity::Notice);
    failing
        .map(|finding| (finding.rule, finding.count))
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

#[tokio::test]
async fn eight_workers_with_back_off_are_let_go() {
    let pool = client();
    let shared: Vec<_> = (0..8).map(|_| pool.clone()).collect();
    let own: Vec<_> = (0..8).map(|_| client()).collect();
    for clients in [shared, own] {
        let mock = start().await;
        let outage = mock.on(Operation::ListPets).first(24).status(503);
        assert_eq!(work(&mock, &clients).await, 32);
        assert_eq!(failing(&mock), [], "{}", mock.server.report());
        drop(outage);
    }
}

#[tokio::test]
async fn eight_workers_that_are_told_to_wait_are_let_go() {
    let plan = Plan::enterprise(5, 1_000);
    let own: Vec<_> = (0..8).map(|_| client()).collect();
    let mock = start_with(|builder| builder.key("enterprise-key", plan)).await;
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
    let plan = Plan::enterprise(5, 10_000);
    let mock = start_with(|builder| builder.key("enterprise-key", plan)).await;
    let http2 = Http2::connect(&mock).await;
    for number in 0..1_000 {
        http2.get("/v1/pets").await;
        if number == 100 {
            // Earlier requests may have been sent before the client read the 429.
            mock.server.clock().advance(Duration::from_millis(200));
        }
    }
    assert_eq!(failing(&mock), [(Rule::ToldToWait, 1)]);
    let report = mock.server.report();
    let finding = report.of(Severity::Violation).next().unwrap();
    assert!(finding.evidence[0].offences > 800, "{report}");
}

/// Sends the same request several times in one write, so without any wait in between.
async fn pipeline(mock: &Mock, scope: &str, requests: usize) {
    let mut stream = TcpStream::connect(mock.server.addr()).await.unwrap();
    let head = format!(
        "GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer enterprise-key\r\n\
         User-Agent: pipeline/1\r\nX-Mock-Scope: {scope}\r\n"
    );
    let mut all = format!("{head}\r\n").repeat(requests - 1);
    all += &format!("{head}Connection: close\r\n\r\n");
    stream.write_all(all.as_bytes()).await.unwrap();
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).await.unwrap();
    let answers = String::from_utf8(answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 503 ").count(), requests);
}

#[tokio::test]
async fn retries_at_once_on_a_connection_are_found() {
    let mock = start().await;
    let _outage = mock.on(Operation::ListPets).status(503);
    pipeline(&mock, "hammering", 300).await;
    assert_eq!(failing(&mock), [(Rule::BackOff, 1)]);
    // A busy machine may take longer for three retries than a client that waits.
    let mut tries = 0;
    while failing(&mock) != [(Rule::BackOff, 1), (Rule::BackOff, 1)] {
        tries += 1;
        pipeline(&mock, &format!("three retries {tries}"), 4).await;
    }
    let report = mock.server.report();
    let text = "GET /v1/pets was sent again 3 times, 3 of them less than 0.006 s after the failure";
    let evidence = report
        .findings()
        .flat_map(|finding| finding.evidence.clone());
    assert!(evidence.into_iter().any(|it| it.text == text), "{report}");
}

/// Opens a connection, lists pets once, and closes the connection.
fn list_once(server: &MockServer) {
    let address = server.origin().trim_start_matches("http://");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request = b"GET /v1/pets HTTP/1.1\r\nHost: x\r\nUser-Agent: loop/1\r\n\
        Authorization: Bearer k\r\n\r\n";
    stream.write_all(request).unwrap();
    let mut response = Vec::new();
    while !response.ends_with(b"}") && !response.ends_with(b"]") {
        let mut buffer = [0; 4_096];
        let read = stream.read(&mut buffer).unwrap();
        response.extend_from_slice(&buffer[..read]);
    }
}

#[test]
fn a_loop_with_a_connection_for_each_request_is_found() {
    // The server has several threads, so the end of a connection may be noticed late.
    for _ in 0..12 {
        let noon = UNIX_EPOCH + Duration::from_secs(1_800_014_400);
        let server = MockServer::builder()
            .key("k", Plan::enterprise(5, 100))
            .clock(Clock::frozen(noon))
            .start_blocking()
            .unwrap();
        for _ in 0..35 {
            list_once(&server);
        }
        let report = server.report();
        let mut found = report.of(Severity::Violation);
        let rule = found.next().map(|finding| finding.rule);
        assert_eq!(rule, Some(Rule::ToldToWait), "{report}");
    }
}

#[tokio::test]
async fn a_ban_is_in_the_report_with_the_requests_that_caused_it() {
    let plan = Plan::enterprise(5, 1_000);
    let mock = start_with(|builder| builder.key("enterprise-key", plan)).await;
    let own: Vec<_> = (0..20).map(|_| client()).collect();
    let mut statuses = join_all(own.iter().map(|client| list(client, &mock))).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [[200; 5].as_slice(), &[429; 15]].concat());
    let report = mock.server.report();
    let mut evidence = report.findings().flat_map(|finding| &finding.evidence);
    let ban = evidence.find(|it| it.text.starts_with("the key is banned until 00:05:10.000"));
    let ban = ban.unwrap_or_else(|| panic!("{report}"));
    assert_eq!(ban.offences, 11, "{report}");
    let last = ban.requests.iter().rfind(|request| request.banned);
    assert!(last.is_some(), "{report}");
    assert_eq!(failing(&mock), [], "{report}");
    // If a single client keeps sending and is banned, the evidence of its breach mentions the ban.
    let mock = start_with(|builder| builder.key("enterprise-key", plan)).await;
    for _ in 0..20 {
        list(&own[0], &mock).await;
    }
    assert_eq!(failing(&mock), [(Rule::ToldToWait, 1)]);
    let report = mock.server.report();
    let evidence = &report.of(Severity::Violation).next().unwrap().evidence[0];
    let ban = evidence.ban.as_deref().unwrap();
    assert!(
        ban.ends_with("(#7, #8, #9, #10, #11, #12, #13, #14, #15, #16, #17)"),
        "{ban}"
    );
    assert_eq!(evidence.offences, 14, "{report}");
}

#[tokio::test]
async fn a_report_over_http_waits_until_an_open_row_is_certain() {
    let mock = start().await;
    let _outage = mock.on(Operation::ListPets).status(503);
    let mut tries = 0;
    let report = loop {
        tries += 1;
        pipeline(&mock, &format!("try {tries}"), 4).await;
        let begin = tokio::time::Instant::now();
        let text = mock.get("/_mock/report.txt").await.body;
        if text.contains("back-off") {
            break (begin.elapsed(), text);
        }
    };
    assert!(report.0 > Duration::from_millis(800), "{report:?}");
}
