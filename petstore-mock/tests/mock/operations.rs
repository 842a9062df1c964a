//! Tests of the four operations in the normal case, and of `HEAD`.

use petstore_mock::{PetStatus, Seed, SeedPet};
use reqwest::Method;
use serde_json::json;

use super::support::{REX, reply, start, start_with};

#[tokio::test]
async fn lists_20_pets_unless_told_otherwise() {
    let mock = start().await;
    let reply = mock.get("/v1/pets").await;
    assert_eq!(reply.status, 200);
    let pets = reply.json();
    assert_eq!(pets.as_array().unwrap().len(), 20);
    assert_eq!(
        pets[0],
        json!({"id": 1, "name": "Bramble", "categoryId": 1, "status": "available"})
    );
    assert_eq!(
        mock.get("/v1/pets?limit=1")
            .await
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        mock.get("/v1/pets?limit=100")
            .await
            .json()
            .as_array()
            .unwrap()
            .len(),
        25
    );
}

#[tokio::test]
async fn lists_only_pets_of_the_status_asked_for() {
    let mock = start().await;
    for status in ["available", "pending", "sold"] {
        let pets = mock
            .get(&format!("/v1/pets?status={status}&limit=100"))
            .await
            .json();
        let pets = pets.as_array().unwrap();
        assert!(!pets.is_empty());
        assert!(pets.iter().all(|pet| pet["status"] == status), "{pets:?}");
    }
}

#[tokio::test]
async fn omits_a_missing_status() {
    let mock = start().await;
    let pet = mock.get("/v1/pets/6").await.json();
    assert_eq!(pet, json!({"id": 6, "name": "Thistle", "categoryId": 4}));
}

#[tokio::test]
async fn adds_a_pet_and_finds_it_again() {
    let mock = start().await;
    let added = mock
        .post(r#"{"name": "Rex", "categoryId": 7, "status": "pending", "x": 1}"#)
        .await;
    assert_eq!(added.status, 201);
    let rex = json!({"id": 26, "name": "Rex", "categoryId": 7, "status": "pending"});
    assert_eq!(added.json(), rex);
    assert_eq!(added.header("location"), "/v1/pets/26");
    assert_eq!(mock.get("/v1/pets/26").await.json(), rex);
    let nameless = mock
        .post(r#"{"name": "", "categoryId": -9223372036854775808}"#)
        .await;
    assert_eq!(
        nameless.json(),
        json!({"id": 27, "name": "", "categoryId": i64::MIN})
    );
}

#[tokio::test]
async fn new_pets_get_the_default_status() {
    let mock = start_with(|builder| builder.default_status(PetStatus::Pending)).await;
    let added = mock.post(REX).await;
    assert_eq!(added.json()["status"], "pending");
    let sold = mock
        .post(r#"{"name": "Rex", "categoryId": 7, "status": "sold"}"#)
        .await;
    assert_eq!(sold.json()["status"], "sold");
    // A seeded pet without a status keeps none.
    assert_eq!(mock.get("/v1/pets/6").await.json().get("status"), None);
}

#[tokio::test]
async fn unknown_and_invalid_ids_are_404() {
    let mock = start().await;
    for id in [
        "26",
        "0",
        "9223372036854775808",
        "abc",
        "1.0",
        "%20",
        "%ff",
        "%zz",
        "%2F1",
    ] {
        let reply = mock.get(&format!("/v1/pets/{id}")).await;
        reply.expect_error(404, "pet_not_found");
    }
    for (id, shown) in [
        ("%ff", "\"%FF\""),
        ("%1b%5B31m", "\"\\u{1b}[31m\""),
        ("%2F1", "\"/1\""),
    ] {
        let message = mock.get(&format!("/v1/pets/{id}")).await.message();
        assert!(
            message.contains(&format!("no pet has the id {shown}:")),
            "{message}"
        );
    }
    assert_eq!(mock.get("/v1/pets/%31").await.json()["id"], 1);
}

#[tokio::test]
async fn finds_pets_with_the_outermost_ids() {
    let seed = [i64::MIN, i64::MAX]
        .into_iter()
        .fold(Seed::new(), |seed, id| {
            seed.pet(SeedPet::new("far out", 1).with_id(id))
        });
    let mock = start_with(|builder| builder.seed(seed)).await;
    for id in [i64::MIN, i64::MAX] {
        assert_eq!(mock.get(&format!("/v1/pets/{id}")).await.json()["id"], id);
    }
    let full = mock.post(r#"{"name": "one more", "categoryId": 1}"#).await;
    full.expect_error(500, "internal_error");
}

#[tokio::test]
async fn lists_the_orders_it_was_seeded_with() {
    let mock = start().await;
    assert_eq!(mock.get("/v1/store/orders").await.json(), json!([]));
    let order = json!({"any": {"thing": [1, null]}});
    let seed = Seed::none().order(order.clone());
    let mock = start_with(|builder| builder.seed(seed)).await;
    assert_eq!(mock.get("/v1/store/orders").await.json(), json!([order]));
}

#[tokio::test]
async fn answers_head_as_get_without_the_body() {
    let mock = start().await;
    for path in [
        "/v1/pets",
        "/v1/pets/1",
        "/v1/pets/99",
        "/v1/store/orders",
        "/v1/nowhere",
    ] {
        let get = mock.get(path).await;
        let head = mock
            .request(Method::HEAD, path)
            .bearer_auth("enterprise-key");
        let head = reply(head).await;
        assert_eq!(
            (head.status, head.body.as_str()),
            (get.status, ""),
            "{path}"
        );
        for name in [
            "content-type",
            "link",
            "deprecation",
            "x-ratelimit-limit",
            "date",
        ] {
            assert_eq!(head.header(name), get.header(name), "{path} {name}");
        }
        if path != "/v1/nowhere" {
            assert_eq!(
                head.header("content-length"),
                get.body.len().to_string(),
                "{path}"
            );
        }
    }
}
