//! Each kind of failure, with its exit code and its hints.

use std::time::Duration;

use insta::assert_snapshot;
use petstore_mock::{Clock, Effect, MockServer, Operation, Plan, RetryAfter};
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
    error: listPets failed: the service answered 401 Unauthorized (unauthorized): the API key is not known: check it for a typing error, or give it to the mock with --key KEY=PLAN
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
    error: listPets failed: the minute's quota blocks requests until Sat, 21 Nov 2026 10:01:00 GMT (another 60 s), which is longer than this call may still wait (5 s); call again then, or allow a longer `max_wait` and `timeout`
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
    note: the minute's quota blocks requests until 2026-11-21T10:01:00Z (another 60 s)
    --- exit 0
    ");
}

#[tokio::test]
async fn the_limits_are_asked_for_once_even_where_a_quota_is_used_up() {
    let server = with_plan(Plan::enterprise(1, 10)).await;
    let run = async |line: &str| Petstore::at(&server, "good-key").run(line).await;
    assert_eq!(run("store orders").await.code, 0);
    assert_snapshot!(run("limits --refresh").await.transcript(), @"
    --- stdout
    minute	1	0	2026-11-21T10:01:00Z	60
    --- stderr
    error: listPets failed: the minute's quota blocks requests until Sat, 21 Nov 2026 10:01:00 GMT (another 60 s); call again then, or allow more attempts
    hint: asking again before the time may get the key banned
    --- exit 7
    ");
    assert_eq!(server.requests(..).len(), 2);
}

#[tokio::test]
async fn the_limits_are_asked_for_even_where_the_service_said_to_wait() {
    let server = with_plan(Plan::Free).await;
    let effects = [Effect::status(429), Effect::retry_after(RetryAfter::Seconds(30))];
    let busy = server.faults().on(Operation::ListPets).first(1).apply(Effect::all(effects));
    let run = async |line: &str| Petstore::at(&server, "good-key").run(line).await;
    assert_eq!((run("pets list --max-wait 0").await.code, busy.hits()), (7, 1));
    assert_snapshot!(run("limits").await.transcript(), @"
    --- stdout
    minute	60	59	2026-11-21T10:01:00Z	60
    --- stderr
    note: a rate limit blocks requests until 2026-11-21T10:00:30Z (another 30 s)
    --- exit 0
    ");
    assert_eq!(server.requests(..).len(), 1);
    assert_snapshot!(run("limits --refresh").await.transcript(), @"
    --- stdout
    minute	60	58	2026-11-21T10:01:00Z	60
    --- exit 0
    ");
    assert_eq!(server.requests(..).len(), 2);
}

#[tokio::test]
async fn a_failing_service_that_asks_for_too_long_a_pause_is_told_of() {
    let server = with_plan(Plan::Free).await;
    let effects = [Effect::status(503), Effect::retry_after(RetryAfter::Seconds(30))];
    let busy = server.faults().on(Operation::ListPets).apply(Effect::all(effects));
    let ran = Petstore::at(&server, "good-key").run("--max-wait 5 pets list").await;
    assert_eq!(busy.hits(), 1);
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: listPets failed: the service answered 503 Service Unavailable (service_unavailable): a fault that was set in this mock answers instead of the service
    hint: the service asks to be left alone (`Retry-After: 30`); `--max-wait SECONDS` waits longer where sending again is safe
    --- exit 5
    ");
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_a_failing_service_asks_for_is_announced() {
    let clock = Clock::runtime(noon());
    let server =
        MockServer::builder().key("good-key", Plan::Free).clock(clock).start().await.unwrap();
    let effects = [Effect::status(503), Effect::retry_after(RetryAfter::Seconds(30))];
    let busy = server.faults().on(Operation::ListPets).first(1).apply(Effect::all(effects));
    let ran = Petstore::at(&server, "good-key").run("pets list --all").await;
    assert_eq!((ran.code, busy.hits()), (0, 1), "{}", ran.stderr);
    assert_eq!(ran.stderr, "note: the service answered 503: waiting 31 s\n");
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_the_first_response_with_a_key_is_announced() {
    let clock = Clock::runtime(noon());
    let server =
        MockServer::builder().key("good-key", Plan::Free).clock(clock).start().await.unwrap();
    let slow = server.faults().on(Operation::ListPets).first(1).delay(Duration::from_secs(5));
    let run = || Petstore::at(&server, "good-key").run("pets list --all");
    let (first, second) = tokio::join!(run(), run());
    assert_eq!((first.code, second.code, slow.hits()), (0, 0, 1));
    let told = "note: waiting for a first response that tells how many requests may follow\n";
    assert_eq!(first.stderr + &second.stderr, told);
}

#[tokio::test]
async fn a_removed_operation_exits_with_9() {
    let server = with_plan(Plan::Free).await;
    server.clock().advance(Duration::from_secs(5 * 366 * 86_400));
    let ran = Petstore::at(&server, "good-key").run("pets get 1").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: getPet failed: the service answered 410 Gone (operation_removed): GET /v1/pets/{petId} was removed on 5 December 2030: use GET /v1/pets with its `status` filter
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
    error: GET /store/orders failed: the service answered 403 Forbidden (forbidden): not with this key
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
