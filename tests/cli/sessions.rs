//! What commands print, as sessions: a snapshot holds each line that is typed, with standard output,
//! standard error and the exit code.

use insta::assert_snapshot;
use petstore_mock::Plan;
use wiremock::ResponseTemplate;

use super::completions::follow;
use super::harness::{Petstore, answering, serve, session};

#[tokio::test]
async fn pets_and_orders() {
    let lines = [
        "--mock pets list --status sold --fields id,status",
        "--mock pets list --max 2 --fields id,name -o table",
        "--mock pets get 3 --fields name",
        "--mock pets get 999",
        "--mock pets get 3 --fields name -q",
        "--mock pets get 1 --fields name --deny-deprecated",
        "--mock pets list --limit 1 --fields id --fail-if-truncated",
        "--mock pets list --all --fail-if-truncated --status pending --fields id",
        "--mock store orders -o json",
        "--mock store orders -o ndjson",
        "--mock store orders -o tsv",
    ];
    assert_snapshot!(session(Petstore::bare, &lines).await);
}

#[tokio::test]
async fn formats_and_fields() {
    let mut text = String::new();
    for format in follow(Petstore::bare(), &["pets", "list", "-o", ""]).await {
        let list = format!("--mock pets list --limit 2 -q -o {format}");
        let one = format!("--mock pets get 3 -q -o {format}");
        text += &session(Petstore::bare, &[&list, &one]).await;
    }
    let lines = [
        "--mock pets list --limit 2 -q --fields name,id",
        "--mock pets list --limit 2 -q --fields status,id -o ndjson",
        "--mock pets get 3 -q -o csv --fields name,id",
        "--mock pets list --fields nmae",
    ];
    text += &session(Petstore::bare, &lines).await;
    assert_snapshot!(text);
}

#[tokio::test]
async fn at_a_terminal() {
    let terminal = || Petstore::bare().terminal();
    let lines = [
        "--mock pets list --limit 7",
        "--mock pets create Rex --category-id -7 --status pending",
        "--mock pets list --limit 1 -o json",
    ];
    assert_snapshot!(session(terminal, &lines).await);
}

#[tokio::test]
async fn mistakes_in_typing() {
    let lines = [
        "--mock pets lst",
        "--mock pets get x",
        "--mock pets get 99999999999999999999",
        "pets import --concurrency 99",
        "pets list --retries many",
        "--mock pets list --limit 101",
        "--mock pets list --statsu sold",
        "--mock pets create",
        "--mock --max-wait -1 limits",
        "--mock --base-url http://127.0.0.1:1/v1 pets list",
        "config set api_key k3y",
        "-o json",
        "--mock pets list --limit 9 --limit 1 --fields id -q",
        "api /pets -d {}",
    ];
    assert_snapshot!(session(Petstore::bare, &lines).await);
}

#[tokio::test]
async fn without_a_service_or_a_key() {
    let bare = || Petstore::bare().var("PETSTORE_BASE_URL", "");
    assert_snapshot!(session(bare, &["pets list", "config set max_wait 1", "doctor"]).await);
    let keyless = || Petstore::bare().var("PETSTORE_BASE_URL", "http://127.0.0.1:1/v1");
    let pipe = || keyless().var("PETSTORE_API_KEY_FILE", "/");
    let broken = || keyless().var("PETSTORE_API_KEY", "sentinel\t");
    let mut text = session(
        keyless,
        &["pets list", "pets list --mock --limit 1 --fields id -q"],
    )
    .await;
    text += &session(pipe, &["pets list"]).await;
    text += &session(broken, &["pets list"]).await;
    assert_snapshot!("without_a_key", text);
}

#[tokio::test]
async fn bad_base_urls() {
    let keyed = || {
        Petstore::bare()
            .var("PETSTORE_API_KEY", "k")
            .var("PETSTORE_BASE_URL", "not a url")
    };
    let lines = [
        "pets list",
        "--base-url ftp://127.0.0.1/v1 pets list",
        "--base-url https://me@petstore.example/v1 pets list",
        "--base-url http://petstore.example/v1 limits",
        "--base-url http://petstore.example/v1 api /pets --dry-run",
    ];
    assert_snapshot!(session(keyed, &lines).await);
}

/// A session with a server that answers everything the same way.
async fn answered(status: u16, body: &str, line: &str) -> String {
    let answer = ResponseTemplate::new(status).set_body_string(body);
    let server = answering(answer).await;
    let petstore = || Petstore::with(&server.uri(), "k");
    format!("# {status} {body}\n{}", session(petstore, &[line]).await)
}

#[tokio::test]
async fn refusals_and_failures_of_the_service() {
    let create = "pets create Rex --category-id 7";
    let mut text = String::new();
    for (status, body, line) in [
        (
            502,
            "<html><body>Bad Gateway\u{1b}[2J</body></html>",
            create,
        ),
        (200, r#"[{"id":1,"categoryId":"seven"}]"#, "pets list"),
        (200, "<!doctype html>", "pets list"),
        (
            403,
            r#"{"code":"forbidden","message":"no"}"#,
            "store orders",
        ),
        (400, r#"{"code":"invalid","message":"too long"}"#, create),
        (404, r#"{"code":"no_route","message":"no"}"#, "api /nope"),
        (301, "", "pets list"),
    ] {
        text += &answered(status, body, line).await.replace('\u{1b}', "␛");
    }
    assert_snapshot!(text);
}

#[tokio::test]
async fn quotas_and_keys() {
    let server = serve("good-key", Plan::enterprise(1, 10)).await;
    let bad = || Petstore::at(&server, "bad-key");
    let mut text = session(bad, &["pets list", "api /pets --error-format json"]).await;
    let good = || Petstore::at(&server, "good-key");
    let lines = [
        "pets list --limit 1 --fields id -q",
        "--max-wait 5 pets list",
        "limits --refresh",
    ];
    text += &session(good, &lines).await;
    assert_snapshot!(text);
}
