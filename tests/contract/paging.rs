//! The pages of a list.

use futures_util::TryStreamExt as _;
use petstore_client::{NewPet, PetStatus};
use petstore_mock::{Plan, Seed, SeedPet};

use super::{client, frozen, watched};

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
    let sold = client.pets().list().limit(7).status(PetStatus::Sold).items();
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
