//! Tests of the handles on a running server.

use petstore_mock::{ChangeError, Fault, KeyError, MockServer, PetStatus, Plan, SeedPet};
use serde_json::json;

use super::support::{MINUTE_ENDS, start, start_with};

#[tokio::test]
async fn pets_and_orders_that_are_inserted_are_served() {
    let mock = start().await;
    let pets = mock.server.pets();
    pets.clear().unwrap();
    let rex = SeedPet::new("Rex", 7).with_id(50);
    let rex = rex.with_status(PetStatus::Sold);
    let tom = SeedPet::new("Tom", 7).with_id(40);
    assert_eq!(pets.insert(rex.clone()).unwrap().id, 50);
    assert_eq!(pets.insert(rex), Err(ChangeError::IdTaken(50)));
    assert_eq!(pets.insert(tom).unwrap().id, 40);
    assert_eq!(pets.insert(SeedPet::new("Kim", 7)).unwrap().id, 51);
    let listed = json!([
        {"id": 40, "name": "Tom", "categoryId": 7},
        {"id": 50, "name": "Rex", "categoryId": 7, "status": "sold"},
        {"id": 51, "name": "Kim", "categoryId": 7},
    ]);
    assert_eq!(mock.get("/v1/pets").await.json(), listed);
    pets.remove(50).unwrap();
    assert_eq!((pets.len(), pets.get(50), pets.all()[1].id), (2, None, 51));
    let orders = mock.server.orders();
    orders.insert(json!({"id": 1})).unwrap();
    assert_eq!(orders.insert(json!(1)), Err(ChangeError::NotAnObject));
    assert_eq!(mock.get("/v1/store/orders").await.body, r#"[{"id":1}]"#);
}

#[tokio::test]
async fn each_new_key_has_its_own_quotas_and_is_never_shown() {
    let mock = start().await;
    let keys = mock.server.keys();
    let given = keys.insert_named("lib", "my-s3cr3t", Plan::Pro).unwrap();
    let free = mock.server.key(Plan::Free);
    for (key, limit, label) in [(&given, 300, "#5 lib (pro)"), (&free, 60, "#6 ")] {
        let answer = mock.get_as(key, "/v1/pets").await;
        assert_eq!(answer.rate(), (limit, limit - 1, MINUTE_ENDS));
        let usage = key.usage().unwrap();
        assert!(usage.label.to_string().starts_with(label), "{usage:?}");
        let shown = format!("{usage:?} {key:?} {:?}", mock.server);
        assert!(!shown.contains(&**key), "{shown}");
    }
    free.remove();
    let unknown = mock.get_as(&free, "/v1/pets").await;
    unknown.expect_error(401, "unauthorized");
    assert_eq!((free.usage(), free.plan()), (None, None));
}

#[tokio::test]
async fn a_key_can_be_added_only_once_and_only_if_it_can_be_sent() {
    let mock = start().await;
    let keys = mock.server.keys();
    for (key, expected) in [("free-key", KeyError::Taken), ("a b", KeyError::Unsendable)] {
        assert_eq!(keys.insert(key, Plan::Pro).unwrap_err(), expected);
    }
    for name in ["", "a\n::error::b", "…cdef", &"x".repeat(101)] {
        let wrong = keys.insert_named(name, "k", Plan::Pro);
        assert_eq!(wrong.unwrap_err(), KeyError::Name, "{name}");
        let builder = MockServer::builder().named_key(name, "k", Plan::Pro);
        let error = builder.start().await.unwrap_err().to_string();
        assert!(error.contains("1 to 100 characters"), "{error}");
    }
    let next = format!("test-key-{}", keys.all().len() + 2);
    keys.insert(&next, Plan::Pro).unwrap();
    assert_ne!(&*mock.server.key(Plan::Free), next);
}

#[tokio::test]
async fn a_better_plan_takes_effect_immediately_and_causes_no_ban() {
    let mock = start().await;
    let key = mock.server.key(Plan::enterprise(1, 100));
    mock.get_as(&key, "/v1/pets").await;
    assert_eq!(mock.get_as(&key, "/v1/pets").await.status, 429);
    key.set_plan(Plan::enterprise(50, 100));
    for left in (20..49).rev() {
        assert_eq!(mock.get_as(&key, "/v1/pets").await.rate().1, left);
    }
}

#[tokio::test]
async fn a_reset_restores_the_initial_state_and_clears_the_journal() {
    let down = json!({"operation": "getPet", "effect": {"status": 503}});
    let down: Fault = serde_json::from_value(down).unwrap();
    let mock = start_with(|builder| builder.fault(down)).await;
    assert_eq!(mock.get("/v1/pets/1").await.status, 503);
    let server = &mock.server;
    server.reset().unwrap();
    let before = server.snapshot();
    let key = server.key(Plan::Free);
    server.keys().get("free-key").unwrap().remove();
    server.keys().get("pro-key").unwrap().set_plan(Plan::Free);
    mock.get_as("business-key", "/v1/pets").await;
    server.pets().clear().unwrap();
    server.orders().insert(json!({})).unwrap();
    server.faults().clear();
    server.faults().on(..).status(500).detach();
    assert_eq!(mock.get("/v1/pets").await.status, 500);
    server.reset().unwrap();
    assert_eq!((server.snapshot(), server.requests(..).len()), (before, 0));
    assert_eq!(mock.get("/v1/pets/1").await.status, 503);
    assert_eq!(mock.get_as(&key, "/v1/pets").await.status, 401);
}
