//! Tests of the removal of `getPet` (specification, sections 4.3 and 9).
#![expect(deprecated, reason = "the tests cover it")]

use std::time::Duration;

use petstore_client::ErrorKind;
use petstore_mock::Plan;

use super::{START, at, client, frozen, watched};

const REMOVAL: u64 = 1_922_659_200;

#[tokio::test]
async fn the_end_is_announced_as_data() {
    let server = watched(frozen(Plan::Pro)).await;
    let client = client(&server);
    let pet = client.pets().get(1).await.unwrap();
    let end = pet.meta().deprecation().unwrap();
    assert_eq!(end.since(), Some(at(1_764_892_800)));
    assert_eq!(end.sunset(), Some(at(REMOVAL)));
    assert_eq!(end.replacement(), Some("/v1/pets"));
    assert_eq!(end.days_left(at(START)), Some((REMOVAL - START) / 86_400));
    assert_eq!(client.pets().list().await.unwrap().meta().deprecation(), None);
    assert_eq!(client.store().orders().await.unwrap().meta().deprecation(), None);
}

#[tokio::test]
async fn from_the_removal_date_on_it_is_gone() {
    let server = watched(frozen(Plan::Pro)).await;
    let client = client(&server);
    server.clock().advance(Duration::from_secs(REMOVAL - START - 1));
    client.pets().get(1).await.unwrap();
    server.clock().advance(Duration::from_secs(1));
    let error = client.pets().get(1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Gone, "{error}");
    assert_eq!(error.code(), Some("operation_removed"));
    assert!(client.pets().list().await.is_ok());
}
