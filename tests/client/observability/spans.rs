//! The span of each call, whose fields are part of the API.

use petstore_client::http::Method;

use crate::client::kit::{DATE, answer, create, no_pets, once, secs, serve};
use crate::client::logs::Logs;
use crate::client::wire::Act;

/// Returns the closing lines of the spans of calls, and of those of attempts.
fn closed(logs: &Logs) -> (Vec<String>, Vec<String>) {
    let text = logs.text();
    let lines = text.lines().map(str::to_owned);
    lines
        .filter(|line| line.contains("}: petstore_client: close"))
        .partition(|line| !line.contains(":attempt{"))
}

fn assert_fields(line: &str, fields: &[&str]) {
    for field in fields {
        assert!(line.contains(field), "{field} is missing in {line}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_is_a_span_with_the_field_names_of_opentelemetry() {
    let (_server, client) = serve(vec![
        answer(503, &[("Date", DATE), ("Retry-After", "2")], ""),
        no_pets(),
        Act::Cut(Vec::new()),
        answer(404, &[], ""),
        answer(200, &[], "{}"),
    ]);
    let logs = Logs::capture();
    client.pets().list().await.unwrap();
    create(&client).await.unwrap_err();
    let raw = client.request(Method::GET, "/x?secret=1");
    raw.options(&once()).await.unwrap_err();
    client.pets().list().await.unwrap_err();
    let (calls, _) = closed(&logs);
    let expected: [&[&str]; 4] = [
        &[
            r#"otel.kind="client""#,
            r#"operation="listPets""#,
            r#"http.request.method="GET""#,
            r#"url.template="/pets""#,
            r#"server.address="127.0.0."#,
            "http.response.status_code=200",
            "http.request.resend_count=1",
            "petstore.attempts=2",
            "petstore.wait_ms=2000",
        ],
        &[r#"operation="createPet""#, "error.type=Interrupted"],
        &[
            r#"operation="GET /x""#,
            "error.type=NotFound",
            "status_code=404",
        ],
        &[
            r#"otel.status_code="ERROR""#,
            "error.type=Decode",
            "status_code=200",
        ],
    ];
    assert_eq!(calls.len(), expected.len(), "{calls:#?}");
    for (call, fields) in calls.iter().zip(expected) {
        assert_fields(call, fields);
    }
    assert!(!calls[0].contains("error.type"), "{}", calls[0]);
    assert!(!calls[2].contains("url.template") && !logs.text().contains("secret=1"));
}

#[tokio::test(start_paused = true)]
async fn a_lost_attempt_logs_its_error() {
    let (_server, client) = serve(vec![Act::Cut(Vec::new()), no_pets()]);
    let logs = Logs::capture();
    client.pets().list().timeout(secs(9)).await.unwrap();
    let text = logs.text();
    let mut lines = text.lines();
    let lost = lines.find(|line| line.contains("attempt failed")).unwrap();
    let cause = "connection closed";
    assert_fields(lost, &["attempt=1", "error.sources=[", cause]);
}

#[tokio::test(start_paused = true)]
async fn each_attempt_is_a_span_below_its_calls() {
    let (_server, client) = serve(vec![answer(503, &[], ""), no_pets(), Act::Cut(Vec::new())]);
    let logs = Logs::capture();
    client.pets().list().limit(7).await.unwrap();
    create(&client).await.unwrap_err();
    let (_, attempts) = closed(&logs);
    assert_eq!(attempts.len(), 3, "{attempts:#?}");
    let own = |number: usize| attempts[number].split(":attempt{").nth(1).unwrap();
    let first = [
        "otel.name=GET /pets",
        "server.port=",
        "url.full=http://127.0.0.",
        "limit=7",
        "http.response.status_code=503",
        "error.type=\"503\"",
    ];
    assert_fields(own(0), &first);
    assert_fields(own(1), &["http.request.resend_count=1"]);
    assert!(!own(1).contains("error.type"), "{}", own(1));
    assert_fields(own(2), &["error.type=Interrupted"]);
}
