//! Tests of the compliance report over sockets: its input, the clients that it names, and that it
//! shows no key. Recordings test the rules in detail.

use std::io::Write as _;
use std::time::Duration;

use petstore_mock::{Builder, Effect, Operation, Plan, RetryAfter, Role, Rule, Severity};
use reqwest::Method;
use serde_json::Value;

use super::support::{MINUTE_ENDS, Mock, NOW, REX, start, start_with};

const REX_OTHERWISE: &str = r#"{"categoryId": 7, "name": "Rex"}"#;

/// Returns each rule that was broken, and how often.
fn found(mock: &Mock) -> Vec<(Rule, u64)> {
    mock.server
        .report()
        .findings()
        .map(|finding| (finding.rule, finding.count))
        .collect()
}

/// Returns the numbers of the requests that caused or broke the rule of the first finding.
fn concerned(mock: &Mock) -> Vec<u64> {
    let report = mock.server.report();
    let finding = report.findings().next().expect("there is a finding");
    let requests = finding.evidence[0].requests.iter();
    let concerned = requests.filter(|one| matches!(one.role, Role::Cause | Role::Offence));
    concerned.map(|one| one.number).collect()
}

/// Lists pets with a key and returns the status.
async fn list(mock: &Mock, key: &str) -> u16 {
    mock.get_as(key, "/v1/pets").await.status
}

/// Sends a request from a new client without a `User-Agent`.
async fn anonymous(mock: &Mock, path: &str) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client
        .get(format!("{}{path}", mock.server.url()))
        .bearer_auth("free-key");
    request.send().await.unwrap();
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
    assert_eq!(
        found(&mock),
        [(Rule::ToldToWait, 1), (Rule::QuotaIgnored, 1)]
    );
    let report = mock.server.report();
    let evidence = &report.of(Severity::Violation).next().unwrap().evidence[0];
    assert_eq!(
        serde_json::to_value(evidence).unwrap()["at"],
        "2026-01-01T00:00:10.000Z"
    );
    assert_eq!(evidence.by, Some(Duration::from_secs(50)));
    let told = "wait until 00:01:00.000 (429, Retry-After: 50, #2)";
    assert_eq!(
        (evidence.told.as_deref(), evidence.offences),
        (Some(told), 2)
    );
    let roles: Vec<_> = evidence
        .requests
        .iter()
        .map(|one| (one.number, one.role))
        .collect();
    let expected = [
        Role::Before,
        Role::Cause,
        Role::Offence,
        Role::Offence,
        Role::After,
    ];
    assert_eq!(roles, (1..).zip(expected).collect::<Vec<_>>());
    assert_eq!(MINUTE_ENDS, NOW + 50);
    assert!(!report.is_compliant());
}

#[tokio::test]
#[should_panic(expected = "violation [told-to-wait] sent before Retry-After elapsed, once")]
async fn an_assertion_fails_with_the_report() {
    let mock = with_quota(1).await;
    for _ in 0..3 {
        list(&mock, "free-key").await;
    }
    mock.server.report().assert_compliant();
}

#[tokio::test]
async fn a_burst_beyond_the_quota_is_noted_and_one_within_it_is_not() {
    let mock = start().await;
    let request = || {
        mock.request(Method::GET, "/v1/pets")
            .bearer_auth("free-key")
    };
    let send = || tokio::spawn(request().send());
    for _ in 0..2 {
        assert_eq!(list(&mock, "free-key").await, 200);
        for request in (0..59).map(|_| send()).collect::<Vec<_>>() {
            assert_eq!(request.await.unwrap().unwrap().status(), 200);
        }
        mock.advance(60);
    }
    assert_eq!(found(&mock), []);
    for request in (0..100).map(|_| send()).collect::<Vec<_>>() {
        request.await.unwrap().unwrap();
    }
    // The refused requests also cause a ban.
    assert!(found(&mock).contains(&(Rule::QuotaIgnored, 2)));
    // The sentence is about the shown requests, which are the first ones.
    let mock = with_quota(1).await;
    for _ in 0..9 {
        list(&mock, "free-key").await;
    }
    let text = mock
        .server
        .report()
        .of(Severity::Notice)
        .next()
        .unwrap()
        .evidence[0]
        .text
        .clone();
    assert!(text.contains("#1 was answered Remaining: 0"), "{text}");
}

