//! Tests of the compliance report over sockets: its input, and that it shows no key. Recordings test the
//! rules in detail.

use std::io::Write as _;
use std::time::Duration;

use http::{HeaderValue, header::DATE};
use petstore_mock::{
    Builder, Effect, HeaderField, MockServer, Operation, Plan, RetryAfter, Role, Rule, Severity,
};
use reqwest::Method;
use serde_json::Value;

use super::support::{Mock, REX, post_head, reply, start, start_with};

/// Returns the rule and the severity of each finding.
fn found(mock: &Mock) -> Vec<(Rule, Severity)> {
    let report = mock.server.report();
    report.findings().map(|it| (it.rule, it.severity)).collect()
}

/// Lists pets with the Free key and returns the status.
async fn list(mock: &Mock) -> u16 {
    mock.get_as("free-key", "/v1/pets").await.status
}

/// Starts a mock whose `free-key` has this quota per minute.
async fn with_quota(per_minute: u32) -> Mock {
    start_with(|builder| builder.key("free-key", Plan::enterprise(per_minute, 1_000))).await
}

#[tokio::test]
async fn a_polite_client_is_clean() {
    let mock = with_quota(2).await;
    for _ in 0..3 {
        for _ in 0..2 {
            assert_eq!(list(&mock).await, 200);
        }
        mock.advance(60);
    }
    let report = mock.server.report();
    report.assert_compliant();
    assert_eq!((found(&mock), report.requests()), (vec![], 6));
}

#[tokio::test]
#[should_panic(expected = "violation [told-to-wait]  key free-key")]
async fn a_request_sent_while_told_to_wait_is_found() {
    let mock = with_quota(1).await;
    // The first request uses the quota up, and the second one is told to wait. All others are
    // early.
    for status in [200, 429, 429] {
        assert_eq!(list(&mock).await, status);
    }
    mock.advance(20);
    list(&mock).await;
    mock.advance(30);
    assert_eq!(list(&mock).await, 200);
    assert_eq!(found(&mock), [(Rule::ToldToWait, Severity::Violation)]);
    let report = mock.server.report();
    let requests = &report.findings().next().unwrap().requests;
    let requests = requests.iter();
    let requests = requests.map(|one| (one.number, one.role, one.early_seconds.map(f64::floor)));
    assert!(requests.eq([
        (2, Role::Cause, None),
        (3, Role::Offence, Some(50.0)),
        (4, Role::Offence, Some(30.0)),
    ]));
    report.assert_compliant();
}

#[tokio::test]
async fn a_loop_over_new_connections_is_found() {
    // As with Python's `requests.get`, each request has a connection, and the last one is still open.
    let mock = with_quota(0).await;
    let mut open = Vec::new();
    for _ in 0..9 {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client.get(format!("{}/pets", mock.server.url()));
        let response = request.bearer_auth("free-key").send().await.unwrap();
        open.push((client, response));
    }
    let report = mock.server.report();
    let finding = report.of(Severity::Violation).next().unwrap();
    assert_eq!((finding.rule, finding.offences), (Rule::ToldToWait, 8));
    let remedy = finding.remedy.as_deref().unwrap();
    let end = "`--senders N` (9 connections were open)";
    assert!(remedy.ends_with(end), "{remedy}");
}

