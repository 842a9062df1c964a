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
    client
        .request(Method::GET, "/x?secret=1")
        .options(&once())
        .await
        .unwrap_err();
    client.pets().list().await.unwrap_err();
    let (calls, _) = closed(&logs);
    assert_fields(
        &calls[0],
        &[
            "call{",
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
    );
    assert!(
        !calls[0].contains("error.type") && !calls[0].contains("ERROR"),
        "{}",
        calls[0]
    );
    assert_fields(
        &calls[1],
        &[
            r#"operation="createPet""#,
            "error.type=Interrupted",
            "http.request.resend_count=0",
        ],
    );
    assert!(!calls[1].contains("response.status_code"), "{}", calls[1]);
    assert_fields(
        &calls[2],
        &[
            r#"operation="GET /x""#,
            "error.type=NotFound",
            "http.response.status_code=404",
        ],
    );
    assert_fields(
        &calls[3],
        &[
            r#"otel.status_code="ERROR""#,
            "error.type=Decode",
            "http.response.status_code=200",
        ],
    );
    assert!(!calls[2].contains("url.template") && !logs.text().contains("secret=1"));
}

#[tokio::test(start_paused = true)]
async fn a_lost_attempt_logs_its_error() {
    let (_server, client) = serve(vec![Act::Cut(Vec::new()), no_pets()]);
    let logs = Logs::capture();
    client.pets().list().timeout(secs(9)).await.unwrap();
    let text = logs.text();
    let lost = text
        .lines()
        .find(|line| line.contains("attempt failed"))
        .unwrap();
    assert!(
        lost.contains("attempt=1") && lost.contains("the service closed the connection"),
        "{lost}"
    );
    assert!(
        lost.contains("error.sources=[") && lost.contains("connection closed"),
        "{lost}"
    );
    assert_eq!(
        text.matches("petstore_client: answered").count(),
        1,
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn each_attempt_is_a_span_below_its_calls() {
    let (_server, client) = serve(vec![answer(503, &[], ""), no_pets(), Act::Cut(Vec::new())]);
    let logs = Logs::capture();
    client.pets().list().limit(7).await.unwrap();
    create(&client).await.unwrap_err();
    let (_, attempts) = closed(&logs);
    assert_eq!(attempts.len(), 3, "{attempts:#?}");
    assert_fields(
        &attempts[0],
        &[
            "call{",
            r#"otel.name=GET /pets"#,
            "server.port=",
            "url.full=http://127.0.0.",
            "limit=7",
            "http.response.status_code=503",
            "error.type=\"503\"",
        ],
    );
    let own = |number: usize| attempts[number].split(":attempt{").nth(1).unwrap();
    assert!(!own(0).contains("resend_count"), "{}", own(0));
    assert_fields(own(1), &["http.request.resend_count=1"]);
    assert!(!own(1).contains("error.type"), "{}", own(1));
    assert_fields(own(2), &["error.type=Interrupted"]);
}