#[tokio::test]
async fn a_repeated_post_is_found_unless_the_client_looked() {
    for (looks, expected) in [(true, vec![]), (false, vec![(Rule::RepeatedPost, 1)])] {
        let mock = start().await;
        let lost = mock.on(Operation::CreatePet).first(1).reset();
        assert_eq!(post(&mock, REX).await, None);
        assert_eq!(
            post(&mock, r#"{"name": "Tom", "categoryId": 7}"#).await,
            Some(201)
        );
        assert_eq!(found(&mock), [], "another animal is no repeat");
        if looks {
            // The first page does not contain the pet, so the client may send the POST again.
            list(&mock, "free-key").await;
        }
        mock.advance(2);
        assert_eq!(post(&mock, REX_OTHERWISE).await, Some(201));
        assert_eq!(found(&mock), expected, "{looks}");
        if !looks {
            assert_eq!(concerned(&mock), [1, 3]);
        }
        drop(lost);
    }
}

#[tokio::test]
async fn retries_are_judged_by_their_waits_on_the_mocks_clock() {
    let mock = start().await;
    let _busy = mock.on(Operation::ListPets).status(503);
    for wait in [1, 2, 4, 8, 16] {
        list(&mock, "free-key").await;
        mock.advance(wait);
    }
    assert_eq!(found(&mock), []);
    for _ in 0..6 {
        list(&mock, "pro-key").await;
        mock.advance(2);
    }
    assert_eq!(found(&mock), [(Rule::SteadyRetry, 1)]);
    assert_eq!(concerned(&mock), [6, 7, 8, 9, 10, 11]);
    mock.server.report().assert_compliant();
    // Users of a gateway may send like this.
    for wait in [10, 60, 25, 48, 12, 33, 57, 19, 41] {
        list(&mock, "business-key").await;
        mock.server.clock().advance(Duration::from_millis(wait));
    }
    assert_eq!(found(&mock), [(Rule::SteadyRetry, 1)]);
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
    assert_eq!(found(&mock), [(Rule::RetryAfter, 1)]);
}

#[tokio::test]
async fn bodies_that_the_service_did_not_read_are_compared() {
    let mock = start().await;
    for names in [["Ada", "Bob", "Cleo", "Dora", "Emil", "Fred"], ["Ada"; 6]] {
        assert_eq!(found(&mock), [], "different bodies are different requests");
        for name in names {
            let request = mock
                .request(Method::POST, "/v1/pets")
                .bearer_auth("free-key");
            let request = request
                .header("content-type", "text/plain")
                .header("user-agent", "a/1");
            assert_eq!(request.body(name).send().await.unwrap().status(), 415);
        }
    }
    assert_eq!(found(&mock), [(Rule::RepeatedError, 1)]);
    assert_eq!(concerned(&mock), [7, 8, 9, 10, 11, 12]);
}

#[tokio::test]
async fn keys_in_the_wrong_place_are_found_and_not_shown() {
    let secret = "sk-0123456789-secret";
    let mock = start_with(|builder| builder.key(secret, Plan::Free)).await;
    let get = |path: &str| {
        mock.request(Method::GET, path)
            .header("user-agent", "test/1")
    };
    let encoded = secret.replace('-', "%2D");
    for path in [
        format!("/v1/pets?token={secret}"),
        format!("/v1/pets/{secret}?limit=5"),
        format!("/v1/pets?q=a{encoded}b"),
        "/v1/pets?api_key=whatever".to_owned(),
        "/v1/pets?q=freedom".to_owned(),
    ] {
        get(&path)
            .header("x-mock-scope", secret)
            .send()
            .await
            .unwrap();
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
    assert_eq!(
        found(&mock),
        [
            (Rule::KeyInUrl, 4),
            (Rule::KeyScheme, 1),
            (Rule::Deprecated, 1)
        ]
    );
    let report = mock.server.report();
    assert!(!format!("{report:?}").contains("0123456789"));
    for form in [
        report.to_text(),
        report.to_json(),
        report.to_junit(),
        report.to_markdown(),
        report.summary_line(),
    ] {
        assert!(
            form.contains("key-in-url") && !form.contains("0123456789"),
            "{form}"
        );
        assert!(!form.contains("whatever"), "{form}");
    }
}

#[tokio::test]
async fn a_notice_counts_once_per_client_and_fails_nothing() {
    let mock = start().await;
    for _ in 0..10 {
        anonymous(&mock, "/pets/1").await;
    }
    let expected = [
        (Rule::Deprecated, 1),
        (Rule::KeepAlive, 1),
        (Rule::UserAgent, 1),
    ];
    assert_eq!(found(&mock), expected);
    let report = mock.server.report();
    let evidence = &report.of(Severity::Notice).next().unwrap().evidence[0];
    assert_eq!((&*evidence.text, evidence.offences), ("1799 days left", 10));
    report.assert_compliant();
}

#[tokio::test]
async fn findings_survive_a_reset_until_they_are_deleted() {
    let mock = start_with(|builder| builder.journal(0)).await;
    for _ in 0..50 {
        let request = mock.request(Method::GET, "/v1/pets/1?api_key=x");
        request.bearer_auth("free-key").send().await.unwrap();
    }
    assert!(mock.server.requests(..).is_empty());
    mock.server.reset().unwrap();
    let report = mock.server.report();
    let finding = report.of(Severity::Violation).next().unwrap();
    assert_eq!(
        (finding.rule, finding.count),
        (Rule::KeyInUrl, 1),
        "once a parameter"
    );
    assert_eq!(finding.evidence[0].offences, 50);
    assert!(finding.evidence[0].requests.len() < 20);
    assert_eq!(
        mock.request(Method::DELETE, "/_mock/report")
            .send()
            .await
            .unwrap()
            .status(),
        204
    );
    assert!(mock.server.report().is_compliant());
}

#[tokio::test]
async fn requests_before_a_boundary_do_not_count_against_a_client() {
    let mock = start().await;
    let key = mock.server.keys().get("free-key").unwrap();
    let snapshot = mock.server.snapshot();
    // Five refusals in a row break a rule, however long they take.
    let refuse = async |times| {
        for _ in 0..times {
            assert_eq!(list(&mock, "unknown").await, 401);
        }
    };
    let boundaries: [(&str, &dyn Fn()); 6] = [
        ("a reset", &|| mock.server.reset().unwrap()),
        ("a scope", &|| drop(mock.server.scope("test"))),
        ("a fault", &|| {
            mock.on(Operation::GetPet).status(500).optional().detach();
        }),
        ("a plan", &|| key.set_plan(Plan::Pro)),
        ("a ban", &|| key.ban(Duration::from_secs(1))),
        ("a snapshot", &|| mock.server.restore(&snapshot).unwrap()),
    ];
    for (name, cross) in boundaries {
        refuse(4).await;
        cross();
        assert_eq!(found(&mock), [], "{name}");
    }
    refuse(4).await;
    // Moving the clock is no boundary.
    mock.advance(10);
    refuse(1).await;
    assert_eq!(found(&mock), [(Rule::RepeatedError, 1)]);
}

#[tokio::test]
async fn a_finding_belongs_to_the_scope_of_its_requests() {
    let mock = start().await;
    let leak = |key: &str| {
        let request = mock.request(Method::GET, &format!("/v1/pets?api_key={key}"));
        request.header("user-agent", "test/1").bearer_auth(key)
    };
    leak("free-key").send().await.unwrap();
    let key = mock.server.key(Plan::Free);
    leak(&key).send().await.unwrap();
    let scope = mock.server.scope("tests::outer");
    leak(&key).send().await.unwrap();
    leak(&key)
        .header("x-mock-scope", "tests::inner")
        .send()
        .await
        .unwrap();
    drop(scope);
    let report = mock.server.report();
    let of_key = format!("#{}", key.number());
    let expected = ["default", &of_key, "tests::outer", "tests::inner"];
    assert_eq!(
        report
            .of(Severity::Violation)
            .map(|it| &*it.scope)
            .collect::<Vec<_>>(),
        expected
    );
    assert_eq!(
        report.scopes().map(|(scope, _)| scope).collect::<Vec<_>>(),
        expected
    );
    assert!(!report.to_json().contains(key.as_str()));
}

#[tokio::test]
async fn a_rule_has_the_severity_that_is_set() {
    let mock = start_with(|builder| {
        builder
            .rule(Rule::KeyInUrl, None)
            .rule(Rule::UserAgent, Severity::Violation)
            .rule(Rule::Deprecated, Severity::Warning)
    })
    .await;
    anonymous(&mock, "/pets/1?api_key=x").await;
    let report = mock.server.report();
    let found = report
        .findings()
        .map(|finding| (finding.rule, finding.severity));
    let expected = [
        (Rule::UserAgent, Severity::Violation),
        (Rule::Deprecated, Severity::Warning),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert!(!report.to_junit().contains("key-in-url"));
    let json: Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(json["rules"]["deprecated"]["severity"], "warning");
    // The report names disabled rules. Otherwise a reader could think that these rules found
    // nothing.
    for text in [report.to_text(), report.to_markdown()] {
        let set = "severities set: key-in-url off, deprecated warning, user-agent violation";
        assert!(text.contains(set), "{text}");
    }
}

#[tokio::test]
async fn a_named_key_is_shown_by_its_name() {
    let builder = |it: Builder| {
        it.named_key("ci-main", "sk-of-the-main-branch", Plan::Free)
            .key("other-key", Plan::Pro)
    };
    let mock = start_with(builder).await;
    mock.get_as("sk-of-the-main-branch", "/v1/pets?api_key=x")
        .await;
    mock.get_as("other-key", "/v1/pets?api_key=x").await;
    let report = mock.server.report();
    let keys: Vec<_> = report
        .of(Severity::Violation)
        .map(|finding| &*finding.client.key)
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
    let counts = report
        .findings()
        .map(|finding| (finding.rule, finding.count));
    assert!(
        counts
            .collect::<Vec<_>>()
            .contains(&(Rule::RepeatedPost, 20)),
        "{report}"
    );
}
