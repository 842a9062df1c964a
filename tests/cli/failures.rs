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
    let ran = petstore.run(&format!("--base-url {base_url} pets list")).await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: cannot connect to 127.0.0.1:PORT: connection refused
    hint: start the service, or correct the base URL
    --- exit 6
    ");
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
