//! Tests that this project's client breaks no rule, at the quota or when the service fails.

use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::{Client, Error, NewPet, RequestOptions};
use petstore_mock::{MockServer, Operation, Plan, Rule, Severity};

use crate::client::mock;

/// Starts a server whose clock follows the paused runtime, and a client that waits as long as
/// needed. So many requests may be under way at once.
async fn service(plan: Plan, senders: u32) -> (MockServer, Client) {
    let server = mock("key", plan).start().await.unwrap();
    server.keys().get("key").unwrap().senders(senders);
    let patient = RequestOptions::new()
        .max_wait(Duration::from_secs(3_600))
        .timeout(Duration::from_secs(7_200));
    let client = Client::builder(server.url())
        .api_key("key")
        .options(&patient)
        .isolated_limits()
        .build()
        .unwrap();
    (server, client)
}

/// The number of calls at once.
const AT_ONCE: u32 = 256;

/// Makes many calls at once, and returns how many fail.
async fn at_once(client: &Client) -> usize {
    let call = |number: u32, client: Client| async move {
        let pet = NewPet::new("Rex", number.into());
        match number % 4 {
            0 => client.pets().list().await.map(drop),
            1 => client.store().orders().await.map(drop),
            2 => client.pets().create(&pet).await.map(drop),
            _ => client.pets().list().limit(5).await.map(drop),
        }
    };
    let calls = (0..AT_ONCE).map(|number| call(number, client.clone()));
    let calls: Vec<Result<(), Error>> = join_all(calls).await;
    calls.iter().filter(|call| call.is_err()).count()
}

/// Fails unless the report has no finding.
#[track_caller]
fn assert_clean(server: &MockServer) {
    let report = server.report();
    report.assert_compliant();
    assert_eq!(report.findings().count(), 0, "{report}");
}

#[tokio::test(start_paused = true)]
async fn at_the_end_of_a_quota() {
    let (server, client) = service(Plan::Free, AT_ONCE).await;
    assert_eq!(at_once(&client).await, 0);
    assert_eq!(server.report().requests(), 256);
    assert_clean(&server);
}

#[tokio::test(start_paused = true)]
async fn where_the_service_fails() {
    let (server, client) = service(Plan::Pro, AT_ONCE).await;
    let faults = server.faults();
    let busy = faults.on(Operation::ListPets).chance(0.3).seed(7);
    let busy = busy.status(503);
    let lost = faults.on(Operation::CreatePet).chance(0.5).seed(8);
    let lost = lost.status(502);
    let failed = at_once(&client).await;
    assert!(failed > 20, "a POST is not sent again: {failed}");
    assert!(busy.hits() > 20 && lost.hits() > 20);
    // Retries of several calls may come soon after one another, which is a notice.
    server.report().assert_compliant();
}

#[tokio::test(start_paused = true)]
async fn one_call_after_another_where_the_service_fails() {
    let (server, client) = service(Plan::Pro, 1).await;
    let busy = server.faults().on(Operation::ListPets);
    let busy = busy.chance(0.7).seed(9).status(500);
    for _ in 0..40 {
        // Some calls fail even after retries. A program should wait before it calls again, too.
        let _ = client.pets().list().await;
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
    assert!(busy.hits() > 20, "{}", busy.hits());
    assert_clean(&server);
}

#[tokio::test(start_paused = true)]
#[expect(deprecated, reason = "the test covers it")]
async fn with_a_wrong_key_and_with_the_deprecated_operation() {
    let (server, client) = service(Plan::Free, 1).await;
    let stranger = Client::builder(server.url()).api_key("wrong").build();
    let error = stranger.unwrap().pets().list().await.unwrap_err();
    assert!(error.is_unauthorized());
    client.pets().get(1).await.unwrap();
    client.pets().get(99).await.unwrap_err();
    let report = server.report();
    report.assert_compliant();
    let found = report.of(Severity::Notice);
    let found: Vec<_> = found.map(|one| (one.rule, one.offences)).collect();
    assert_eq!(found, [(Rule::Deprecated, 2)]);
}
