//! Each operation with each of its statuses, pages, and the removal of `getPet` (specification,
//! sections 4 and 9).

use std::time::Duration;

use futures_util::TryStreamExt as _;
use petstore_client::http::Method;
use petstore_client::limits::QuotaWindow;
use petstore_client::{Client, Error, ErrorKind, NewPet, PetStatus};
use petstore_mock::{Plan, Seed, SeedPet};

use super::{START, at, client, frozen, watched};
use crate::client::list_meta;
use crate::openapi::Watched;

async fn server() -> Watched {
    let seed = Seed::new()
        .pet(SeedPet::new("Rex", 7).with_status(petstore_mock::PetStatus::Sold))
        .pet(SeedPet::new("Miez", -1))
        .order(serde_json::json!({ "id": 1, "quantity": 2 }));
    watched(frozen(Plan::Pro).seed(seed)).await
}

/// The body of an error matches the client's accessors.
fn assert_error(error: &Error, status: u16, code: &str) {
    assert_eq!(error.status().map(|s| s.as_u16()), Some(status), "{error}");
    assert_eq!(error.code(), Some(code), "{error}");
    assert!(error.message().is_some_and(|message| !message.is_empty()));
    let body: serde_json::Value = error.response().unwrap().json().unwrap();
    assert_eq!(body["status"], status);
    assert_eq!(
        error.response().unwrap().headers()["content-type"],
        "application/json"
    );
    for name in [
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
    ] {
        assert!(
            error.response().unwrap().headers().contains_key(name),
            "{name} on {error}"
        );
    }
    assert!(!error.may_have_been_processed());
}

#[tokio::test]
async fn list_pets_returns_200_with_the_quota() {
    let server = server().await;
    let response = client(&server).pets().list().with_meta().await.unwrap();
    let (page, meta) = (response.value, response.meta);
    assert_eq!(meta.status(), 200);
    let names: Vec<_> = page.iter().map(|pet| (pet.id, pet.name.as_str())).collect();
    assert_eq!(names, [(1, "Rex"), (2, "Miez")]);
    assert_eq!(page[0].status, Some(PetStatus::Sold));
    assert_eq!((page[1].category_id, page[1].status.clone()), (-1, None));
    assert_eq!(page.has_more(), Some(false));
    let quota = QuotaWindow::of(meta.headers()).unwrap();
    assert_eq!(
        (quota.limit, quota.remaining, quota.reset),
        (300, 299, at(START + 60))
    );
    assert_eq!(meta.attempts(), 1);
}

#[tokio::test]
async fn list_pets_filters_by_status() {
    let server = server().await;
    let client = client(&server);
    let sold = client
        .pets()
        .list()
        .status(PetStatus::Sold)
        .send()
        .await
        .unwrap();
    assert_eq!(sold.iter().map(|pet| pet.id).collect::<Vec<_>>(), [1]);
    let unknown = client
        .pets()
        .list()
        .status("adopted")
        .send()
        .await
        .unwrap_err();
    assert_error(&unknown, 400, "invalid_parameter");
    assert_eq!(unknown.kind(), ErrorKind::Rejected);
}

#[tokio::test]
async fn create_pet_returns_201_with_the_assigned_id() {
    let server = server().await;
    let client = client(&server);
    for (status, id) in [(None, 3), (Some(PetStatus::Pending), 4)] {
        let mut new = NewPet::new("Ž 犬 \u{1b}\"", i64::MIN);
        new.status = status.clone();
        let created = client.pets().create(&new).with_meta().await.unwrap();
        assert_eq!(created.meta.status(), 201);
        let pet = created.value;
        assert_eq!(
            (pet.id, &pet.name, pet.category_id),
            (id, &new.name, i64::MIN)
        );
        assert_eq!(pet.status, status);
    }
    let all = client.pets().list().await.unwrap();
    assert_eq!(
        all.iter().map(|pet| pet.id).collect::<Vec<_>>(),
        [1, 2, 3, 4]
    );
}

#[tokio::test]
async fn create_pet_returns_400_for_an_invalid_pet() {
    let server = server().await;
    let client = client(&server);
    for body in [
        r#"{"name":"Rex"}"#,
        r#"{"categoryId":7}"#,
        "[]",
        "{",
        "",
        r#"{"name":1,"categoryId":7}"#,
    ] {
        let request = client
            .request(Method::POST, "/pets")
            .body("application/json", body);
        assert_error(&request.send().await.unwrap_err(), 400, "invalid_body");
    }
    let odd = NewPet::new("Rex", 7).with_status("adopted");
    let error = client.pets().create(&odd).await.unwrap_err();
    assert_error(&error, 400, "invalid_body");
    assert_eq!(error.kind(), ErrorKind::Rejected);
    assert_eq!(error.attempts(), 1);
}

#[tokio::test]
#[expect(deprecated, reason = "part of the contract until 2030")]
async fn get_pet_returns_200_or_404() {
    let server = server().await;
    let client = client(&server);
    let pet = client.pets().get(2).with_meta().await.unwrap();
    assert_eq!(
        (pet.meta.status().as_u16(), pet.value.name.as_str()),
        (200, "Miez")
    );
    for id in [0, 3, -1, i64::MAX, i64::MIN] {
        let error = client.pets().get(id).await.unwrap_err();
        assert_error(&error, 404, "pet_not_found");
        assert!(error.is_not_found());
    }
}

