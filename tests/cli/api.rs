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
    error: the service refused the request (405 method_not_allowed): this path takes GET, HEAD, POST: use one of these methods
    --- exit 4
    ");
    let ran = Petstore::at(&server, "free-key")
        .run("api /pets?limit=1&status=sole")
        .await;
    assert_snapshot!(ran.transcript(), @r#"
    --- stderr
    error: the service refused the request (400 invalid_parameter): the query parameter `status` is "sole": it must be one of available, pending, sold
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
async fn fields_make_a_body_or_a_query() {
    let server = server().await;
    let run = async |line: &str| Petstore::at(&server, "free-key").run(line).await;
    let ran = run("api /pets -f name=7 -F categoryId=7 -F status=sold -o tsv").await;
    assert_eq!(
        (ran.stdout.as_str(), ran.code),
        ("1\t7\t7\tsold\n", 0),
        "{}",
        ran.stderr
    );
    assert_eq!(
        run("api /pets -X GET -F limit=1 -f status=sold -o id")
            .await
            .stdout,
        "1\n"
    );
    let wrong = run("api /pets -f name=Rex -f categoryId=7").await;
    assert!(wrong.stderr.contains("categoryId"), "{}", wrong.stderr);
    assert_eq!(wrong.code, 4);
    let from_input = Petstore::at(&server, "free-key").stdin("Max");
    let ran = from_input
        .run("api /pets -F name=@- -F categoryId=1 --jq .name")
        .await;
    assert_eq!(ran.stdout, "Max\n");
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
async fn all_pages_make_one_list() {
    let run = async |line: &str| Petstore::bare().run(line).await;
    let ran = run("--mock api /pets?limit=10 --paginate --jq length").await;
    assert_eq!(
        (ran.stdout.as_str(), ran.code),
        ("25\n", 0),
        "{}",
        ran.stderr
    );
    let ran = run("--mock api /pets?limit=7&status=available --paginate -o id").await;
    let ids: Vec<_> = ran.stdout.lines().collect();
    let mut once = ids.clone();
    once.dedup();
    assert_eq!(ids, once);
    assert!(ids.len() > 7, "{ids:?}");
}

#[tokio::test]
async fn only_a_get_is_paged() {
    let server = server().await;
    for line in ["-X POST -f name=Rex", "-f limit=50", "-X DELETE --dry-run"] {
        let ran = Petstore::at(&server, "free-key")
            .run(&format!("api /pets --paginate {line}"))
            .await;
        assert_eq!((ran.stdout.as_str(), ran.code), ("", 2), "{line}");
        assert!(
            ran.stderr
                .starts_with("error: `--paginate` follows the pages of a GET"),
            "{line}: {}",
            ran.stderr
        );
    }
    assert_eq!(server.requests(..).len(), 0);
    let ran = Petstore::at(&server, "free-key")
        .run("api /pets --paginate -X GET -f limit=20 --jq length")
        .await;
    assert_eq!((ran.stdout.as_str(), ran.code), ("0\n", 0));
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
async fn sends_data_nested_fields_and_shows_nothing_where_asked() {
    let run = async |words: &[&str]| {
        let petstore = Petstore::bare().stdin(r#"{"a":1}"#);
        let dry = ["api", "/pets", "--dry-run", "--jq", ".method, .body, .url"];
        petstore.run_words(&[&dry, words].concat()).await.stdout
    };
    let url = "$PETSTORE_BASE_URL/pets";
    assert_eq!(
        run(&["-d", r#"{"b":2}"#]).await,
        format!("POST\n{{\"b\":2}}\n{url}\n")
    );
    assert_eq!(
        run(&["-d", "@-"]).await,
        format!("POST\n{{\"a\":1}}\n{url}\n")
    );
    let nested = ["-f", "tags[]=a", "-F", "owner[age]=7", "-f", "tags[]=b"];
    assert_eq!(
        run(&nested).await,
        format!("POST\n{{\"tags\":[\"a\",\"b\"],\"owner\":{{\"age\":7}}}}\n{url}\n")
    );
    let query = run(&["-X", "GET", "-f", "tags[]=a", "-f", "tags[]=b"]).await;
    assert!(
        query.ends_with("/pets?tags%5B%5D=a&tags%5B%5D=b\n"),
        "{query}"
    );
    let ran = Petstore::bare().run("--mock api /pets --silent").await;
    assert_eq!(
        (ran.stdout.as_str(), ran.stderr.as_str(), ran.code),
        ("", "", 0)
    );
    let ran = Petstore::bare().run("--mock api /nope --silent").await;
    assert_eq!((ran.stdout.as_str(), ran.code), ("", 9));
    assert_snapshot!(Petstore::bare().run("--mock api /pets -f a[=1").await.transcript(), @"
    --- stderr
    error: field `a[` is not NAME, NAME[] or NAME[FIELD]
    hint: a name that contains `[` needs `--input` or `-d`
    --- exit 2
    ");
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
    error: not found (404 pet_not_found): no such pet; an earlier attempt may have deleted it
    hint: the response to an earlier attempt was lost: look whether it is gone
    --- exit 9
    ");
    let server = Wire::of(vec![missing()]);
    let ran = Petstore::with(&server.base(), "key")
        .run("api pets/1 -X DELETE")
        .await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: not found (404 pet_not_found): no such pet
    --- exit 9
    ");
}
