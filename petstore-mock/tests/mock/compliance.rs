//! Tests of the compliance report over sockets: what it learns of requests, and that it shows no key.
//! Recordings test the rules in detail.

use std::io::Write as _;

use petstore_mock::{Effect, MockServer, Operation, Plan, RetryAfter, Role, Rule, Severity};
use reqwest::Method;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::support::{Mock, REX, client, post_head, reply, start, start_with};

/// Returns the rule and the severity of each finding.
fn found(mock: &Mock) -> Vec<(Rule, Severity)> {
    let report = mock.server.report();
    report.findings().map(|it| (it.rule, it.severity)).collect()
}

/// Lists pets with the Free key and returns the status.
async fn list(mock: &Mock) -> u16 {
    mock.get_as("free-key", "/v1/pets").await.status
}

/// Starts a mock whose `free-key` has no request left.
async fn exhausted() -> Mock {
    start_with(|builder| builder.key("free-key", Plan::enterprise(0, 1_000))).await
}

#[tokio::test]
#[should_panic(expected = "violation [told-to-wait]  key free-key")]
async fn a_request_sent_while_told_to_wait_is_found() {
    let mock = exhausted().await;
    for seconds in [0, 0, 20] {
        mock.advance(seconds);
        assert_eq!(list(&mock).await, 429);
    }
    let report = mock.server.report();
    let requests = report.findings().next().unwrap().requests.iter();
    let requests = requests.map(|one| (one.number, one.role, one.early_seconds.map(f64::floor)));
    assert!(requests.eq([
        (1, Role::Cause, None),
        (2, Role::Offence, Some(50.0)),
        (3, Role::Offence, Some(30.0)),
    ]));
    report.assert_compliant();
}

#[tokio::test]
async fn a_loop_over_new_connections_is_found() {
    // As with Python's `requests.get`, each request has a connection, and the last one is still open.
    let mock = exhausted().await;
    let mut open = Vec::new();
    for _ in 0..9 {
        let client = client();
        let request = client.get(format!("{}/pets", mock.server.url()));
        let response = request.bearer_auth("free-key").send().await.unwrap();
        open.push((client, response));
    }
    let report = mock.server.report();
    let finding = report.of(Severity::Violation).next().unwrap();
    assert_eq!((finding.rule, finding.offences), (Rule::ToldToWait, 8));
    let remedy = finding.remedy.as_deref().unwrap();
    assert!(remedy.ends_with("`.senders(N)`"), "{remedy}");
}

#[tokio::test]
async fn senders_are_declared_for_one_key_or_for_all() {
    let none = Plan::enterprise(0, 1_000);
    let mock = start_with(|it| it.senders(3).key("all", none).key("one", none)).await;
    let added = mock.server.key(none).senders(8);
    mock.server.keys().get("one").unwrap().senders(1);
    for (key, senders) in [("all", 3), ("one", 1), (&*added, 8)] {
        // A wait is told once, and then each sender may learn of it by itself.
        for _ in 0..senders {
            mock.get_as(key, "/v1/pets").await.expect_status(429);
        }
        let accused = || mock.server.report().of(Severity::Violation).count();
        let before = accused();
        mock.get_as(key, "/v1/pets").await;
        assert_eq!(accused(), before + 1, "{key}");
    }
    assert_eq!(found(&mock).len(), 3);
}

