//! Tests of the handles on a running server.

use std::time::Duration;

use petstore_mock::{
    ChangeError, Fault, Key, KeyError, KeyUsage, MockServer, PetStatus, Plan, SeedPet, Snapshot,
    Window,
};
use serde_json::json;

use super::support::{Mock, NOW, start, start_with};

async fn names(mock: &Mock) -> Vec<String> {
    let pets = mock.get("/v1/pets?limit=100").await.json();
    pets.as_array()
        .unwrap()
        .iter()
        .map(|pet| pet["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The usage of all keys.
fn usages(mock: &Mock) -> Vec<KeyUsage> {
    mock.server
        .keys()
        .all()
        .iter()
        .filter_map(Key::usage)
        .collect()
}

#[tokio::test]
async fn pets_that_are_inserted_are_served_in_their_place() {
    let mock = start().await;
    let pets = mock.server.pets();
    pets.clear().unwrap();
    let rex = SeedPet::new("Rex", 7)
        .with_id(50)
        .with_status(PetStatus::Sold);
    assert_eq!(pets.insert(rex.clone()).unwrap().id, 50);
    assert_eq!(pets.insert(rex), Err(ChangeError::IdTaken(50)));
    assert_eq!(
        pets.insert(SeedPet::new("Tom", 7).with_id(40)).unwrap().id,
        40
    );
    assert_eq!(pets.insert(SeedPet::new("Kim", 7)).unwrap().id, 51);
    assert_eq!(names(&mock).await, ["Tom", "Rex", "Kim"]);
    let sold = mock.get("/v1/pets?status=sold").await.json();
    assert_eq!(
        sold,
        json!([{"id": 50, "name": "Rex", "categoryId": 7, "status": "sold"}])
    );
    pets.remove(50).unwrap();
    mock.get("/v1/pets/50")
        .await
        .expect_error(404, "pet_not_found");
    assert_eq!((pets.len(), pets.get(50), pets.all()[1].id), (2, None, 51));
}

#[tokio::test]
async fn orders_that_are_inserted_are_served() {
    let mock = start().await;
    mock.server.orders().insert(json!({"id": 1})).unwrap();
    assert_eq!(
        mock.server.orders().insert(json!(1)),
        Err(ChangeError::NotAnObject)
    );
    assert_eq!(
        mock.get("/v1/store/orders").await.json(),
        json!([{"id": 1}])
    );
    mock.server.orders().clear().unwrap();
    assert_eq!(mock.get("/v1/store/orders").await.json(), json!([]));
}

#[tokio::test]
async fn each_new_key_has_its_own_quotas() {
    let mock = start().await;
    let (one, other) = (mock.server.key(Plan::Free), mock.server.key(Plan::Pro));
    assert_ne!(*one, *other);
    assert_eq!(
        mock.get_as(&one, "/v1/pets").await.rate(),
        (60, 59, NOW + 50)
    );
    assert_eq!(
        mock.get_as(&other, "/v1/pets").await.rate(),
        (300, 299, NOW + 50)
    );
    one.remove();
    mock.get_as(&one, "/v1/pets")
        .await
        .expect_error(401, "unauthorized");
    assert_eq!((one.usage(), one.plan()), (None, None));
    assert!(!format!("{other:?} {:?}", mock.server).contains(&*other));
}

#[tokio::test]
async fn a_key_can_be_added_only_once_and_only_if_it_can_be_sent() {
    let mock = start().await;
    let keys = mock.server.keys();
    let defaults = u32::try_from(keys.all().len()).unwrap();
    assert_eq!(
        keys.insert("free-key", Plan::Pro).unwrap_err(),
        KeyError::Taken
    );
    assert_eq!(
        keys.insert("a b", Plan::Pro).unwrap_err(),
        KeyError::Unsendable
    );
    let next = format!("test-key-{}", defaults + 2);
    keys.insert(&next, Plan::Pro).unwrap();
    let fresh = mock.server.key(Plan::Free);
    assert_ne!(&*fresh, next);
    let numbers = keys.all();
    let numbers = numbers.iter().map(petstore_mock::Key::number);
    assert!(numbers.eq(1..=defaults + 2));
}

#[tokio::test]
async fn usage_matches_the_headers() {
    let mock = start().await;
    let key = mock.server.key(Plan::enterprise(2, 10));
    for _ in 0..3 {
        mock.get_as(&key, "/v1/pets").await;
    }
    let usage = key.usage().unwrap();
    let minute = (
        usage.minute.limit,
        usage.minute.used,
        usage.minute.remaining,
    );
    assert_eq!((minute, usage.day.used), ((2, 2, 0), 2));
    let resets_in = usage
        .minute
        .reset
        .duration_since(mock.server.clock().now())
        .unwrap();
    assert_eq!(resets_in, Duration::from_secs(50));
    assert_eq!(
        (usage.waits_until, usage.banned_until),
        (Some(usage.minute.reset), None)
    );
    assert_eq!(usages(&mock).pop(), Some(usage));
}

#[tokio::test]
async fn a_better_plan_takes_effect_immediately_and_causes_no_ban() {
    let mock = start().await;
    let key = mock.server.key(Plan::enterprise(1, 100));
    mock.get_as(&key, "/v1/pets").await;
    assert_eq!(mock.get_as(&key, "/v1/pets").await.status, 429);
    key.set_plan(Plan::enterprise(50, 100));
    let label = key.usage().unwrap().label;
    assert_eq!(label.plan(), Plan::enterprise(50, 100), "{label}");
    for left in (20..49).rev() {
        assert_eq!(mock.get_as(&key, "/v1/pets").await.rate().1, left);
    }
}

#[tokio::test]
async fn a_key_can_be_banned_and_pardoned() {
    let mock = start().await;
    let key = mock.server.keys().get("pro-key").unwrap();
    key.ban(Duration::from_secs(90));
    let banned = mock.get_as("pro-key", "/v1/pets").await;
    banned.expect_error(429, "key_banned");
    assert_eq!(banned.header("retry-after"), "90");
    mock.advance(89);
    assert!(key.usage().unwrap().banned_until.is_some());
    key.unban();
    assert_eq!(mock.get_as("pro-key", "/v1/pets").await.status, 200);
    key.ban(Duration::MAX);
    assert!(key.usage().unwrap().banned_until.is_some());
}

#[tokio::test]
async fn a_reset_restores_the_initial_state_and_clears_the_journal() {
    let down = json!({"operation": "getPet", "effect": {"status": {"status": 503}}});
    let down: Fault = serde_json::from_value(down).unwrap();
    let mock = start_with(|builder| builder.fault(down)).await;
    let before = mock.server.snapshot();
    let key = mock.server.key(Plan::Free);
    mock.server.keys().get("free-key").unwrap().remove();
    mock.server
        .keys()
        .get("pro-key")
        .unwrap()
        .set_plan(Plan::Free);
    mock.get_as("business-key", "/v1/pets").await;
    mock.server.pets().clear().unwrap();
    mock.server.orders().insert(json!({})).unwrap();
    mock.server.faults().clear();
    mock.server.faults().on_all().status(500).detach();
    assert_eq!(mock.get("/v1/pets").await.status, 500);
    mock.server.reset().unwrap();
    assert_eq!(
        (mock.server.snapshot(), mock.server.requests(..).len()),
        (before, 0)
    );
    assert_eq!(mock.get("/v1/pets/1").await.status, 503);
    mock.get_as(&key, "/v1/pets")
        .await
        .expect_error(401, "unauthorized");
    assert_eq!(mock.get_as("free-key", "/v1/pets").await.rate().1, 59);
    assert_eq!(
        mock.server
            .pets()
            .insert(SeedPet::new("Rex", 7))
            .unwrap()
            .id,
        26
    );
}

#[tokio::test]
async fn a_snapshot_holds_everything_but_the_keys() {
    for window in [Window::Fixed, Window::Sliding] {
        let mock = start_with(|builder| builder.window(window).key("s3cr3t", Plan::Free)).await;
        for _ in 0..65 {
            mock.get_as("s3cr3t", "/v1/pets").await;
        }
        mock.server.pets().remove(25).unwrap();
        let text = serde_json::to_string(&mock.server.snapshot()).unwrap();
        assert!(!text.contains("s3cr3t"), "{text}");
        let snapshot: Snapshot = serde_json::from_str(&text).unwrap();
        assert_eq!(snapshot, mock.server.snapshot());

        let other = start_with(|builder| builder.window(window).key("s3cr3t", Plan::Free)).await;
        other.server.restore(&snapshot).unwrap();
        assert_eq!(other.server.snapshot(), snapshot);
        assert_eq!(usages(&other), usages(&mock));
        assert_eq!(other.get_as("s3cr3t", "/v1/pets").await.status, 429);
        assert_eq!(
            other
                .server
                .pets()
                .insert(SeedPet::new("Rex", 7))
                .unwrap()
                .id,
            26
        );
    }
}

#[tokio::test]
async fn a_snapshot_taken_at_the_end_of_the_clock_can_be_restored() {
    let mock = start().await;
    mock.server.clock().advance(Duration::MAX);
    for _ in 0..80 {
        mock.get_as("free-key", "/v1/pets").await;
    }
    mock.server
        .keys()
        .get("pro-key")
        .unwrap()
        .ban(Duration::from_secs(60));
    let text = serde_json::to_string(&mock.server.snapshot()).unwrap();
    mock.server
        .restore(&serde_json::from_str::<Snapshot>(&text).unwrap())
        .unwrap();
}

#[tokio::test]
async fn an_invalid_snapshot_is_refused_and_changes_nothing() {
    let mock = start().await;
    let good = serde_json::to_value(mock.server.snapshot()).unwrap();
    let mut bad = Vec::new();
    let mut with = |path: &str, value| {
        let mut text = good.clone();
        *text.pointer_mut(path).unwrap() = value;
        bad.push(text);
    };
    with("/version", json!(1));
    with("/keys/0/minute", json!([[120, 1], [60, 1]]));
    with("/keys/0/minute", json!([[253_402_300_800_u64, 1]]));
    for text in bad {
        let snapshot: Snapshot = serde_json::from_value(text).unwrap();
        let error = mock.server.restore(&snapshot).unwrap_err();
        assert!(matches!(error, ChangeError::Snapshot(_)), "{error}");
    }
    assert_eq!(serde_json::to_value(mock.server.snapshot()).unwrap(), good);
    let sliding = start_with(|builder| builder.window(Window::Sliding)).await;
    sliding.get_as("free-key", "/v1/pets").await;
    assert!(mock.server.restore(&sliding.server.snapshot()).is_err());
    let twins = good.to_string().replace("\"id\":1,", "\"id\":2,");
    for text in [&twins, r#"{"version": 1}"#, "[]", r#"{"nonsense": 1}"#] {
        assert!(serde_json::from_str::<Snapshot>(text).is_err());
    }
}

#[tokio::test]
async fn handles_outlive_the_server_without_harm() {
    let server = MockServer::start().await;
    let key = server.key(Plan::Free);
    drop(server);
    key.ban(Duration::from_secs(1));
    assert_eq!(key.plan(), Some(Plan::Free));
}

#[tokio::test]
async fn no_key_that_was_added_later_is_shown() {
    let mock = start().await;
    let added = mock.server.keys().insert("my-s3cr3t", Plan::Free).unwrap();
    for key in [added, mock.server.key(Plan::Free)] {
        let target = format!("/v1/pets?{}", &*key);
        mock.get_as(&key, &target).await;
        let shown = format!("{:?} {:?}", mock.server.requests(..), key.usage());
        assert!(!shown.contains(&*key), "{shown}");
    }
}
