//! `petstore api`.

use petstore_mock::{Plan, Seed};
use serde_json::json;

use super::harness::{Petstore, answering, serve, stocked};

#[tokio::test]
async fn shows_the_answer_laid_out_and_its_headers_where_asked() {
    let order = json!({ "id": 5, "lines": [{ "petId": 1 }] });
    let server = stocked(Seed::none().order(order)).await;
    let run = async |line: &str| Petstore::at(&server, "k").run(line).await;
    let ran = run("api store/orders -i").await;
    assert!(ran.stdout.starts_with("HTTP 200 OK\ncontent-type: "));
    ran.shows("\nx-ratelimit-limit: ");
    ran.shows("\n\n[\n  {\n    \"id\": 5,\n");
    let table = "ID  LINES\n5   [{\"petId\":1}]\n";
    run("api /store/orders -o table").await.printed(table);
}

#[tokio::test]
async fn sends_the_method_and_the_query_that_were_typed() {
    let server = serve("k", Plan::Free).await;
    for (line, said) in [
        ("api /pets?a=b -X DELETE", "answered 405 Method Not Allowed"),
        ("api /pets?limit=1&status=sole", "`status` is \"sole\""),
        ("api /pets --query status=sole", "`status` is \"sole\""),
    ] {
        let ran = Petstore::at(&server, "k").run(line).await;
        ran.says(said);
        ran.ended(4);
    }
}

#[tokio::test]
async fn refuses_a_path_that_is_not_below_the_base_url() {
    for path in ["https://evil.example/", "../x", "//evil.example"] {
        let petstore = Petstore::with("https://petstore.example/v1", "k");
        let ran = petstore.run(&format!("api {path}")).await;
        ran.says("base URL");
        ran.ended(2);
    }
}

#[tokio::test]
async fn parameters_are_added_to_the_query() {
    let two = ["--query", "q=a b=&", "--query", "q=c"];
    let words = ["api", "/pets?limit=1", "--dry-run", "--jq", ".url"];
    let ran = Petstore::bare()
        .run_words(&[&words[..], &two].concat())
        .await;
    ran.printed("$PETSTORE_BASE_URL/pets?limit=1&q=a+b%3D%26&q=c\n");
    for bad in ["status", "=sold"] {
        let line = format!("api /pets --query {bad}");
        let ran = Petstore::bare().run(&line).await;
        ran.says("for '--query <NAME=VALUE>': give NAME=VALUE");
        ran.ended(2);
    }
}

#[tokio::test]
async fn headers_are_sent_and_the_key_is_not_to_be_set() {
    let server = serve("k", Plan::Free).await;
    let petstore = Petstore::at(&server, "k").stdin("x");
    let line = "api /pets --input - -H Content-Type:text/plain";
    petstore.run(line).await.says("415");
    for option in ["", " --dry-run"] {
        let line = format!("api /pets -H authorization:other{option}");
        let ran = Petstore::at(&server, "k").run(&line).await;
        ran.says("error: `-H Authorization` would replace the API key\n");
        ran.ended(2);
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
async fn an_empty_response_is_no_result() {
    let service = answering(wiremock::ResponseTemplate::new(204)).await;
    for option in ["", "-o json", "-o table", "--jq ."] {
        let line = format!("api /none -X PUT {option}");
        let ran = Petstore::with(&service.uri(), "k").run(&line).await;
        ran.printed("");
        ran.said("", 0);
    }
}

#[tokio::test]
async fn sends_data_with_post() {
    let dry = "api /pets --dry-run --jq .method,.body";
    for option in ["-d {\"a\":1}", "-d @-", "--input -"] {
        let petstore = Petstore::bare().stdin(r#"{"a":1}"#);
        let ran = petstore.run(&format!("{dry} {option}")).await;
        ran.printed("POST\n{\"a\":1}\n");
    }
    let both = Petstore::bare().run("api /pets -d {} --input -").await;
    both.ended(2);
}
