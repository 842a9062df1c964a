//! `petstore api`.

use insta::assert_snapshot;
use petstore_mock::{Clock, MockServer, Plan, Seed};

use super::harness::{Petstore, noon};
use crate::client::{Act, Wire, answer};

async fn server() -> MockServer {
    MockServer::builder()
        .key("free-key", Plan::Free)
        .clock(Clock::frozen(noon()))
        .seed(Seed::new().order(serde_json::json!({ "id": 5, "lines": [{ "petId": 1 }] })))
        .start()
        .await
        .unwrap()
}

#[tokio::test]
async fn shows_the_answer_laid_out_and_its_headers_where_asked() {
    let server = server().await;
    let ran = Petstore::at(&server, "free-key")
        .run("api store/orders -i")
        .await;
    assert_snapshot!(ran.transcript(), @r#"
    --- stdout
    HTTP 200 OK
    content-type: application/json
    date: Sat, 21 Nov 2026 10:00:00 GMT
    x-ratelimit-limit: 60
    x-ratelimit-remaining: 59
    x-ratelimit-reset: 1795255260
    content-length: 32

    [
      {
        "id": 5,
        "lines": [
          {
            "petId": 1
          }
        ]
      }
    ]
    --- exit 0
    "#);
}

#[tokio::test]
async fn shows_free_objects_as_a_table_where_asked() {
    let server = server().await;
    let ran = Petstore::at(&server, "free-key")
        .run("api /store/orders -o table")
        .await;
    assert_snapshot!(ran.transcript(), @r#"
    --- stdout
    ID  LINES
    5   [{"petId":1}]
    --- exit 0
    "#);
}

#[tokio::test]
async fn an_input_makes_the_method_post() {
    let server = server().await;
    let ran = Petstore::at(&server, "free-key")
        .stdin(r#"{"name":"Rex","categoryId":7}"#)
        .run("api /pets --input - -o tsv")
        .await;
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    1	Rex	7
    --- exit 0
    ");
}

#[tokio::test]
async fn sends_the_method_and_the_query_that_were_typed() {
    let server = server().await;
    let ran = Petstore::at(&server, "free-key")
        .run("api /pets?a=b -X DELETE")
        .await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: the service answered 405 Method Not Allowed (method_not_allowed): this path takes GET, HEAD, POST: use one of these methods
    --- exit 4
    ");
    let ran = Petstore::at(&server, "free-key")
        .run("api /pets?limit=1&status=sole")
        .await;
    assert_snapshot!(ran.transcript(), @r#"
    --- stderr
    error: the service answered 400 Bad Request (invalid_parameter): the query parameter `status` is "sole": it must be one of available, pending, sold
    --- exit 4
    "#);
}

#[tokio::test]
async fn refuses_a_path_that_is_not_below_the_base_url() {
    let server = server().await;
    for path in ["https://evil.example/", "../x", "//evil.example"] {
        let ran = Petstore::at(&server, "free-key")
            .run_words(&["api", path])
            .await;
        assert!(ran.stderr.contains("base URL"), "{}", ran.stderr);
        assert_eq!(ran.code, 2);
    }
}

#[tokio::test]
async fn parameters_are_added_to_the_query() {
    let run = async |words: &[&str]| {
        let dry = ["api", "--dry-run", "--jq", ".method, .url"];
        Petstore::bare().run_words(&[&dry, words].concat()).await
    };
    let words = [
        "/pets?limit=1",
        "--query",
        "status=sold",
        "--query",
        "q=a b=&",
    ];
    assert_eq!(
        run(&words).await.stdout,
        "GET\n$PETSTORE_BASE_URL/pets?limit=1&status=sold&q=a+b%3D%26\n"
    );
    let words = ["/pets", "--query", "tag=a", "--query", "tag=b", "-d", "{}"];
    assert_eq!(
        run(&words).await.stdout,
        "POST\n$PETSTORE_BASE_URL/pets?tag=a&tag=b\n"
    );
    for bad in ["status", "=sold"] {
        let ran = run(&["/pets", "--query", bad]).await;
        assert!(ran.stderr.contains("is not NAME=VALUE"), "{}", ran.stderr);
        assert_eq!(ran.code, 2);
    }
    let server = server().await;
    let ran = Petstore::at(&server, "free-key")
        .run("api /pets --query status=sole")
        .await;
    assert!(ran.stderr.contains("invalid_parameter"), "{}", ran.stderr);
    assert_eq!(ran.code, 4);
}

#[tokio::test]
async fn headers_are_sent_and_the_key_is_not_to_be_set() {
    let server = server().await;
    let words = [
        "api",
        "/pets",
        "--input",
        "-",
        "-H",
        "Content-Type: text/plain",
    ];
    let ran = Petstore::at(&server, "free-key")
        .stdin("x")
        .run_words(&words)
        .await;
    assert!(ran.stderr.contains("415"), "{}", ran.stderr);
    let words = ["api", "/pets", "-H", "authorization: Bearer other"];
    for dry_run in [&[][..], &["--dry-run"]] {
        let words = [&words, dry_run].concat();
        let ran = Petstore::at(&server, "free-key").run_words(&words).await;
        let error = "error: `-H Authorization` would replace the API key\n";
        assert_eq!(
            ran.stderr,
            format!("{error}hint: leave it out; each request carries the key\n")
        );
        assert_eq!((ran.stdout.as_str(), ran.code), ("", 2));
    }
}

#[tokio::test]
async fn a_format_needs_a_response_that_is_json() {
    let service = wiremock::MockServer::start().await;
    let page = wiremock::ResponseTemplate::new(200).set_body_raw("<p>\u{1b}[2J</p>", "text/html");
    wiremock::Mock::given(wiremock::matchers::any())
        .respond_with(page)
        .mount(&service)
        .await;
    let run = async |line: &str| Petstore::with(&service.uri(), "k").run(line).await;
    for option in ["-o json", "-o csv", "--fields id", "--jq ."] {
        let ran = run(&format!("api /page {option}")).await;
        assert_eq!((ran.stdout.as_str(), ran.code), ("", 5), "{option}");
        assert!(
            ran.stderr.starts_with("error: the response is not JSON"),
            "{option}: {}",
            ran.stderr
        );
    }
    assert_eq!(
        run("api /page").await.stdout,
        "<p>\u{1b}[2J</p>",
        "as the service sent it"
    );
}

#[tokio::test]
async fn sends_data() {
    let run = async |data: &str| {
        let petstore = Petstore::bare().stdin(r#"{"a":1}"#);
        let words = ["api", "/pets", "--dry-run", "--jq", ".method, .body, .url"];
        let data = ["-d", data];
        petstore
            .run_words(&[&words[..], &data].concat())
            .await
            .stdout
    };
    let url = "$PETSTORE_BASE_URL/pets";
    assert_eq!(
        run(r#"{"b":2}"#).await,
        format!("POST\n{{\"b\":2}}\n{url}\n")
    );
    assert_eq!(run("@-").await, format!("POST\n{{\"a\":1}}\n{url}\n"));
    let ran = Petstore::bare().run("api /pets -d {} --input -").await;
    assert_eq!((ran.stdout.as_str(), ran.code), ("", 2), "{}", ran.stderr);
}

#[tokio::test]
async fn a_delete_with_a_lost_first_answer_may_have_deleted() {
    let missing = || {
        let problem = r#"{"code":"pet_not_found","message":"no such pet"}"#;
        answer(404, &[], problem)
    };
    let server = Wire::of(vec![Act::Reset(Vec::new()), missing()]);
    let ran = Petstore::with(&server.base(), "key")
        .run("api pets/1 -X DELETE")
        .await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: the service answered 404 Not Found (pet_not_found): no such pet; an earlier attempt, whose response was lost, may have deleted it (after 2 attempts)
    hint: the request may have been processed: check that before you try again
    --- exit 9
    ");
    let server = Wire::of(vec![missing()]);
    let ran = Petstore::with(&server.base(), "key")
        .run("api pets/1 -X DELETE")
        .await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: the service answered 404 Not Found (pet_not_found): no such pet
    hint: check the path, and that the base URL ends with /v1 (from PETSTORE_BASE_URL)
    --- exit 9
    ");
}
