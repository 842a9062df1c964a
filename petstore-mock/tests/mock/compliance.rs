//! Tests of the compliance report over sockets: its input, the clients that it names, and that it
//! shows no key. Recordings test the rules in detail.

use std::io::Write as _;
use std::time::Duration;

use http::{HeaderValue, header::DATE};
use petstore_mock::{
    Builder, Effect, HeaderField, Operation, Plan, RetryAfter, Role, Rule, Severity,
};
use reqwest::Method;
use serde_json::Value;

use super::support::{MINUTE_ENDS, Mock, NOW, REX, start, start_with};

const REX_OTHERWISE: &str = r#"{"categoryId": 7, "name": "Rex"}"#;

/// Returns the rule and the severity of each finding.
fn found(mock: &Mock) -> Vec<(Rule, Severity)> {
    let report = mock.server.report();
    report.findings().map(|it| (it.rule, it.severity)).collect()
}

/// Lists pets with a key and returns the status.
async fn list(mock: &Mock, key: &str) -> u16 {
    mock.get_as(key, "/v1/pets").await.status
}

/// Adds a pet and returns the status, if there is an answer.
async fn post(mock: &Mock, body: &'static str) -> Option<u16> {
    let request = mock
        .request(Method::POST, "/v1/pets")
        .bearer_auth("free-key");
    let request = request
        .header("content-type", "application/json")
        .body(body);
    Some(request.send().await.ok()?.status().as_u16())
}

/// Starts a mock whose `free-key` has this quota per minute.
async fn with_quota(per_minute: u32) -> Mock {
    start_with(|builder| builder.key("free-key", Plan::enterprise(per_minute, 1_000))).await
}

#[tokio::test]
async fn a_polite_client_is_clean() {
    let mock = with_quota(2).await;
    for _ in 0..3 {
        for status in [200, 200] {
            assert_eq!(list(&mock, "free-key").await, status);
        }
        mock.advance(60);
    }
    let post = mock
        .request(Method::POST, "/v1/pets")
        .bearer_auth("free-key")
        .body("0");
    assert_eq!(post.send().await.unwrap().status(), 415);
    let report = mock.server.report();
    report.assert_compliant();
    assert_eq!((found(&mock), report.requests()), (vec![], 7));
    assert_eq!(
        report.summary_line(),
        "compliance: nothing found in 7 requests"
    );
}

#[tokio::test]
async fn a_request_sent_while_told_to_wait_is_found() {
    let mock = with_quota(1).await;
    // The first request uses the quota up, and the second one is told to wait. All others are
    // early.
    for status in [200, 429, 429] {
        assert_eq!(list(&mock, "free-key").await, status);
    }
    mock.advance(20);
    list(&mock, "free-key").await;
    mock.advance(30);
    assert_eq!(list(&mock, "free-key").await, 200);
    assert_eq!(found(&mock), [(Rule::ToldToWait, Severity::Violation)]);
    let report = mock.server.report();
    let finding = report.findings().next().unwrap();
    assert_eq!(
        finding.text,
        "2 requests arrived while the key was told to wait until 00:01:00 (429, Retry-After: 50, at \
         00:00:10)"
    );
    let requests: Vec<_> = finding
        .requests
        .iter()
        .map(|one| (one.number, one.role, one.early_seconds.map(f64::floor)))
        .collect();
    assert_eq!(
        requests,
        [
            (2, Role::Cause, None),
            (3, Role::Offence, Some(50.0)),
            (4, Role::Offence, Some(30.0))
        ]
    );
    assert_eq!(MINUTE_ENDS, NOW + 50);
    assert!(!report.is_compliant());
    assert_eq!(
        report.summary_line(),
        "compliance: 1 violation in 5 requests; 3 were answered 429"
    );
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
        assert_eq!(response.status(), 429);
        open.push((client, response));
    }
    let report = mock.server.report();
    let finding = report.of(Severity::Violation).next().unwrap();
    assert_eq!((finding.rule, finding.offences), (Rule::ToldToWait, 8));
    let remedy = finding.remedy.as_deref().unwrap();
    assert!(
        remedy.ends_with("`--senders N` (9 connections were open)"),
        "{remedy}"
    );
}

#[tokio::test]
#[should_panic(expected = "violation [told-to-wait]  key free-key")]
async fn an_assertion_fails_with_the_report() {
    let mock = with_quota(1).await;
    for _ in 0..3 {
        list(&mock, "free-key").await;
    }
    mock.server.report().assert_compliant();
}