#[tokio::test]
async fn the_orders_are_whatever_json_the_service_has() {
    let server = server().await;
    let orders = client(&server).store().orders().await.unwrap();
    assert_eq!(orders, serde_json::json!([{ "id": 1, "quantity": 2 }]));
}

#[tokio::test]
#[expect(deprecated, reason = "part of the contract until 2030")]
async fn every_operation_returns_401_for_a_bad_key() {
    let server = server().await;
    let client = Client::builder(server.url())
        .api_key("mistyped")
        .build()
        .unwrap();
    let errors = [
        client.pets().list().await.unwrap_err(),
        client
            .pets()
            .create(&NewPet::new("Rex", 7))
            .await
            .unwrap_err(),
        client.pets().get(1).await.unwrap_err(),
        client.store().orders().await.unwrap_err(),
    ];
    let count = petstore_mock::Operation::ALL.len();
    assert_eq!(errors.len(), count, "a call of each operation");
    let named: Vec<_> = errors
        .iter()
        .map(|error| error.operation().unwrap())
        .collect();
    assert_eq!(
        named,
        ["listPets", "createPet", "getPet", "GET /store/orders"]
    );
    for error in errors {
        assert_error(&error, 401, "unauthorized");
        assert!(error.is_unauthorized());
        assert!(!error.to_string().contains("mistyped"));
    }
}

#[tokio::test]
async fn what_the_contract_does_not_show_is_reached_by_a_raw_request() {
    let server = server().await;
    let client = client(&server);
    let head = client.request(Method::HEAD, "/pets").send().await.unwrap();
    assert_eq!((head.status().as_u16(), head.value.len()), (200, 0));
    let error = client
        .request(Method::PUT, "/pets/1")
        .send()
        .await
        .unwrap_err();
    assert_error(&error, 405, "method_not_allowed");
    assert_eq!(error.response().unwrap().headers()["allow"], "GET, HEAD");
    let error = client
        .request(Method::GET, "/animals")
        .send()
        .await
        .unwrap_err();
    assert_error(&error, 404, "route_not_found");
}

fn pets(count: i64) -> Seed {
    (1..=count).fold(Seed::new(), |seed, n| {
        let status = if n % 2 == 0 { "sold" } else { "available" };
        seed.pet(SeedPet::new(format!("pet {n}"), n).with_status(status.parse().unwrap()))
    })
}

#[tokio::test]
async fn the_items_of_all_pages_come_once_each_and_in_order() {
    let server = watched(frozen(Plan::Pro).seed(pets(45))).await;
    let client = client(&server);
    let all = client.pets().list().limit(7).items();
    let ids: Vec<i64> = all.map_ok(|pet| pet.id).try_collect().await.unwrap();
    assert_eq!(ids, (1..=45).collect::<Vec<_>>());
    let sold = client
        .pets()
        .list()
        .limit(7)
        .status(PetStatus::Sold)
        .items();
    let ids: Vec<i64> = sold.map_ok(|pet| pet.id).try_collect().await.unwrap();
    assert_eq!(ids, (2..=45).step_by(2).collect::<Vec<_>>());
}

#[tokio::test]
async fn pages_stay_right_while_pets_are_added() {
    let server = watched(frozen(Plan::Pro).seed(pets(6))).await;
    let client = client(&server);
    let mut pages = client.pets().list().limit(3).pages();
    let mut ids = Vec::new();
    while let Some(page) = pages.try_next().await.unwrap() {
        ids.extend(page.iter().map(|pet| pet.id));
        if ids.len() < 10 {
            client.pets().create(&NewPet::new("late", 1)).await.unwrap();
        }
    }
    assert_eq!(ids, (1..=8).collect::<Vec<_>>());
}

const REMOVAL: u64 = 1_922_659_200;

#[tokio::test]
#[expect(deprecated, reason = "part of the contract until 2030")]
async fn the_end_is_announced_as_data() {
    let server = watched(frozen(Plan::Pro)).await;
    let client = client(&server);
    let pet = client.pets().get(1).with_meta().await.unwrap();
    let end = pet.meta.deprecation().unwrap();
    assert_eq!(end.since(), Some(at(1_764_892_800)));
    assert_eq!(end.sunset(), Some(at(REMOVAL)));
    assert_eq!(end.replacement(), Some("/v1/pets"));
    assert_eq!(end.days_left(at(START)), Some((REMOVAL - START) / 86_400));
    assert_eq!(list_meta(&client).await.deprecation(), None);
    assert_eq!(
        client
            .store()
            .orders()
            .with_meta()
            .await
            .unwrap()
            .meta
            .deprecation(),
        None
    );
}

#[tokio::test]
#[expect(deprecated, reason = "part of the contract until 2030")]
async fn from_the_removal_date_on_it_is_gone() {
    let server = watched(frozen(Plan::Pro)).await;
    let client = client(&server);
    server
        .clock()
        .advance(Duration::from_secs(REMOVAL - START - 1));
    client.pets().get(1).await.unwrap();
    server.clock().advance(Duration::from_secs(1));
    let error = client.pets().get(1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Gone, "{error}");
    assert_eq!(error.code(), Some("operation_removed"));
    assert!(client.pets().list().await.is_ok());
}
