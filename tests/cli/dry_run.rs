//! `--dry-run` shows the request and sends nothing.

use std::process::Command;

use insta::assert_snapshot;
use petstore_mock::Plan;

use super::harness::{Petstore, serve};

/// Hides the crates' version.
fn unversioned(text: &str) -> String {
    text.replace(concat!("/", env!("CARGO_PKG_VERSION")), "/VERSION")
}

#[tokio::test]
async fn shows_the_request_without_a_key_or_a_service() {
    let ran = Petstore::bare()
        .run("pets create Rex --category-id 7 --dry-run")
        .await;
    assert_snapshot!(unversioned(&ran.transcript()), @r#"
    --- stdout
    printf 'Authorization: Bearer %s' "$PETSTORE_API_KEY" |
      curl -X POST "$PETSTORE_BASE_URL"/pets -H @- \
      -H 'content-type: application/json' \
      -H 'accept: application/json' \
      -H 'user-agent: petstore/VERSION petstore-client/VERSION' \
      --data-raw '{"name":"Rex","categoryId":7}'
    --- stderr
    note: not sent
    --- exit 0
    "#);
}

#[tokio::test]
async fn shows_it_as_a_document_where_asked_and_never_the_key() {
    let petstore = Petstore::bare().var("PETSTORE_API_KEY", "sentinel");
    let line = "--base-url https://petstore.example/v1 api /pets?a=b -X GET --query q=it's \
                -H X-Trace:$x --dry-run -o json";
    let ran = petstore.run(line).await;
    let shown: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let url = "https://petstore.example/v1/pets?a=b&q=it%27s";
    assert_eq!(
        (&shown["method"], &shown["url"]),
        (&"GET".into(), &url.into())
    );
    assert_eq!(
        shown["headers"]["authorization"],
        "Bearer $PETSTORE_API_KEY"
    );
    assert_eq!(shown["headers"]["x-trace"], "$x");
    ran.shows(&format!("curl '{url}' -H @- "));
    ran.said("note: not sent\n", 0);
    assert!(!ran.stdout.contains("sentinel"));
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(unix)]
async fn the_curl_that_is_shown_sends_just_that() {
    let server = serve("k", Plan::Free).await;
    let name = "it's \"R$x\" \\ \u{1b}犬";
    let words = ["pets", "create", name, "--category-id", "7", "--dry-run"];
    let pipe = Petstore::bare().run_words(&words).await.stdout;
    let script = format!("command -v curl >/dev/null || exit 99; {pipe}");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env("PETSTORE_API_KEY", "k");
    let sent = shell
        .env("PETSTORE_BASE_URL", server.url())
        .output()
        .unwrap();
    if sent.status.code() == Some(99) {
        return;
    }
    let pet: serde_json::Value = serde_json::from_slice(&sent.stdout).unwrap();
    assert_eq!((&pet["name"], &pet["id"]), (&name.into(), &26.into()));
}

#[tokio::test]
async fn the_curl_takes_brackets_literally() {
    for (line, curl) in [
        ("/pets?limit={1,2}", "curl --globoff "),
        ("/pets -X HEAD", "curl --head "),
    ] {
        let ran = Petstore::bare().run(&format!("api {line} --dry-run")).await;
        ran.shows(curl);
    }
}