#[tokio::test]
async fn senders_are_declared_for_one_key_or_for_all() {
    let mock = start_with(|builder| {
        let none = Plan::enterprise(0, 1_000);
        builder.senders(3).key("all", none).key("one", none)
    })
    .await;
    let added = mock.server.key(Plan::enterprise(0, 1_000));
    mock.server.keys().get("one").unwrap().senders(1);
    for (key, senders) in [("all", 3), ("one", 1), (&*added, 3)] {
        for requests in 1..=senders + 1 {
            assert_eq!(list(&mock, key).await, 429);
            let report = mock.server.report();
            let accused = report
                .of(Severity::Violation)
                .filter(|it| it.senders == senders);
            let is_accused = accused.count() > usize::from(key == &*added);
            assert_eq!(is_accused, requests > senders, "{key} {requests}");
        }
    }
    // A key that is created for a test can have its own.
    let eight = mock.server.key(Plan::enterprise(0, 1_000)).senders(8);
    for _ in 0..8 {
        list(&mock, &eight).await;
    }
    let usage: Vec<_> = mock
        .server
        .keys()
        .all()
        .iter()
        .map(|key| key.usage().unwrap().senders)
        .collect();
    assert_eq!(usage, [3, 1, 3, 8]);
    assert_eq!(mock.server.report().of(Severity::Violation).count(), 3);
}

