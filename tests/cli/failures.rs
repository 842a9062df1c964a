//! Each kind of failure, with its exit code and its hints.

use std::time::Duration;

use insta::assert_snapshot;
use petstore_mock::{Clock, MockServer, Plan};
use wiremock::matchers::any;
use wiremock::{Mock, ResponseTemplate};

use super::harness::{Petstore, noon};

async fn with_plan(plan: Plan) -> MockServer {
    let clock = Clock::frozen(noon());
    MockServer::builder().key("good-key", plan).clock(clock).start().await.unwrap()
}

/// A command against a server that answers everything the same way.
async fn answered(status: u16, body: &str, line: &str) -> String {
    let server = wiremock::MockServer::start().await;
    let answer = ResponseTemplate::new(status).set_body_string(body);
    Mock::given(any()).respond_with(answer).mount(&server).await;
    let petstore =
        Petstore::bare().var("PETSTORE_BASE_URL", &server.uri()).var("PETSTORE_API_KEY", "k");
    petstore.run(line).await.transcript()
}

#[tokio::test]
async fn a_bad_key_exits_with_3() {
    let server = with_plan(Plan::Free).await;
    let ran = Petstore::at(&server, "bad-key").run("pets list").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: listPets failed: the service answered 401 Unauthorized (unauthorized): the API key is not known: check it for a typing error, or give it to the mock with --key KEY=PLAN; check the API key
    hint: set PETSTORE_API_KEY to a key that this service accepts, or keep one: `petstore auth login`
    --- exit 3
    ");
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_exits_with_6() {
    // Nothing listens on a port that only the system may take.
    let base_url = "http://127.0.0.1:1/v1";
    let petstore = Petstore::bare().var("PETSTORE_API_KEY", "k");
    let text = petstore.run(&format!("--base-url {base_url} pets list")).await.transcript();
    // How long was waited in between is left to chance.
    let text = text.replace(" and 1 s of waiting", "");
    assert_snapshot!(text, @"
    --- stderr
    error: listPets failed: no connection to http://127.0.0.1:PORT; check the base URL, the network, and that the service runs (after 4 attempts)
    cause: Connection refused (os error 111)
    hint: `petstore --mock …` runs any command against a server of its own
    --- exit 6
    ");
}

#[tokio::test]
async fn a_rate_limit_that_is_not_waited_out_exits_with_7() {
    let server = with_plan(Plan::enterprise(1, 10)).await;
    let first = Petstore::at(&server, "good-key").run("pets list --limit 1").await;
    assert_eq!(first.code, 0);
    let ran = Petstore::at(&server, "good-key").run("--max-wait 5 pets list").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: listPets failed: the minute's quota holds requests back until Sat, 21 Nov 2026 10:01:00 GMT (another 60 s), which is longer than this call may still wait (5 s); call again then, or allow a longer `max_wait` and `timeout`
    hint: `--max-wait SECONDS` waits longer; asking again before the time may get the key banned
    --- exit 7
    ");
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_rate_limit_is_announced() {
    let clock = Clock::runtime(noon());
    let builder = MockServer::builder().key("good-key", Plan::enterprise(1, 10)).clock(clock);
    let server = builder.start().await.unwrap();
    let first = Petstore::at(&server, "good-key").run("pets list --limit 1").await;
    assert_eq!(first.stderr, "note: there are more pets; `--all` lists them all\n");
    let ran = Petstore::at(&server, "good-key").run("pets create Rex --category-id 7").await;
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    26	Rex	7
    --- stderr
    note: the minute's quota: waiting 60 s, until 2026-11-21T10:01:00Z
    --- exit 0
    ");
}

#[tokio::test]
async fn the_limits_are_shown_when_they_are_used_up_too() {
    let server = with_plan(Plan::enterprise(1, 10)).await;
    assert_eq!(Petstore::at(&server, "good-key").run("store orders").await.code, 0);
    let ran = Petstore::at(&server, "good-key").terminal().run("limits").await;
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    ␛[1mQUOTA   LIMIT  REMAINING  RESET                 SECONDS TO RESET  LEFT␛[0m
    minute  1      0          2026-11-21T10:01:00Z  60                ░░░░░░░░░░░░░░░░░░░░   0%
    --- stderr
    note: the minute's quota holds requests back until 2026-11-21T10:01:00Z
    --- exit 0
    ");
}

#[tokio::test]
async fn a_removed_operation_exits_with_9() {
    let server = with_plan(Plan::Free).await;
    server.clock().advance(Duration::from_secs(5 * 366 * 86_400));
    let ran = Petstore::at(&server, "good-key").run("pets get 1").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: getPet failed: the service answered 410 Gone (operation_removed): GET /v1/pets/{petId} was removed on 5 December 2030: use GET /v1/pets with its `status` filter; the operation has been removed; use its replacement
    hint: `petstore pets list` replaces `petstore pets get`
    --- exit 9
    ");
}

#[tokio::test]
async fn a_failing_service_exits_with_5() {
    let html = "<html><body>Bad Gateway\u{1b}[2J</body></html>";
    assert_snapshot!(answered(502, html, "pets create Rex --category-id 7").await, @r"
    --- stderr
    error: createPet failed: the service answered 502 Bad Gateway: <html><body>Bad Gateway\u{1b}[2J</body></html>; try again later; the request may have been processed: look before you send it again
    --- exit 5
    ");
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_exits_with_5() {
    let pets = r#"[{"id":1,"name":"Rex","categoryId":"seven"}]"#;
    assert_snapshot!(answered(200, pets, "pets list").await, @r#"
    --- stderr
    error: listPets failed: the response 200 could not be read: at `[0].categoryId`: invalid type: string "seven", expected i64 at line 1 column 42
    --- exit 5
    "#);
}

#[tokio::test]
async fn other_refusals_exit_with_4() {
    let error = r#"{"code":"forbidden","message":"not with this key","status":403}"#;
    assert_snapshot!(answered(403, error, "store orders").await, @"
    --- stderr
    error: GET /store/orders failed: the service answered 403 Forbidden (forbidden): not with this key; check what the API key is allowed to do
    --- exit 4
    ");
}

#[tokio::test]
async fn a_redirect_is_a_wrong_configuration() {
    assert_snapshot!(answered(301, "", "pets list").await, @"
    --- stderr
    error: listPets failed: the service answered 301 Moved Permanently; redirects are not followed; check the base URL
    --- exit 3
    ");
}

#[tokio::test]
async fn ctrl_c_exits_with_130_and_says_what_may_have_happened() {
    let server = with_plan(Plan::Free).await;
    let petstore = Petstore::at(&server, "good-key").interrupted();
    let ran = petstore.run("pets create Rex --category-id 7").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: interrupted
    hint: a request that was under way may have been carried out all the same
    --- exit 130
    ");
}