#[tokio::test]
async fn senders_are_declared_over_http() {
    let mock = start().await;
    let senders = async || mock.get("/_mock/keys").await.json()[4]["senders"].clone();
    let added = mock.send("POST /_mock/keys", r#"{"plan": "free", "senders": 8}"#);
    added.await.expect_status(201);
    assert_eq!(senders().await, 8);
    for (path, body, status) in [
        ("/_mock/keys/5", r#"{"senders": 4}"#, 204),
        ("/_mock/keys/5", r#"{"senders": 0}"#, 400),
        ("/_mock/keys/5", "{}", 400),
        ("/_mock/keys/99", r#"{"senders": 4}"#, 404),
    ] {
        let answer = mock.send(&format!("PATCH {path}"), body).await;
        answer.expect_status(status);
    }
    assert_eq!(senders().await, 4);
}

#[tokio::test]
async fn findings_survive_a_reset_until_they_are_deleted() {
    let mock = start_with(|builder| builder.journal(0)).await;
    for _ in 0..50 {
        mock.get_as("free-key", "/v1/pets?limit=1&k=free-key").await;
    }
    assert!(mock.server.requests(..).is_empty());
    mock.server.reset().unwrap();
    let report = mock.server.report();
    let finding = report.of(Severity::Violation).next().unwrap();
    assert_eq!((finding.rule, finding.offences), (Rule::Key, 50));
    assert_eq!(report.findings().count(), 1, "once a parameter");
    mock.change("DELETE /_mock/report", "").await;
    let report = mock.server.report();
    assert_eq!((report.requests(), report.is_compliant()), (0, true));
}

#[tokio::test]
async fn a_repeated_post_is_found_with_the_duplicates_it_made() {
    let mock = start().await;
    let _lost = mock.on(Operation::CreatePet).first(1).reset();
    let post = mock.request(Method::POST, "/v1/pets");
    let post = post
        .bearer_auth("free-key")
        .header("content-type", "application/json");
    assert!(post.body(REX).send().await.is_err());
    let tom = r#"{"name": "Tom", "categoryId": 7}"#;
    mock.post_as("free-key", tom).await.expect_status(201);
    assert_eq!(found(&mock), [], "a POST with another name is not a repeat");
    let rex_otherwise = r#"{"categoryId": 7, "name": "Rex"}"#;
    mock.post_as("free-key", rex_otherwise)
        .await
        .expect_status(201);
    let text = mock.server.report().to_text();
    let says = "(#1), without a look at GET /v1/pets; pets 26 and 28 are duplicates";
    assert!(text.contains(says), "{text}");
}

#[tokio::test]
async fn a_wait_named_by_a_fault_counts_unless_its_date_is_false() {
    let falsified = Effect::SetHeader {
        name: "date".to_owned(),
        value: Some("Thu, 01 Jan 2026 00:05:00 GMT".to_owned()),
    };
    let told = [(Rule::ToldToWait, Severity::Violation)];
    for (more, expected) in [(vec![], &told[..]), (vec![falsified], &[])] {
        let mock = start().await;
        let mut effects = vec![
            Effect::Status(429),
            Effect::RetryAfter(RetryAfter::Seconds(50)),
        ];
        effects.extend(more);
        let _fault = mock.on(Operation::ListPets).apply(Effect::All(effects));
        for _ in 0..2 {
            assert_eq!(list(&mock).await, 429);
        }
        assert_eq!(found(&mock), expected);
    }
}

#[tokio::test]
async fn keys_in_the_wrong_place_are_found_and_not_shown() {
    let secret = "sk-0123456789-secret";
    let mock = start_with(|builder| builder.key(secret, Plan::Free)).await;
    let in_query = format!("GET /v1/pets?token={}", secret.replace('-', "%2D"));
    mock.send(&in_query, "").await;
    mock.send(&format!("GET /v1/pets/{secret}"), "").await;
    let basic = mock.request(Method::GET, "/v1/pets");
    reply(basic.basic_auth("me", Some(secret))).await;
    let report = mock.server.report();
    let violations = report.of(Severity::Violation);
    let rules: Vec<_> = violations.map(|it| it.rule).collect();
    assert_eq!(rules, [Rule::Key; 3], "{report}");
    for form in [
        report.to_text(),
        report.to_json(),
        report.to_junit(),
        format!("{report:?}"),
    ] {
        assert!(form.contains("`token` is a key of this server"), "{form}");
        assert!(!form.contains("0123456789"), "{form}");
    }
}

#[tokio::test]
async fn text_of_a_client_cannot_act_as_a_line_or_a_colour_of_the_report() {
    let mock = start().await;
    mock.get_as("free-key", "/v1/pets?%0A::error::x%1b%5b31m=free-key")
        .await;
    let report = mock.server.report();
    assert_eq!(found(&mock), [(Rule::Key, Severity::Violation)]);
    for form in [report.to_text(), report.to_junit()] {
        let says = "the query parameter `\\n::error::x\\u{1b}[31m` is a key";
        assert!(form.contains(says), "{form}");
    }
}

#[tokio::test]
async fn requests_before_a_boundary_do_not_count_against_a_client() {
    let mock = start().await;
    let key = mock.server.keys().get("free-key").unwrap();
    let snapshot = mock.server.snapshot();
    let boundaries: [(&str, &dyn Fn()); 5] = [
        ("a reset", &|| mock.server.reset().unwrap()),
        ("a fault", &|| {
            mock.on(Operation::GetPet).status(500).optional().detach();
        }),
        ("a plan", &|| key.set_plan(Plan::Pro)),
        ("a pardon", &|| key.unban()),
        ("a snapshot", &|| mock.server.restore(&snapshot).unwrap()),
    ];
    let lose = async || {
        let lost = mock.on(Operation::CreatePet).first(1).status(500);
        mock.post_as("free-key", REX).await.expect_status(500);
        lost.detach();
    };
    for (name, cross) in boundaries {
        lose().await;
        cross();
        mock.post_as("free-key", REX).await.expect_status(201);
        assert_eq!(found(&mock), [], "{name}");
        mock.server.reset().unwrap();
    }
    let gone = mock.on(Operation::GetPet).status(500).optional();
    mock.server.faults().clear();
    lose().await;
    // Neither a later time nor a removal that removes nothing is a boundary.
    mock.advance(10);
    drop(gone);
    mock.send("DELETE /_mock/faults/999", "").await;
    mock.post_as("free-key", REX).await.expect_status(201);
    assert_eq!(found(&mock), [(Rule::RepeatedPost, Severity::Violation)]);
}

/// Sends the same request four times in one write, so without any wait in between.
async fn pipeline(mock: &Mock, key: &str) {
    let mut stream = TcpStream::connect(mock.server.addr()).await.unwrap();
    let head = format!("GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n");
    let mut all = format!("{head}\r\n").repeat(3);
    all += &format!("{head}Connection: close\r\n\r\n");
    stream.write_all(all.as_bytes()).await.unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap();
    assert_eq!(answers.matches("HTTP/1.1 503 ").count(), 4);
}

#[tokio::test]
async fn retries_at_once_are_found() {
    let mock = start().await;
    let _outage = mock.on(Operation::ListPets).status(503);
    let accused = || -> Vec<Rule> {
        let report = mock.server.report();
        report.of(Severity::Violation).map(|it| it.rule).collect()
    };
    // A busy machine may take longer for three retries than a client that waits.
    while accused().is_empty() {
        let key = mock.server.key(Plan::default_enterprise());
        pipeline(&mock, &key).await;
    }
    assert_eq!(accused(), [Rule::BackOff]);
}

#[test]
fn a_post_repeated_as_soon_as_its_client_gives_up_is_found() {
    let server = MockServer::start_blocking();
    let hang = Effect::Hang {
        after_body_bytes: None,
    };
    let hangs = server.faults().on(Operation::CreatePet).apply(hang);
    let post = post_head("Content-Length: 32") + REX;
    for request in 0..40 {
        let mut stream = std::net::TcpStream::connect(server.addr()).unwrap();
        stream.write_all(post.as_bytes()).unwrap();
        // The connection is dropped as soon as its request hangs.
        while hangs.hits() <= request {
            std::thread::yield_now();
        }
    }
    while !server.report().summary_line().contains("in 40 requests") {
        std::thread::yield_now();
    }
    let report = server.report();
    let finding = report.findings().find(|it| it.rule == Rule::RepeatedPost);
    assert_eq!(finding.unwrap().offences, 39, "{report}");
}
