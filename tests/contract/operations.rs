//! The typed operations, pages, and raw requests (specification, section 4). `both_ways` has every
//! parameter, field, status and header.

use futures_util::TryStreamExt as _;
use petstore_client::http::Method;
use petstore_client::{ErrorKind, NewPet, Pet, PetStatus};
use petstore_mock::{Plan, Seed, SeedPet};

use super::{client, frozen, watched};
use crate::openapi::Watched;

fn ids(pets: &[Pet]) -> Vec<i64> {
    pets.iter().map(|pet| pet.id).collect()
}

/// Starts a server with pets, every second of them sold.
async fn with_pets(count: i64) -> Watched {
    let mut seed = Seed::none().order(serde_json::json!({ "id": 1, "quantity": 2 }));
    for n in 1..=count {
        let mut pet = SeedPet::new(format!("pet {n}"), n);
        if n % 2 == 0 {
            pet = pet.with_status(petstore_mock::PetStatus::Sold);
        }
        seed = seed.pet(pet);
    }
    watched(frozen(Plan::Pro).seed(seed)).await
}

#[tokio::test]
#[expect(deprecated, reason = "part of the contract until 2030")]
async fn pets_and_orders_are_read_and_created() {
    let server = with_pets(2).await;
    let client = client(&server);
    let two = NewPet::new("pet 2", 2).with_status(PetStatus::Sold);
    let two = two.into_pet(2);
    let page = client.pets().list().status(PetStatus::Sold).await.unwrap();
    assert_eq!(
        (page.len(), &page[0], page.has_more()),
        (1, &two, Some(false))
    );
    assert_eq!(client.pets().get(2).await.unwrap(), two);
    let new = NewPet::new("Ž 犬 \u{1b}\"", i64::MIN);
    let created = client.pets().create(&new).await.unwrap();
    assert_eq!(created, new.into_pet(3));
    let orders = client.store().orders().await.unwrap();
    assert_eq!(orders, serde_json::json!([{ "id": 1, "quantity": 2 }]));
}

#[tokio::test]
#[expect(deprecated, reason = "part of the contract until 2030")]
async fn what_the_service_refuses_was_not_processed() {
    let server = with_pets(2).await;
    let client = client(&server);
    let odd = NewPet::new("Rex", 7).with_status("adopted");
    let unknown = client.pets().list().status("adopted").await.unwrap_err();
    let invalid = client.pets().create(&odd).await.unwrap_err();
    for (error, code) in [(unknown, "invalid_parameter"), (invalid, "invalid_body")] {
        assert_eq!(error.code(), Some(code), "{error}");
        assert_eq!((error.kind(), error.attempts()), (ErrorKind::Rejected, 1));
        assert!(!error.may_have_been_processed());
    }
    for id in [3, i64::MAX, i64::MIN] {
        let error = client.pets().get(id).await.unwrap_err();
        assert_eq!(error.code(), Some("pet_not_found"));
        assert!(error.is_not_found());
    }
}

#[tokio::test]
async fn what_the_contract_does_not_show_is_reached_by_a_raw_request() {
    let server = with_pets(2).await;
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

#[tokio::test]
async fn the_items_of_all_pages_come_once_each_and_in_order() {
    let server = with_pets(45).await;
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
    let server = with_pets(6).await;
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
