//! Deprecation of an operation: data on each response, and one warning.

use std::sync::{Arc, Mutex};

use petstore_client::events::EventKind;
use petstore_client::http::Method;
use petstore_client::{Client, Pet, Response};

use super::kit::{REX, answer, at, builder, client, recorded};
use super::logs::Logs;
use super::wire::Wire;

/// The removal of `getPet` (specification, section 4.3).
const REMOVAL: u64 = 1_922_659_200;

const SINCE: u64 = 1_764_892_800;

/// A server that says that everything is deprecated since 2025.
fn saying() -> Wire {
    Wire::start(|_| answer(200, &[("Deprecation", "@1764892800")], REX))
}

#[expect(deprecated, reason = "the test covers it")]
async fn get(client: &Client) -> Response<Pet> {
    client.pets().get(1).with_meta().await.unwrap()
}

#[tokio::test]
async fn says_what_the_specification_says_and_when_that_began_if_the_service_does() {
    let silent = Wire::start(|_| answer(200, &[], REX));
    for (server, since) in [(&silent, None), (&saying(), Some(at(SINCE)))] {
        let client = client(&server.base());
        let pet = get(&client).await;
        let said = pet.meta.deprecation().unwrap();
        assert_eq!((said.since(), said.sunset()), (since, Some(at(REMOVAL))));
        assert_eq!(said.replacement(), Some("/pets"));
        let raw = client.request(Method::GET, "/x").send().await.unwrap();
        let said = raw.meta.deprecation();
        assert_eq!(said.is_some(), since.is_some(), "{said:?}");
    }
}

#[tokio::test]
async fn warns_once_for_each_operation_and_client() {
    let server = saying();
    let logs = Logs::capture();
    let first = client(&server.base());
    for _ in 0..3 {
        get(&first).await;
        get(&first.clone()).await;
        first.store().orders().await.unwrap();
    }
    get(&client(&server.base())).await;
    let text = logs.text();
    let warned = |operation: &str| {
        let operation = format!("operation=\"{operation}\"");
        let warnings = text.lines().filter(|line| line.contains(" WARN "));
        warnings.filter(|line| line.contains(&operation)).count()
    };
    assert_eq!(warned("getPet"), 2, "one for each client:\n{text}");
    assert_eq!(warned("GET /store/orders"), 1);
    assert!(text.contains("Thu, 05 Dec 2030 00:00:00 GMT"), "{text}");
}

#[tokio::test]
async fn the_hook_hears_of_each_operation_once_and_may_use_the_client() {
    let server = saying();
    let slot: Arc<Mutex<Option<Client>>> = Arc::default();
    let inside = Arc::clone(&slot);
    let (client, recorded) = recorded(builder(&server.base()), move |event| match event.kind {
        EventKind::Deprecated(deprecation) => {
            let client = inside.lock().unwrap().clone().unwrap();
            assert!(client.limits().snapshot().blocked.is_none());
            assert_eq!(deprecation.since(), Some(at(SINCE)));
            Some(event.operation.unwrap().to_owned())
        }
        _ => None,
    });
    let client = client.build().unwrap();
    *slot.lock().unwrap() = Some(client.clone());
    for _ in 0..3 {
        get(&client).await;
        client.clone().store().orders().await.unwrap();
    }
    let heard = recorded.lock().unwrap().clone();
    assert_eq!(heard, ["getPet", "GET /store/orders"]);
}

#[tokio::test]
async fn a_404_still_carries_the_deprecation() {
    let server = Wire::start(|_| answer(404, &[], ""));
    let (client, recorded) = recorded(builder(&server.base()), |event| match event.kind {
        EventKind::Deprecated(_) => Some(event.operation.unwrap().to_owned()),
        _ => None,
    });
    let client = client.build().unwrap();
    #[expect(deprecated, reason = "the test covers it")]
    let error = client.pets().get(7).await.unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(*recorded.lock().unwrap(), ["getPet"]);
}
