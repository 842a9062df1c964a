//! Each kind of failure, with its exit code and its hints.

use std::time::Duration;

use insta::assert_snapshot;
use petstore_mock::{Clock, Effect, MockServer, Operation, Plan, RetryAfter};

use super::harness::{Petstore, noon};

async fn with_plan(plan: Plan) -> MockServer {
    let clock = Clock::frozen(noon());
    MockServer::builder().key("good-key", plan).clock(clock).start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_exits_with_6() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let petstore = Petstore::bare().var("PETSTORE_API_KEY", "k");
    let text = petstore.run(&format!("--base-url {base_url} pets list")).await.transcript();
    assert_snapshot!(text, @"
    --- stderr
    error: cannot connect to 127.0.0.1:PORT: connection refused
    hint: start the service, or correct the base URL
    --- exit 6
    ");
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_rate_limit_is_announced() {
    let clock = Clock::runtime(noon());
    let builder = MockServer::builder().key("good-key", Plan::enterprise(1, 10)).clock(clock);
    let server = builder.start().await.unwrap();
    let first = Petstore::at(&server, "good-key").run("pets list --limit 1").await;
    assert_eq!(first.stderr, "note: there are more pets; `--max N` or `--all` lists them\n");
    let ran = Petstore::at(&server, "good-key").run("pets create Rex --category-id 7").await;
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    26	Rex	7
    --- stderr
    note: minute quota used up; continues in 1 min (2026-11-21T10:01:00Z)
    --- exit 0
    ");
}

#[tokio::test]
async fn the_limits_are_shown_when_they_are_used_up_too() {
    let server = with_plan(Plan::enterprise(1, 10)).await;
    assert_eq!(Petstore::at(&server, "good-key").run("store orders").await.code, 0);
    let ran = Petstore::at(&server, "good-key").terminal().run("limits").await;
    let shown = ran.transcript();
    let (before, rest) = shown.split_once("From a response ").unwrap();
    let (age, after) = rest.split_once(" ago.").unwrap();
    assert!(age.ends_with(" s"), "{age}");
    assert_snapshot!(format!("{before}From a response … ago.{after}"), @"
    --- stdout
    ␛[1mQUOTA   LEFT  LIMIT                        RESETS␛[0m
    minute     ␛[33m0␛[0m      1  ░░░░░░░░░░░░░░░░░░░░  in 1 min (10:01:00)
    day        ␛[2m–␛[0m      ␛[2m–␛[0m                        not reported yet
    Requests wait for the minute quota, in 1 min (10:01:00). From a response … ago.
    --- exit 0
    ");
}

#[tokio::test]
async fn the_limits_are_asked_for_even_where_the_service_said_to_wait() {
    let server = with_plan(Plan::Free).await;
    let effects = [Effect::status(429), Effect::RetryAfter(RetryAfter::Seconds(30))];
    let busy = server.faults().on(Operation::ListPets).first(1).apply(Effect::All(effects.into()));
    let run = async |line: &str| Petstore::at(&server, "good-key").run(line).await;
    assert_eq!((run("pets list --max-wait 0").await.code, busy.hits()), (7, 1));
    assert_snapshot!(run("limits").await.transcript(), @"
    --- stdout
    minute	60	59	2026-11-21T10:01:00Z	60
    --- stderr
    note: requests wait for the rate limit, in 30 s (2026-11-21T10:00:30Z)
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
async fn a_retry_after_that_is_too_long_ends_the_command() {
    let server = with_plan(Plan::Free).await;
    let effects = [Effect::status(503), Effect::RetryAfter(RetryAfter::Seconds(30))];
    let busy = server.faults().on(Operation::ListPets).apply(Effect::All(effects.into()));
    let ran = Petstore::at(&server, "good-key").run("--max-wait 5 pets list").await;
    assert_eq!(busy.hits(), 1);
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: the service failed (503 service_unavailable): a fault of this mock answers instead of the service
    hint: try again in a few minutes
    --- exit 5
    ");
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_a_failing_service_asks_for_is_announced() {
    let clock = Clock::runtime(noon());
    let server =
        MockServer::builder().key("good-key", Plan::Free).clock(clock).start().await.unwrap();
    let effects = [Effect::status(503), Effect::RetryAfter(RetryAfter::Seconds(30))];
    let busy = server.faults().on(Operation::ListPets).first(1).apply(Effect::All(effects.into()));
    let ran = Petstore::at(&server, "good-key").run("pets list --all").await;
    assert_eq!((ran.code, busy.hits()), (0, 1), "{}", ran.stderr);
    assert_eq!(ran.stderr, "");
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
    let told = "note: waiting for the first response with this key\n";
    assert_eq!(first.stderr + &second.stderr, told);
}

#[tokio::test]
async fn a_removed_operation_exits_with_9() {
    let server = with_plan(Plan::Free).await;
    server.clock().advance(Duration::from_secs(5 * 366 * 86_400));
    let ran = Petstore::at(&server, "good-key").run("pets get 1").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: the service has removed `pets get` (410 operation_removed)
    hint: use `petstore pets list --all --jq 'map(select(.id == 1))'`
    --- exit 9
    ");
}

#[tokio::test(start_paused = true)]
async fn ctrl_c_exits_with_130_and_says_what_may_have_happened() {
    let server = with_plan(Plan::Free).await;
    let _slow = server.faults().on(Operation::CreatePet).delay(Duration::from_secs(10));
    let petstore = Petstore::at(&server, "good-key").interrupted_after(1);
    let ran = petstore.run("pets create Rex --category-id 7").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: interrupted
    hint: a request in flight may still be processed
    --- exit 130
    ");
}
