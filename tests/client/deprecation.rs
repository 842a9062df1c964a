//! Deprecation of an operation: data on each response, and one warning.

use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use petstore_client::Client;
use petstore_client::events::EventKind;
use petstore_client::http::Method;

use super::kit::{REX, answer, builder, client, recorded, secs};
use super::logs::Logs;
use super::wire::Wire;

/// The removal of `getPet` (specification, section 4.3).
const REMOVAL: u64 = 1_922_659_200;

fn at(seconds: u64) -> Option<SystemTime> {
    Some(SystemTime::UNIX_EPOCH + secs(seconds))
}

fn saying(headers: &[(&'static str, &'static str)]) -> Wire {
    let headers = headers.to_vec();
    Wire::start(move |_| answer(200, &headers, REX))
}

#[expect(deprecated, reason = "the test covers it")]
async fn get(client: &Client) -> petstore_client::Response<petstore_client::Pet> {
    client.pets().get(1).with_meta().await.unwrap()
}

#[tokio::test]
async fn says_what_the_specification_says_where_the_service_is_silent() {
    for (headers, since) in [
        (vec![], None),
        (vec![("Deprecation", "true")], None),
        (vec![("Deprecation", "@1764892800")], at(1_764_892_800)),
        (vec![("Sunset", "soon")], None),
    ] {
        let server = saying(&headers);
        let pet = get(&client(&server.base())).await;
        let said = pet.meta.deprecation().unwrap();
        assert_eq!(
            (said.since(), said.sunset()),
            (since, at(REMOVAL)),
            "{headers:?}"
        );
        assert_eq!(said.replacement(), Some("/pets"));
    }
}

#[tokio::test]
async fn any_operation_may_be_announced_and_a_raw_request_too() {
    for (headers, is_announced) in [(&[("Deprecation", "true")][..], true), (&[], false)] {
        let server = saying(headers);
        let client = client(&server.base());
        let raw = client.request(Method::GET, "/x").send().await.unwrap();
        assert_eq!(raw.meta.deprecation().is_some(), is_announced);
    }
}

#[tokio::test]
async fn warns_once_for_each_operation_and_client() {
    let server = saying(&[("Deprecation", "true")]);
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
        let line = |line: &&str| {
            line.contains(" WARN ")
                && line.contains("this operation is deprecated")
                && line.contains(&format!("operation=\"{operation}\""))
        };
        text.lines().filter(line).count()
    };
    assert_eq!(warned("getPet"), 2, "one for each client:\n{text}");
    assert_eq!(warned("GET /store/orders"), 1);
    assert!(text.contains("Thu, 05 Dec 2030 00:00:00 GMT"), "{text}");
}

#[tokio::test]
async fn the_hook_hears_of_each_operation_once_and_may_use_the_client() {
    let server = saying(&[("Deprecation", "@1764892800")]);
    let slot: Arc<Mutex<Option<Client>>> = Arc::default();
    let inside = Arc::clone(&slot);
    let (client, recorded) = recorded(builder(&server.base()), move |event| match event.kind {
        EventKind::Deprecated(deprecation) => {
            let client = inside.lock().unwrap().clone().unwrap();
            assert!(client.limits().snapshot().blocked.is_none());
            Some((event.operation.unwrap().to_owned(), deprecation.since()))
        }
        _ => None,
    });
    let client = client.build().unwrap();
    *slot.lock().unwrap() = Some(client.clone());
    for _ in 0..3 {
        get(&client).await;
        client.clone().store().orders().await.unwrap();
    }
    let expected = ["getPet", "GET /store/orders"].map(|name| (name.to_owned(), at(1_764_892_800)));
    assert_eq!(*recorded.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_404_still_carries_the_deprecation() {
    let sunset = [("Sunset", "Thu, 05 Dec 2030 00:00:00 GMT")];
    let server = Wire::start(move |_| answer(404, &sunset, ""));
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
