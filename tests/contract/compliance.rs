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

/// Makes many calls at once, by number, and returns how many fail.
async fn at_once<F: Future<Output = Result<(), Error>> + Send + 'static>(
    call: impl Fn(Client, i64) -> F,
    client: &Client,
) -> usize {
    let calls: Vec<_> = (0..AT_ONCE.into())
        .map(|it| tokio::spawn(call(client.clone(), it)))
        .collect();
    join_all(calls)
        .await
        .iter()
        .filter(|call| call.as_ref().unwrap().is_err())
        .count()
}

#[tokio::test(start_paused = true)]
async fn at_the_end_of_a_quota() {
    let (server, client) = service(Plan::Free, AT_ONCE).await;
    let call = |client: Client, number| async move {
        match number % 4 {
            0 => client.pets().list().await.map(drop),
            1 => client.store().orders().await.map(drop),
            2 => client
                .pets()
                .create(&NewPet::new("Rex", number))
                .await
                .map(drop),
            _ => client.pets().list().limit(5).send().await.map(drop),
        }
    };
    assert_eq!(at_once(call, &client).await, 0);
    let report = server.report();
    report.assert_compliant();
    assert_eq!(
        (report.findings().count(), report.requests()),
        (0, 256),
        "{report}"
    );
}

#[tokio::test(start_paused = true)]
async fn where_the_service_fails() {
    let (server, client) = service(Plan::Pro, AT_ONCE).await;
    let faults = server.faults();
    let busy = faults
        .on(Operation::ListPets)
        .chance(0.2)
        .seed(7)
        .status(503);
    let lost = faults
        .on(Operation::CreatePet)
        .chance(0.3)
        .seed(8)
        .status(502);
    let call = |client: Client, number| async move {
        match number % 2 {
            0 => client.pets().list().await.map(drop),
            _ => client
                .pets()
                .create(&NewPet::new("Rex", number))
                .await
                .map(drop),
        }
    };
    let failed = at_once(call, &client).await;
    assert!(failed > 20, "a POST is not sent again: {failed}");
    assert!(busy.hits() > 20 && lost.hits() > 20);
    let report = server.report();
    report.assert_compliant();
    assert_eq!(report.findings().count(), 0, "{report}");
}

#[tokio::test(start_paused = true)]
async fn one_call_after_another_where_the_service_fails() {
    let (server, client) = service(Plan::Pro, 1).await;
    let busy = server
        .faults()
        .on(Operation::ListPets)
        .chance(0.7)
        .seed(9)
        .status(500);
    for _ in 0..40 {
        // Some calls fail even after retries. A program should wait before it calls again, too.
        let _ = client.pets().list().await;
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
    assert!(busy.hits() > 20, "{}", busy.hits());
    assert_eq!(server.report().findings().count(), 0, "{}", server.report());
}

#[tokio::test(start_paused = true)]
async fn with_a_wrong_key_and_with_the_deprecated_operation() {
    let (server, client) = service(Plan::Free, 1).await;
    let stranger = Client::builder(server.url())
        .api_key("wrong")
        .build()
        .unwrap();
    assert!(stranger.pets().list().await.unwrap_err().is_unauthorized());
    #[allow(deprecated, reason = "the test covers it")]
    {
        client.pets().get(1).await.unwrap();
        client.pets().get(99).await.unwrap_err();
    }
    let report = server.report();
    report.assert_compliant();
    let found: Vec<_> = report
        .of(Severity::Notice)
        .map(|one| (one.rule, one.offences))
        .collect();
    assert_eq!(found, [(Rule::Deprecated, 2)]);
}