#[tokio::test]
async fn senders_are_declared_over_http() {
    let mock = start().await;
    let send = async |method, path: &str, body: &'static str| {
        let request = mock.request(method, path).body(body);
        request.send().await.unwrap().status().as_u16()
    };
    let senders = |number: u32| {
        let keys = mock.server.keys().all();
        let key = keys.into_iter().find(|key| key.number() == number);
        key.unwrap().usage().unwrap().senders
    };
    let added = r#"{"plan": "free", "senders": 8}"#;
    assert_eq!(send(Method::POST, "/_mock/keys", added).await, 201);
    assert_eq!(senders(5), 8);
    assert_eq!(
        send(Method::PATCH, "/_mock/keys/5", r#"{"senders": 4}"#).await,
        204
    );
    assert_eq!(senders(5), 4);
    assert_eq!(
        send(Method::PATCH, "/_mock/keys/5", r#"{"plan": "pro"}"#).await,
        204
    );
    assert_eq!(senders(5), 4);
    for body in [
        r#"{"senders": 0}"#,
        r#"{"senders": null}"#,
        "{}",
        r#"{"senders": "8"}"#,
    ] {
        assert_eq!(
            send(Method::PATCH, "/_mock/keys/5", body).await,
            400,
            "{body}"
        );
    }
    assert_eq!(
        send(Method::PATCH, "/_mock/keys/99", r#"{"senders": 4}"#).await,
        404
    );
    let keys: Value = serde_json::from_str(&mock.get("/_mock/keys").await.body).unwrap();
    assert_eq!(keys[4]["senders"], 4);
}

#[tokio::test]
async fn a_repeated_post_is_found_unless_the_client_looked() {
    for looks in [true, false] {
        let mock = start().await;
        let lost = mock.on(Operation::CreatePet).first(1).reset();
        assert_eq!(post(&mock, REX).await, None);
        assert_eq!(
            post(&mock, r#"{"name": "Tom", "categoryId": 7}"#).await,
            Some(201)
        );
        assert_eq!(found(&mock), [], "another animal is no repeat");
        if looks {
            list(&mock, "free-key").await;
        }
        mock.advance(2);
        assert_eq!(post(&mock, REX_OTHERWISE).await, Some(201));
        let report = mock.server.report();
        let texts: Vec<_> = report.findings().map(|it| &*it.text).collect();
        if looks {
            assert_eq!(texts, [""; 0]);
        } else {
            assert_eq!(texts.len(), 1);
            let end = "after no response (#1), without a look at GET /pets; pets 26 and 28 are duplicates";
            assert!(texts[0].ends_with(end), "{texts:?}");
        }
        drop(lost);
    }
}

#[tokio::test]
async fn the_fault_that_a_request_chooses_is_a_part_of_it() {
    let mock = start_with(Builder::fault_header).await;
    let add = async |fault: Option<&str>| {
        let request = mock
            .request(Method::POST, "/v1/pets")
            .bearer_auth("free-key");
        let request = fault
            .into_iter()
            .fold(request, |it, fault| it.header("x-mock-fault", fault));
        let request = request.header("content-type", "application/json").body(REX);
        request.send().await.unwrap().status().as_u16()
    };
    // Two tests of a suite: one of an error, and one of success.
    assert_eq!(add(Some("500")).await, 500);
    assert_eq!(add(None).await, 201);
    assert_eq!(found(&mock), []);
    assert_eq!(add(Some("500")).await, 500);
    assert_eq!(found(&mock), [(Rule::RepeatedPost, Severity::Violation)]);
}

#[tokio::test]
async fn retries_are_judged_by_their_pauses_on_the_mocks_clock() {
    let mock = start().await;
    let _busy = mock.on(Operation::ListPets).status(503);
    for wait in [1, 2, 4, 8, 16, 2, 2, 2, 2, 2] {
        list(&mock, "free-key").await;
        mock.advance(wait);
    }
    assert_eq!(found(&mock), []);
}

#[tokio::test]
async fn the_retry_after_of_a_fault_counts() {
    let mock = start().await;
    let busy = [
        Effect::status(503),
        Effect::RetryAfter(RetryAfter::Seconds(1)),
    ];
    let _busy = mock.on(Operation::ListPets).apply(Effect::All(busy.into()));
    for _ in 0..5 {
        assert_eq!(list(&mock, "free-key").await, 503);
        mock.advance(1);
    }
    assert_eq!(found(&mock), []);
    for _ in 0..2 {
        list(&mock, "free-key").await;
    }
    assert_eq!(found(&mock), [(Rule::RetryAfter, Severity::Warning)]);
}

#[tokio::test]
async fn a_falsified_date_and_an_absurd_wait_are_not_judged() {
    let later = HeaderValue::from_static("Thu, 01 Jan 2026 00:05:00 GMT");
    for effects in [
        vec![
            Effect::status(429),
            Effect::RetryAfter(RetryAfter::Seconds(50)),
            Effect::SetHeader(HeaderField::new(DATE, later)),
        ],
        vec![
            Effect::status(429),
            Effect::RetryAfter(RetryAfter::Epoch(50)),
        ],
        vec![
            Effect::status(429),
            Effect::RetryAfter(RetryAfter::Text("soon".into())),
        ],
    ] {
        let mock = start().await;
        let _busy = mock.on(Operation::ListPets).apply(Effect::All(effects));
        for _ in 0..3 {
            assert_eq!(list(&mock, "free-key").await, 429);
        }
        assert_eq!(found(&mock), []);
        let line = mock.server.report().summary_line();
        assert_eq!(
            line,
            "compliance: nothing found in 3 requests; 3 were answered 429"
        );
    }
}

#[tokio::test]
async fn keys_in_the_wrong_place_are_found_and_not_shown() {
    let secret = "sk-0123456789-secret";
    let mock = start_with(|builder| builder.key(secret, Plan::Free)).await;
    let get = |path: &str| mock.request(Method::GET, path);
    let encoded = secret.replace('-', "%2D");
    for path in [
        format!("/v1/pets?token={secret}"),
        format!("/v1/pets/{secret}?limit=5"),
        format!("/v1/pets?q=a{encoded}b"),
        "/v1/pets?api_key=whatever".to_owned(),
        "/v1/pets?q=freedom".to_owned(),
    ] {
        get(&path).send().await.unwrap();
    }
    get("/v1/pets")
        .basic_auth("me", Some(secret))
        .send()
        .await
        .unwrap();
    get("/v1/pets?status=available")
        .bearer_auth(secret)
        .send()
        .await
        .unwrap();
    let violation = (Rule::Key, Severity::Violation);
    assert_eq!(
        found(&mock),
        [
            violation,
            violation,
            violation,
            violation,
            (Rule::Deprecated, Severity::Notice)
        ]
    );
    let report = mock.server.report();
    assert!(!format!("{report:?}").contains("0123456789"));
    for form in [report.to_text(), report.to_json(), report.to_junit()] {
        assert!(
            form.contains("`token` is a key of this server") && !form.contains("0123456789"),
            "{form}"
        );
        assert!(!form.contains("whatever"), "{form}");
    }
}

#[tokio::test]
async fn findings_survive_a_reset_until_they_are_deleted() {
    let secret = "sk-0123456789-secret";
    let mock = start_with(|builder| builder.key(secret, Plan::Pro).journal(0)).await;
    for _ in 0..50 {
        mock.get_as(secret, &format!("/v1/pets?limit=1&k={secret}"))
            .await;
    }
    assert!(mock.server.requests(..).is_empty());
    mock.server.reset().unwrap();
    let report = mock.server.report();
    let finding = report.of(Severity::Violation).next().unwrap();
    assert_eq!((finding.rule, finding.offences), (Rule::Key, 50));
    assert!(finding.requests.len() < 20);
    assert_eq!(report.findings().count(), 1, "once a parameter");
    assert_eq!(
        mock.request(Method::DELETE, "/_mock/report")
            .send()
            .await
            .unwrap()
            .status(),
        204
    );
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
    for (name, cross) in boundaries {
        let lost = mock.on(Operation::CreatePet).first(1).status(500);
        assert_eq!(post(&mock, REX).await, Some(500));
        lost.detach();
        cross();
        // With a frozen clock, the ban has not ended.
        post(&mock, REX).await;
        assert_eq!(found(&mock), [], "{name}");
        key.unban();
        mock.server.reset().unwrap();
    }
    // Moving the clock is no boundary.
    let _lost = mock.on(Operation::CreatePet).first(1).status(500);
    assert_eq!(post(&mock, REX).await, Some(500));
    mock.advance(10);
    assert_eq!(post(&mock, REX).await, Some(201));
    assert_eq!(found(&mock), [(Rule::RepeatedPost, Severity::Violation)]);
}

#[tokio::test]
async fn a_rule_has_the_severity_that_is_set() {
    let mock = start_with(|builder| {
        builder
            .rule(Rule::Key, None)
            .rule(Rule::Deprecated, Severity::Warning)
    })
    .await;
    mock.get_as("free-key", "/v1/pets/1?k=free-key").await;
    assert_eq!(found(&mock), [(Rule::Deprecated, Severity::Warning)]);
    let report = mock.server.report();
    assert!(!report.to_junit().contains("name=\"key, "));
    let json: Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(json["rules"]["deprecated"]["severity"], "warning");
    // The report names disabled rules. Otherwise a reader could think that these rules found
    // nothing.
    let set = "severities set: key off, deprecated warning";
    assert!(report.to_text().contains(set), "{report}");
}

#[tokio::test]
async fn a_named_key_is_shown_by_its_name() {
    let builder = |it: Builder| {
        it.named_key("ci-main", "sk-of-the-main-branch", Plan::Free)
            .key("other-key", Plan::Pro)
    };
    let mock = start_with(builder).await;
    mock.get_as("sk-of-the-main-branch", "/v1/pets?k=other-key")
        .await;
    mock.get_as("other-key", "/v1/pets?k=other-key").await;
    let report = mock.server.report();
    let keys: Vec<_> = report
        .of(Severity::Violation)
        .map(|finding| &*finding.key)
        .collect();
    assert_eq!(
        keys,
        ["ci-main", "#2"],
        "in the order in which they were given"
    );
    let key = mock.server.requests(..)[0]
        .key
        .as_ref()
        .map(ToString::to_string);
    assert_eq!(key.as_deref(), Some("#1 ci-main (free)"));
    assert!(!report.to_json().contains("sk-of"));
}

#[test]
fn a_post_repeated_as_soon_as_its_client_gives_up_is_found() {
    let server = petstore_mock::MockServer::start_blocking();
    let hangs = server
        .faults()
        .on(Operation::CreatePet)
        .apply(Effect::Hang {
            after_body_bytes: None,
        });
    let send = |name: u64| {
        let body = format!(r#"{{"name":"{name}","categoryId":7}}"#);
        let head = "POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer free-key\r\n\
                    Content-Type: application/json\r\nContent-Length";
        let mut stream = std::net::TcpStream::connect(server.addr()).unwrap();
        write!(stream, "{head}: {}\r\n\r\n{body}", body.len()).unwrap();
        stream
    };
    for name in 1..=20 {
        for hits in [2 * name - 1, 2 * name] {
            // The connection is dropped as soon as its request hangs.
            let _request = send(name);
            while hangs.hits() < hits {
                std::thread::yield_now();
            }
        }
    }
    while !server.report().summary_line().contains("in 40 requests") {
        std::thread::yield_now();
    }
    let report = server.report();
    let found = report.of(Severity::Violation);
    assert_eq!(
        found.filter(|it| it.rule == Rule::RepeatedPost).count(),
        20,
        "{report}"
    );
}
