//! Each typed operation, pages, and raw requests (specification, section 4). `both_ways` has every status
//! and header.

use futures_util::TryStreamExt as _;
use petstore_client::http::Method;
use petstore_client::{ErrorKind, NewPet, Pet, PetStatus};
use petstore_mock::{Plan, Seed, SeedPet};

use super::{client, frozen, watched};
use crate::openapi::Watched;

async fn server() -> Watched {
    let seed = Seed::new()
        .pet(SeedPet::new("Rex", 7).with_status(petstore_mock::PetStatus::Sold))
        .pet(SeedPet::new("Miez", -1))
        .order(serde_json::json!({ "id": 1, "quantity": 2 }));
    watched(frozen(Plan::Pro).seed(seed)).await
}

fn ids(pets: &[Pet]) -> Vec<i64> {
    pets.iter().map(|pet| pet.id).collect()
}

#[tokio::test]
async fn list_pets_returns_the_pets_of_a_status() {
    let server = server().await;
    let client = client(&server);
    let page = client.pets().list().await.unwrap();
    let rex = NewPet::new("Rex", 7).with_status(PetStatus::Sold);
    assert_eq!(page[0], rex.into_pet(1));
    assert_eq!(page[1], NewPet::new("Miez", -1).into_pet(2));
    assert_eq!(page.has_more(), Some(false));
    let list = || client.pets().list();
    assert_eq!(ids(&list().status(PetStatus::Sold).await.unwrap()), [1]);
    let unknown = list().status("adopted").await.unwrap_err();
    assert_eq!(unknown.code(), Some("invalid_parameter"), "{unknown}");
    assert_eq!(unknown.kind(), ErrorKind::Rejected);
    assert!(!unknown.may_have_been_processed());
}

#[tokio::test]
async fn create_pet_returns_the_pet_with_its_id() {
    let server = server().await;
    let client = client(&server);
    for (status, id) in [(None, 3), (Some(PetStatus::Pending), 4)] {
        let mut new = NewPet::new("Ž 犬 \u{1b}\"", i64::MIN);
        new.status = status;
        let created = client.pets().create(&new).await.unwrap();
        assert_eq!(created, new.into_pet(id));
    }
    let all = client.pets().list().await.unwrap();
    assert_eq!(ids(&all), [1, 2, 3, 4]);
    let odd = NewPet::new("Rex", 7).with_status("adopted");
    let error = client.pets().create(&odd).await.unwrap_err();
    assert_eq!(error.code(), Some("invalid_body"), "{error}");
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Rejected, 1));
}

#[tokio::test]
#[expect(deprecated, reason = "part of the contract until 2030")]
async fn get_pet_returns_the_pet_or_says_that_there_is_none() {
    let server = server().await;
    let client = client(&server);
    assert_eq!(client.pets().get(2).await.unwrap().name, "Miez");
    for id in [0, 3, -1, i64::MAX, i64::MIN] {
        let error = client.pets().get(id).await.unwrap_err();
        assert_eq!(error.code(), Some("pet_not_found"));
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
async fn what_the_contract_does_not_show_is_reached_by_a_raw_request() {
    let server = server().await;
    let client = client(&server);
    let head = client.request(Method::HEAD, "/pets").send().await.unwrap();
    assert_eq!((head.status().as_u16(), head.value.len()), (200, 0));
    for (method, path, code) in [
        (Method::PUT, "/pets/1", "method_not_allowed"),
        (Method::GET, "/animals", "route_not_found"),
    ] {
        let error = client.request(method, path).send().await.unwrap_err();
        assert_eq!(error.code(), Some(code));
    }
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
    let list = || client.pets().list().limit(7);
    let all: Vec<_> = list().items().try_collect().await.unwrap();
    assert_eq!(ids(&all), (1..=45).collect::<Vec<_>>());
    let sold = list().status(PetStatus::Sold).items();
    let sold: Vec<_> = sold.try_collect().await.unwrap();
    assert_eq!(ids(&sold), (2..=45).step_by(2).collect::<Vec<_>>());
}

#[tokio::test]
async fn pages_stay_right_while_pets_are_added() {
    let server = watched(frozen(Plan::Pro).seed(pets(6))).await;
    let client = client(&server);
    let mut pages = client.pets().list().limit(3).pages();
    let mut seen = Vec::new();
    while let Some(page) = pages.try_next().await.unwrap() {
        seen.extend(ids(&page));
        if seen.len() < 10 {
            client.pets().create(&NewPet::new("late", 1)).await.unwrap();
        }
    }
    assert_eq!(seen, (1..=8).collect::<Vec<_>>());
}
