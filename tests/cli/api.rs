//! `petstore api`.

use insta::assert_snapshot;
use petstore_mock::{Clock, MockServer, Plan, Seed};

use super::harness::{Petstore, answering, noon};
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
    let petstore = Petstore::at(&server, "free-key");
    let ran = petstore.run("api /store/orders -o table").await;
    ran.printed("ID  LINES\n5   [{\"petId\":1}]\n");
}

#[tokio::test]
async fn an_input_makes_the_method_post() {
    let server = server().await;
    let petstore = Petstore::at(&server, "free-key").stdin(r#"{"name":"Rex","categoryId":7}"#);
    let ran = petstore.run("api /pets --input - -o tsv").await;
    ran.printed("1\tRex\t7\n");
}

#[tokio::test]
async fn sends_the_method_and_the_query_that_were_typed() {
    let server = server().await;
    for (line, said) in [
        ("api /pets?a=b -X DELETE", "answered 405 Method Not Allowed"),
        ("api /pets?limit=1&status=sole", "`status` is \"sole\""),
        ("api /pets --query status=sole", "`status` is \"sole\""),
    ] {
        let ran = Petstore::at(&server, "free-key").run(line).await;
        ran.says(said);
        ran.ended(4);
    }
}

#[tokio::test]
async fn refuses_a_path_that_is_not_below_the_base_url() {
    let server = server().await;
    for path in ["https://evil.example/", "../x", "//evil.example"] {
        let ran = Petstore::at(&server, "free-key")
            .run(&format!("api {path}"))
            .await;
        ran.says("base URL");
        ran.ended(2);
    }
}

#[tokio::test]
async fn parameters_are_added_to_the_query() {
    for (words, expected) in [
        (
            &["/pets?limit=1", "--query", "q=a b=&"][..],
            "GET\n$PETSTORE_BASE_URL/pets?limit=1&q=a+b%3D%26\n",
        ),
        (
            &["/pets", "--query", "tag=a", "--query", "tag=b", "-d", "{}"],
            "POST\n$PETSTORE_BASE_URL/pets?tag=a&tag=b\n",
        ),
    ] {
        let dry = ["api", "--dry-run", "--jq", ".method, .url"];
        Petstore::bare()
            .run_words(&[&dry, words].concat())
            .await
            .printed(expected);
    }
    for bad in ["status", "=sold"] {
        let ran = Petstore::bare()
            .run(&format!("api /pets --query {bad}"))
            .await;
        ran.says("is not NAME=VALUE");
        ran.ended(2);
    }
}

#[tokio::test]
async fn headers_are_sent_and_the_key_is_not_to_be_set() {
    let server = server().await;
    let petstore = Petstore::at(&server, "free-key").stdin("x");
    let ran = petstore
        .run("api /pets --input - -H Content-Type:text/plain")
        .await;
    ran.says("415");
    for option in ["", " --dry-run"] {
        let line = format!("api /pets -H authorization:other{option}");
        let ran = Petstore::at(&server, "free-key").run(&line).await;
        let error = "error: `-H Authorization` would replace the API key\n\
                     hint: leave it out; each request carries the key\n";
        ran.said(error, 2);
    }
}

#[tokio::test]
async fn a_format_needs_a_response_that_is_json() {
    let page = wiremock::ResponseTemplate::new(200).set_body_raw("<p>\u{1b}[2J</p>", "text/html");
    let service = answering(page).await;
    let run = async |line: &str| Petstore::with(&service.uri(), "k").run(line).await;
    for option in ["-o json", "-o csv", "--fields id", "--jq ."] {
        let ran = run(&format!("api /page {option}")).await;
        ran.says("error: the response is not JSON");
        assert_eq!((&*ran.stdout, ran.code), ("", 5), "{option}");
    }
    // As the service sent it.
    run("api /page").await.printed("<p>\u{1b}[2J</p>");
}

#[tokio::test]
async fn sends_data() {
    for (data, body) in [(r#"{"b":2}"#, r#"{"b":2}"#), ("@-", r#"{"a":1}"#)] {
        let petstore = Petstore::bare().stdin(r#"{"a":1}"#);
        let words = [
            "api",
            "/pets",
            "--dry-run",
            "--jq",
            ".method, .body",
            "-d",
            data,
        ];
        petstore
            .run_words(&words)
            .await
            .printed(&format!("POST\n{body}\n"));
    }
    Petstore::bare()
        .run("api /pets -d {} --input -")
        .await
        .ended(2);
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
    let said = "error: the service answered 404 Not Found (pet_not_found): no such pet; an earlier attempt, whose response was lost, may have deleted it (after 2 attempts)\n\
                hint: the request may have been processed: check that before you try again\n";
    ran.said(said, 9);
    let server = Wire::of(vec![missing()]);
    let ran = Petstore::with(&server.base(), "key")
        .run("api pets/1 -X DELETE")
        .await;
    let said = "error: the service answered 404 Not Found (pet_not_found): no such pet\n\
                hint: check the path, and that the base URL ends with /v1 (from PETSTORE_BASE_URL)\n";
    ran.said(said, 9);
}
