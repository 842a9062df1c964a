//! The compliance report accuses no client that does what it was told, and misses none that does not.

use std::time::Duration;

use petstore_mock::{Effect, Operation, Plan, Report, RetryAfter, Rule, Severity};
use reqwest::{Client, Method};

use super::support::{Mock, start, start_with};

const REX: &str = r#"{"name": "Rex", "categoryId": 7}"#;
const REX_OTHERWISE: &str = r#"{"categoryId": 7, "name": "Rex"}"#;

fn client() -> Client {
    Client::builder().no_proxy().user_agent("test/1").build().unwrap()
}

/// Sends a request with the Free key; returns the status and `Retry-After`, if there is an answer.
async fn send(
    mock: &Mock,
    client: &Client,
    method: Method,
    path: &str,
    body: &'static str,
) -> Option<(u16, Option<u64>)> {
    let url = format!("{}{path}", mock.server.url());
    let request = client.request(method, url).bearer_auth("free-key").body(body);
    let response = request.header("content-type", "application/json").send().await.ok()?;
    let told = response.headers().get("retry-after").map(|it| it.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    response.bytes().await.ok()?;
    Some((status, told.and_then(|seconds| seconds.parse().ok())))
}

async fn list(mock: &Mock, client: &Client) -> Option<(u16, Option<u64>)> {
    send(mock, client, Method::GET, "/pets", "").await
}

async fn post(mock: &Mock, client: &Client, body: &'static str) -> Option<(u16, Option<u64>)> {
    send(mock, client, Method::POST, "/pets", body).await
}

fn assert_free_of(mock: &Mock, rule: &str) {
    let report = mock.server.report();
    assert!(report.is_compliant() && !report.summary_line().contains(rule), "{report}");
}

fn assert_found(mock: &Mock, rule: &str) {
    let report = mock.server.report();
    assert!(!report.is_compliant() && report.summary_line().contains(rule), "{report}");
}

#[tokio::test]
async fn a_wait_that_was_told_is_not_judged_for_growth() {
    let (mock, client) = (start().await, client());
    let busy = mock.server.faults().on(Operation::ListPets);
    let busy =
        busy.apply(Effect::all([Effect::status(503), Effect::retry_after(RetryAfter::Seconds(1))]));
    for _ in 0..5 {
        assert_eq!(list(&mock, &client).await, Some((503, Some(1))));
        mock.advance(1);
    }
    drop(busy);
    assert_eq!(list(&mock, &client).await, Some((200, None)));
    assert_free_of(&mock, "back-off");
}

#[tokio::test]
async fn a_post_may_be_repeated_by_a_client_that_looked_first() {
    let (mock, client) = (start().await, client());
    let fault = mock.server.faults().on(Operation::CreatePet).first(1).status(500);
    assert_eq!(post(&mock, &client, REX).await, Some((500, None)));
    assert_eq!(list(&mock, &client).await, Some((200, None)));
    assert_eq!(post(&mock, &client, REX).await, Some((201, None)));
    assert_free_of(&mock, "repeated-post");
    drop(fault);
}

#[tokio::test]
async fn bodies_that_the_service_did_not_read_are_told_apart() {
    let mock = start().await;
    for name in ["Ada", "Bob", "Cleo", "Dora", "Emil", "Fred"] {
        let request = mock.request(Method::POST, "/v1/pets").bearer_auth("free-key");
        let request = request.header("content-type", "text/plain").header("user-agent", "test/1");
        let body = format!(r#"{{"name": "{name}", "categoryId": 7}}"#);
        assert_eq!(request.body(body).send().await.unwrap().status(), 415);
    }
    assert_free_of(&mock, "repeated-error");
}

#[tokio::test]
async fn a_client_that_waits_out_every_retry_after_is_compliant() {
    let plan = Plan::enterprise(3, 1_000);
    let (mock, client) = (start_with(|it| it.key("free-key", plan)).await, client());
    for _ in 0..20 {
        if let Some((429, Some(wait))) = list(&mock, &client).await {
            mock.advance(wait);
        }
    }
    assert_free_of(&mock, "told-to-wait");
}

#[tokio::test]
async fn a_suite_may_check_the_same_error_three_times() {
    let (mock, client) = (start().await, client());
    for _ in 0..3 {
        send(&mock, &client, Method::GET, "/pets/999", "").await;
    }
    for body in ["{}", ""] {
        for _ in 0..3 {
            assert_eq!(post(&mock, &client, body).await, Some((400, None)));
        }
    }
    assert_free_of(&mock, "repeated-error");
}

#[tokio::test]
async fn a_poller_goes_on_during_an_outage() {
    let (mock, client) = (start().await, client());
    let _outage = mock.server.faults().on(Operation::ListPets).status(503);
    for _ in 0..7 {
        list(&mock, &client).await;
        mock.advance(20);
    }
    assert_free_of(&mock, "back-off");
}

#[tokio::test]
async fn a_post_repeated_after_a_lost_answer_is_found_however_its_json_is_written() {
    let (mock, client) = (start().await, client());
    let fault = mock.server.faults().on(Operation::CreatePet).first(1).reset();
    assert_eq!(post(&mock, &client, REX).await, None);
    assert_eq!(post(&mock, &client, REX_OTHERWISE).await, Some((201, None)));
    assert_found(&mock, "repeated-post");
    drop(fault);
}

#[tokio::test]
async fn retries_without_growth_are_found_though_no_wait_is_like_another() {
    let (mock, client) = (start().await, client());
    let _outage = mock.server.faults().on(Operation::ListPets).status(503);
    for wait in [10, 60, 25, 48, 12, 33, 57, 19, 41] {
        list(&mock, &client).await;
        mock.server.clock().advance(Duration::from_millis(wait));
    }
    assert_found(&mock, "back-off");
}

#[tokio::test]
async fn a_reset_does_not_forget_what_was_found() {
    let mock = start().await;
    mock.get("/v1/pets?api_key=free-key").await;
    assert_found(&mock, "key-in-url");
    mock.server.reset().unwrap();
    assert_found(&mock, "key-in-url");
    assert_eq!(mock.request(Method::DELETE, "/_mock/report").send().await.unwrap().status(), 204);
    assert!(mock.server.report().is_compliant());
}

/// The scopes of the findings of a rule.
fn scopes_of(report: &Report, rule: Rule) -> Vec<String> {
    let of_rule = report.findings().filter(|finding| finding.rule == rule);
    of_rule.map(|finding| finding.scope.to_string()).collect()
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
    leak(&key).header("x-mock-scope", "tests::inner").send().await.unwrap();
    drop(scope);
    let report = mock.server.report();
    let expected = ["default", "#5", "tests::outer", "tests::inner"];
    assert_eq!(scopes_of(&report, Rule::KeyInUrl), expected);
    assert_eq!(report.scopes().map(|(scope, _)| scope).collect::<Vec<_>>(), expected);
    assert!(!report.to_json().contains(key.as_str()));
}

#[tokio::test]
async fn a_boundary_ends_what_can_be_held_against_a_client() {
    let (mock, client) = (start().await, client());
    let outage = mock.server.faults().on(Operation::ListPets).status(503);
    for _ in 0..3 {
        for _ in 0..3 {
            list(&mock, &client).await;
        }
        mock.server.reset().unwrap();
        mock.server.faults().on(Operation::ListPets).status(503).detach();
    }
    assert_free_of(&mock, "back-off");
    for _ in 0..4 {
        list(&mock, &client).await;
    }
    assert_found(&mock, "back-off");
    outage.detach();
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
    mock.get("/v1/pets/1?api_key=x").await;
    let report = mock.server.report();
    let found = report.findings().map(|finding| (finding.rule, finding.severity));
    let expected = [(Rule::UserAgent, Severity::Violation), (Rule::Deprecated, Severity::Warning)];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert!(!report.to_junit().contains("key-in-url"));
}

#[tokio::test]
async fn a_named_key_is_shown_by_its_name() {
    let builder = |it: petstore_mock::Builder| {
        it.named_key("ci-main", "sk-of-the-main-branch", Plan::Free).key("other-key", Plan::Pro)
    };
    let mock = start_with(builder).await;
    mock.get_as("sk-of-the-main-branch", "/v1/pets?api_key=x").await;
    mock.get_as("other-key", "/v1/pets?api_key=x").await;
    let report = mock.server.report();
    let keys: Vec<_> = report.violations().map(|finding| &*finding.client.key).collect();
    assert_eq!(keys, ["ci-main", "#2"], "in the order in which they were given");
    assert_eq!(mock.server.requests(..)[0].key.as_ref().unwrap().to_string(), "#1 ci-main (free)");
    assert!(!report.to_json().contains("sk-of"));
}
