//! Clients that break a rule on purpose are found, with the evidence; those that don't are not. The
//! rules in their detail are tested under the code.

use std::time::Duration;

use petstore_mock::{BanPolicy, MockServer, Operation, Plan, Report, Role, Rule};
use reqwest::{Client, Method};

use super::support::{MINUTE_ENDS, NOW, at, start, start_with};

const REX: &str = r#"{"name": "Rex", "categoryId": 7}"#;

/// Returns each rule that was broken, and how often.
fn found(report: &Report) -> Vec<(Rule, u64)> {
    report.findings().map(|finding| (finding.rule, finding.count)).collect()
}

/// Returns the numbers of the requests that the first finding is about.
fn concerned(report: &Report) -> Vec<u64> {
    let finding = report.findings().next().expect("there is a finding");
    finding.evidence[0].concerned().collect()
}

/// A client that says what it is, and does nothing by itself.
fn client() -> Client {
    Client::builder().no_proxy().user_agent("test/1").build().unwrap()
}

/// Lists pets with a key and returns the status.
async fn list(client: &Client, server: &MockServer, key: &str) -> u16 {
    let request = client.get(format!("{}/pets", server.url())).bearer_auth(key);
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_polite_client_is_clean() {
    let mock = start_with(|builder| builder.key("free-key", Plan::enterprise(2, 1_000))).await;
    let (client, server) = (client(), &mock.server);
    for _ in 0..3 {
        for status in [200, 200] {
            assert_eq!(list(&client, server, "free-key").await, status);
        }
        mock.advance(60);
    }
    let post = client.post(format!("{}/pets", server.url())).bearer_auth("free-key").body("0");
    assert_eq!(post.send().await.unwrap().status(), 415);
    let report = server.report();
    report.assert_compliant();
    assert_eq!((found(&report), report.requests()), (vec![], 7));
    assert_eq!(report.summary_line(), "compliance: nothing found in 7 requests");
}

#[tokio::test]
async fn who_sends_while_told_to_wait_is_found() {
    let mock = start_with(|builder| builder.key("free-key", Plan::enterprise(1, 1_000))).await;
    let (client, server) = (client(), &mock.server);
    list(&client, server, "free-key").await;
    // It is told that nothing is left; then it is told to wait; then it sends nevertheless.
    for status in [429, 429] {
        assert_eq!(list(&client, server, "free-key").await, status);
    }
    mock.advance(20);
    list(&client, server, "free-key").await;
    mock.advance(30);
    assert_eq!(list(&client, server, "free-key").await, 200);
    let report = server.report();
    assert_eq!(found(&report), [(Rule::ToldToWait, 1), (Rule::QuotaIgnored, 1)]);
    let evidence = &report.violations().next().unwrap().evidence[0];
    assert_eq!((evidence.at, evidence.by), (at(NOW), Some(Duration::from_secs(50))));
    let told = "wait until 00:01:00.000 (429, Retry-After: 50, #2)";
    assert_eq!((evidence.told.as_deref(), evidence.offences), (Some(told), 2));
    let roles: Vec<_> = evidence.requests.iter().map(|one| (one.number, one.role)).collect();
    let expected = [Role::Before, Role::Cause, Role::Offence, Role::Offence, Role::After];
    assert_eq!(roles, (1..).zip(expected).collect::<Vec<_>>());
    assert_eq!(MINUTE_ENDS, NOW + 50);
    assert!(!report.is_compliant());
}

#[tokio::test]
#[should_panic(expected = "violation [told-to-wait] sent while told to wait, once")]
async fn an_assertion_fails_with_the_report() {
    let mock = start_with(|builder| builder.key("free-key", Plan::enterprise(1, 1_000))).await;
    for _ in 0..3 {
        list(&client(), &mock.server, "free-key").await;
    }
    mock.server.report().assert_compliant();
}

#[tokio::test]
async fn who_sends_while_banned_is_found() {
    let ban = BanPolicy { after: 0, ..BanPolicy::default() };
    let plan = Plan::enterprise(1, 1_000);
    let mock = start_with(|builder| builder.key("free-key", plan).ban(ban)).await;
    let (client, server) = (client(), &mock.server);
    for _ in 0..3 {
        list(&client, server, "free-key").await;
    }
    mock.advance(100);
    list(&client, server, "free-key").await;
    let report = server.report();
    let finding = report.violations().next().unwrap();
    assert_eq!((finding.rule, finding.count), (Rule::ToldToWait, 1));
    assert!(report.to_text().contains("the key is banned"), "{report}");
}

#[tokio::test]
async fn many_at_once_on_a_small_key_are_a_burst() {
    let mock = start().await;
    let client = client();
    let url = format!("{}/pets", mock.server.url());
    let send = || tokio::spawn(client.get(&url).bearer_auth("free-key").send());
    for request in (0..100).map(|_| send()).collect::<Vec<_>>() {
        request.await.unwrap().unwrap();
    }
    assert!(found(&mock.server.report()).contains(&(Rule::QuotaIgnored, 1)));
}

#[tokio::test]
async fn a_probe_and_then_as_many_as_it_allows_are_not() {
    let mock = start().await;
    let client = client();
    let url = format!("{}/pets", mock.server.url());
    for _ in 0..2 {
        assert_eq!(list(&client, &mock.server, "free-key").await, 200);
        let send = || tokio::spawn(client.get(&url).bearer_auth("free-key").send());
        for request in (0..59).map(|_| send()).collect::<Vec<_>>() {
            assert_eq!(request.await.unwrap().unwrap().status(), 200);
        }
        mock.advance(60);
    }
    assert_eq!(found(&mock.server.report()), []);
}

#[tokio::test]
async fn who_sends_a_post_again_whose_answer_was_lost_is_found() {
    let mock = start().await;
    let (client, server) = (client(), &mock.server);
    let post = async |body: &'static str| {
        let request = client.post(format!("{}/pets", server.url())).bearer_auth("free-key");
        request.header("content-type", "application/json").body(body).send().await
    };
    let lost = server.faults().on(Operation::CreatePet).first(1).status(502);
    assert_eq!(post(REX).await.unwrap().status(), 502);
    post(r#"{"name": "Tom", "categoryId": 7}"#).await.unwrap();
    assert_eq!(found(&server.report()), [], "another animal is no repetition");
    mock.advance(2);
    post(REX).await.unwrap();
    let report = server.report();
    assert_eq!(found(&report), [(Rule::RepeatedPost, 1)]);
    assert_eq!(concerned(&report), [1, 3]);
    drop(lost);
}

#[tokio::test]
async fn who_retries_without_a_pause_is_found_and_who_backs_off_is_not() {
    let mock = start().await;
    let (client, server) = (client(), &mock.server);
    let busy = server.faults().on(Operation::ListPets).status(503);
    for wait in [1, 2, 4, 8, 16] {
        list(&client, server, "free-key").await;
        mock.advance(wait);
    }
    assert_eq!(found(&server.report()), []);
    // Even waits are no back-off, whatever the machine adds to them.
    for _ in 0..6 {
        list(&client, server, "pro-key").await;
        mock.advance(2);
    }
    assert_eq!(found(&server.report()), [(Rule::SteadyRetry, 1)]);
    for _ in 0..4 {
        list(&client, server, "business-key").await;
    }
    let report = server.report();
    assert_eq!(found(&report), [(Rule::BackOff, 1), (Rule::SteadyRetry, 1)]);
    assert_eq!(concerned(&report), [12, 13, 14, 15]);
    drop(busy);
}

#[tokio::test]
async fn who_repeats_its_mistake_is_found() {
    let mock = start().await;
    for _ in 0..7 {
        let request = mock.request(Method::POST, "/v1/pets").header("user-agent", "test/1");
        request.bearer_auth("free-key").body("no pet").send().await.unwrap();
    }
    let report = mock.server.report();
    assert_eq!(found(&report), [(Rule::RepeatedError, 1)]);
    assert_eq!(concerned(&report), [1, 2, 3, 4, 5, 6, 7]);
}

#[tokio::test]
async fn keys_in_the_wrong_place_are_found_and_not_shown() {
    let secret = "sk-0123456789-secret";
    let mock = start_with(|builder| builder.key(secret, Plan::Free)).await;
    let get = |path: &str| mock.request(Method::GET, path).header("user-agent", "test/1");
    let encoded = secret.replace('-', "%2D");
    for path in [
        format!("/v1/pets?token={secret}"),
        format!("/v1/pets/{secret}?limit=5"),
        format!("/v1/pets?q=a{encoded}b"),
        "/v1/pets?api_key=whatever".to_owned(),
        "/v1/pets?q=freedom".to_owned(),
    ] {
        get(&path).header("x-mock-scope", secret).send().await.unwrap();
    }
    get("/v1/pets").basic_auth("me", Some(secret)).send().await.unwrap();
    get("/v1/pets?status=available").bearer_auth(secret).send().await.unwrap();
    let report = mock.server.report();
    let scheme = [(Rule::KeyScheme, 1), (Rule::Deprecated, 1)];
    assert_eq!(found(&report), [vec![(Rule::KeyInUrl, 4)], scheme.to_vec()].concat());
    let forms = [
        report.to_text(),
        report.to_json(),
        report.to_junit(),
        report.to_markdown(),
        report.summary_line(),
    ];
    assert!(!format!("{report:?}").contains("0123456789"));
    for form in forms {
        assert!(form.contains("key-in-url") && !form.contains("0123456789"), "{form}");
        assert!(!form.contains("whatever"), "{form}");
    }
}

#[tokio::test]
async fn what_could_be_better_is_noted_and_breaks_nothing() {
    let mock = start().await;
    for _ in 0..10 {
        let client = Client::builder().no_proxy().build().unwrap();
        let url = format!("{}/pets/1", mock.server.url());
        client.get(url).bearer_auth("free-key").send().await.unwrap();
    }
    let report = mock.server.report();
    assert_eq!(
        found(&report),
        [(Rule::Deprecated, 1), (Rule::KeepAlive, 1), (Rule::UserAgent, 1)],
        "a notice counts once a client"
    );
    let evidence = &report.notices().next().unwrap().evidence[0];
    assert_eq!((&*evidence.text, evidence.offences), ("1799 days are left", 10));
    report.assert_compliant();
}

#[tokio::test]
async fn the_report_remembers_what_the_journal_has_forgotten() {
    let mock = start_with(|builder| builder.journal(0)).await;
    for _ in 0..50 {
        let request = mock.request(Method::GET, "/v1/pets/1?api_key=x");
        request.bearer_auth("free-key").send().await.unwrap();
    }
    let report = mock.server.report();
    assert!(mock.server.requests(..).is_empty());
    let finding = report.violations().next().unwrap();
    assert_eq!((finding.rule, finding.count), (Rule::KeyInUrl, 1), "once a parameter");
    assert_eq!(finding.evidence[0].offences, 50);
    assert!(finding.evidence[0].requests.len() < 20);
}