#[tokio::test]
async fn senders_are_declared_for_one_key_or_for_all() {
    let none = Plan::enterprise(0, 1_000);
    let mock = start_with(|it| it.senders(3).key("all", none).key("one", none)).await;
    let added = mock.server.key(none);
    mock.server.keys().get("one").unwrap().senders(1);
    let eight = mock.server.key(none).senders(8);
    let mut accused = 0;
    for (key, senders) in [("all", 3), ("one", 1), (&*added, 3), (&*eight, 8)] {
        // A wait is told once, and then each sender may learn of it by itself.
        for _ in 0..senders {
            assert_eq!(mock.get_as(key, "/v1/pets").await.status, 429);
        }
        assert_eq!(
            mock.server.report().of(Severity::Violation).count(),
            accused
        );
        mock.get_as(key, "/v1/pets").await;
        accused += 1;
        assert_eq!(
            mock.server.report().of(Severity::Violation).count(),
            accused
        );
    }
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
        ("/_mock/keys/5", r#"{"senders": null}"#, 400),
        ("/_mock/keys/5", "{}", 400),
        ("/_mock/keys/99", r#"{"senders": 4}"#, 404),
    ] {
        let answer = mock.send(&format!("PATCH {path}"), body).await;
        answer.expect_status(status);
    }
    assert_eq!(senders().await, 4);
}

#[tokio::test]
async fn a_repeated_post_is_found_unless_the_client_looked() {
    for looks in [true, false] {
        let mock = start().await;
        let _lost = mock.on(Operation::CreatePet).first(1).reset();
        let post = mock
            .request(Method::POST, "/v1/pets")
            .bearer_auth("free-key");
        let post = post.header("content-type", "application/json").body(REX);
        assert!(post.send().await.is_err());
        let tom = r#"{"name": "Tom", "categoryId": 7}"#;
        mock.post_as("free-key", tom).await.expect_status(201);
        assert_eq!(found(&mock), [], "another animal is no repeat");
        if looks {
            list(&mock).await;
        }
        let rex_otherwise = r#"{"categoryId": 7, "name": "Rex"}"#;
        mock.post_as("free-key", rex_otherwise)
            .await
            .expect_status(201);
        let text = mock.server.report().to_text();
        let says =
            "after no response (#1), without a look at GET /pets; pets 26 and 28 are duplicates";
        assert_eq!(text.contains(says), !looks, "{text}");
    }
}

#[tokio::test]
async fn the_fault_that_a_request_chooses_is_a_part_of_it() {
    let mock = start_with(Builder::fault_header).await;
    let fail = async || {
        let post = mock
            .request(Method::POST, "/v1/pets")
            .bearer_auth("free-key");
        let post = post.header("content-type", "application/json").body(REX);
        reply(post.header("x-mock-fault", "500"))
            .await
            .expect_status(500);
    };
    // Two tests of a suite: one of an error, and one of success.
    fail().await;
    mock.post_as("free-key", REX).await.expect_status(201);
    assert_eq!(found(&mock), []);
    fail().await;
    assert_eq!(found(&mock), [(Rule::RepeatedPost, Severity::Violation)]);
}

#[tokio::test]
async fn a_wait_named_by_a_fault_counts_unless_it_is_false() {
    let falsified = HeaderValue::from_static("Thu, 01 Jan 2026 00:05:00 GMT");
    let falsified = Effect::SetHeader(HeaderField::new(DATE, falsified));
    let wait = |wait| Effect::RetryAfter(wait);
    let told = [(Rule::ToldToWait, Severity::Violation)];
    let busy = [(Rule::RetryAfter, Severity::Warning)];
    for (status, effects, expected) in [
        (429, vec![wait(RetryAfter::Seconds(50))], &told[..]),
        (503, vec![wait(RetryAfter::Seconds(50))], &busy),
        (429, vec![wait(RetryAfter::Seconds(50)), falsified], &[]),
        (429, vec![wait(RetryAfter::Epoch(50))], &[]),
        (429, vec![wait(RetryAfter::Text("soon".into()))], &[]),
    ] {
        let mock = start().await;
        let effects = [vec![Effect::status(status)], effects].concat();
        let _fault = mock.on(Operation::ListPets).apply(Effect::All(effects));
        for _ in 0..2 {
            assert_eq!(list(&mock).await, status);
        }
        assert_eq!(found(&mock), expected);
    }
}

#[tokio::test]
async fn keys_in_the_wrong_place_are_found_and_not_shown() {
    let secret = "sk-0123456789-secret";
    let mock = start_with(|builder| builder.key(secret, Plan::Free)).await;
    let encoded = secret.replace('-', "%2D");
    for path in [
        format!("/v1/pets?token={secret}"),
        format!("/v1/pets?q=a{encoded}b"),
        format!("/v1/pets/{secret}?limit=5"),
        "/v1/pets?api_key=whatever".to_owned(),
    ] {
        mock.send(&format!("GET {path}"), "").await;
    }
    let basic = mock
        .request(Method::GET, "/v1/pets")
        .basic_auth("me", Some(secret));
    reply(basic).await;
    mock.get_as(secret, "/v1/pets?status=available").await;
    let report = mock.server.report();
    let keys = report
        .of(Severity::Violation)
        .filter(|it| it.rule == Rule::Key);
    assert_eq!(keys.count(), 4, "{report}");
    for form in [
        report.to_text(),
        report.to_json(),
        report.to_junit(),
        format!("{report:?}"),
    ] {
        assert!(form.contains("`token` is a key of this server"), "{form}");
        assert!(
            !form.contains("0123456789") && !form.contains("whatever"),
            "{form}"
        );
    }
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
    mock.send("DELETE /_mock/report", "")
        .await
        .expect_status(204);
    let report = mock.server.report();
    assert_eq!((report.requests(), report.is_compliant()), (0, true));
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
        ("a ban", &|| key.ban(Duration::from_secs(1))),
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
        // With a frozen clock, the ban has not ended.
        mock.post_as("free-key", REX).await;
        assert_eq!(found(&mock), [], "{name}");
        key.unban();
        mock.server.reset().unwrap();
    }
    lose().await;
    // Moving the clock is no boundary.
    mock.advance(10);
    mock.post_as("free-key", REX).await.expect_status(201);
    assert_eq!(found(&mock), [(Rule::RepeatedPost, Severity::Violation)]);
}

#[tokio::test]
async fn a_rule_has_the_severity_that_is_set() {
    let builder = |it: Builder| {
        it.rule(Rule::Key, None)
            .rule(Rule::Deprecated, Severity::Warning)
    };
    let mock = start_with(builder).await;
    mock.get_as("free-key", "/v1/pets/1?k=free-key").await;
    assert_eq!(found(&mock), [(Rule::Deprecated, Severity::Warning)]);
    let report = mock.server.report();
    let json: Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(json["rules"]["deprecated"]["severity"], "warning");
    // The report names disabled rules. Otherwise a reader could think that these rules found
    // nothing.
    let set = "severities set: key off, deprecated warning";
    assert!(report.to_text().contains(set), "{report}");
}

#[tokio::test]
async fn a_named_key_is_shown_by_its_name() {
    let secret = "sk-of-the-main-branch";
    let named = |it: Builder| {
        it.named_key("ci-main", secret, Plan::Free)
            .key("other-key", Plan::Pro)
    };
    let mock = start_with(named).await;
    for key in [secret, "other-key"] {
        mock.get_as(key, "/v1/pets?k=other-key").await;
    }
    let report = mock.server.report();
    let keys = report.of(Severity::Violation).map(|finding| &*finding.key);
    assert!(
        keys.eq(["ci-main", "#2"]),
        "in the order in which they were given"
    );
    let key = mock.server.requests(..)[0].key.clone().unwrap();
    assert_eq!(key.to_string(), "#1 ci-main (free)");
    assert!(!report.to_json().contains("sk-of"));
}

#[test]
fn a_post_repeated_as_soon_as_its_client_gives_up_is_found() {
    let server = MockServer::start_blocking();
    let hang = Effect::Hang {
        after_body_bytes: None,
    };
    let hangs = server.faults().on(Operation::CreatePet).apply(hang);
    for request in 0..40 {
        let body = format!(r#"{{"name":"{}","categoryId":7}}"#, 100 + request / 2);
        let head = post_head(&format!("Content-Length: {}", body.len()));
        let mut stream = std::net::TcpStream::connect(server.addr()).unwrap();
        write!(stream, "{head}{body}").unwrap();
        // The connection is dropped as soon as its request hangs.
        while hangs.hits() <= request {
            std::thread::yield_now();
        }
    }
    while !server.report().summary_line().contains("in 40 requests") {
        std::thread::yield_now();
    }
    let report = server.report();
    let found = report.of(Severity::Violation);
    let repeated = found.filter(|it| it.rule == Rule::RepeatedPost);
    assert_eq!(repeated.count(), 20, "{report}");
}
