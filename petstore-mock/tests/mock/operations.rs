//! Tests of the four operations in the normal case, of pages, and of `HEAD`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use petstore_mock::{PetStatus, Seed, SeedPet};
use reqwest::Method;
use serde_json::json;

use super::support::{Mock, REX, Reply, reply, start, start_with};

fn ids(reply: &Reply) -> Vec<i64> {
    let pets = reply.json();
    let pets = pets.as_array().unwrap();
    pets.iter().map(|pet| pet["id"].as_i64().unwrap()).collect()
}

/// Returns the target of the link to the next page.
fn next(reply: &Reply) -> Option<String> {
    let target = reply.header("link").strip_prefix('<')?;
    Some(target.strip_suffix(">; rel=\"next\"").unwrap().to_owned())
}

/// Follows the links.
async fn walk(mock: &Mock, first: &str) -> Vec<Vec<i64>> {
    let mut pages = Vec::new();
    let mut path = Some(first.to_owned());
    while let Some(here) = path {
        let reply = mock.get(&here).await;
        assert_eq!(reply.status, 200);
        pages.push(ids(&reply));
        path = next(&reply);
    }
    pages
}

#[tokio::test]
async fn lists_as_many_pets_as_asked_and_of_the_status_asked_for() {
    let mock = start().await;
    for (query, count, link) in [
        ("", 20, "/v1/pets?limit=20&cursor="),
        ("?limit=1", 1, "/v1/pets?limit=1&cursor="),
        ("?limit=25", 25, ""),
        ("?limit=100", 25, ""),
        (
            "?status=available&limit=3&x=y",
            3,
            "/v1/pets?limit=3&status=available&cursor=",
        ),
    ] {
        let page = mock.get(&format!("/v1/pets{query}")).await;
        assert_eq!(ids(&page).len(), count, "{query}");
        let next = next(&page).unwrap_or_default();
        assert!(
            next.starts_with(link) && next.is_empty() == link.is_empty(),
            "{next}"
        );
    }
    let all = mock.get("/v1/pets?limit=100").await.json();
    let first = json!({"id": 1, "name": "Bramble", "categoryId": 1, "status": "available"});
    // A missing status is omitted.
    let sixth = json!({"id": 6, "name": "Thistle", "categoryId": 4});
    assert_eq!((&all[0], &all[5]), (&first, &sixth));
    for status in ["available", "pending", "sold"] {
        let of_status = all.as_array().unwrap().iter();
        let of_status = of_status.filter(|pet| pet["status"] == status);
        let of_status: Vec<_> = of_status.map(|pet| pet["id"].as_i64().unwrap()).collect();
        let pages = walk(&mock, &format!("/v1/pets?status={status}&limit=2")).await;
        assert_eq!(pages.concat(), of_status);
    }
}

#[tokio::test]
async fn an_invalid_cursor_is_400() {
    let mock = start().await;
    let target = next(&mock.get("/v1/pets").await).unwrap();
    let (_, cursor) = target.rsplit_once('=').unwrap();
    let changed = cursor.chars().rev().collect::<String>();
    let twice = format!("{cursor}&cursor={cursor}");
    for wrong in [&changed, "20", &twice] {
        let reply = mock.get(&format!("/v1/pets?cursor={wrong}")).await;
        reply.expect_error(400, "invalid_parameter");
    }
    let without = start_with(|builder| builder.paging(false)).await;
    let page = without.get("/v1/pets?limit=3&cursor=whatever").await;
    assert_eq!((ids(&page), page.header("link")), (vec![1, 2, 3], "-"));
}

#[tokio::test]
async fn adds_a_pet_and_finds_it_again() {
    let mock = start().await;
    let body = r#"{"name": "Rex", "categoryId": 7, "status": "pending", "x": 1}"#;
    let added = mock.post(body).await;
    let rex = json!({"id": 26, "name": "Rex", "categoryId": 7, "status": "pending"});
    assert_eq!((added.status, added.json()), (201, rex.clone()));
    assert_eq!(added.header("location"), "/v1/pets/26");
    assert_eq!(mock.get("/v1/pets/26").await.json(), rex);
    let nameless = mock.post(r#"{"name": "", "categoryId": 7}"#).await;
    nameless.expect_status(201);
}

#[tokio::test]
async fn a_pet_that_is_removed_at_once_was_created_nevertheless() {
    let mock = Arc::new(start().await);
    let is_done = Arc::new(AtomicBool::new(false));
    let clearing = thread::spawn({
        let (mock, is_done) = (Arc::clone(&mock), Arc::clone(&is_done));
        move || {
            while !is_done.load(Ordering::Relaxed) {
                mock.server.pets().clear().unwrap();
            }
        }
    });
    for _ in 0..300 {
        mock.post(REX).await.expect_status(201);
    }
    is_done.store(true, Ordering::Relaxed);
    clearing.join().unwrap();
}

#[tokio::test]
async fn new_pets_get_the_default_status() {
    let mock = start_with(|builder| builder.default_status(PetStatus::Pending)).await;
    assert_eq!(mock.post(REX).await.json()["status"], "pending");
    let sold = mock.post(r#"{"name": "Rex", "categoryId": 7, "status": "sold"}"#);
    assert_eq!(sold.await.json()["status"], "sold");
    // A seeded pet without a status keeps none.
    assert_eq!(mock.get("/v1/pets/6").await.json().get("status"), None);
}

#[tokio::test]
async fn unknown_and_invalid_ids_are_404() {
    let mock = start().await;
    for (id, shown) in [
        ("26", "26"),
        ("9223372036854775808", "\"9223372036854775808\""),
        ("1.0", "\"1.0\""),
        ("%ff", "\"%ff\""),
        ("%1b%5B31m", "\"\\u{1b}[31m\""),
        ("%2F1", "\"/1\""),
    ] {
        let reply = mock.get(&format!("/v1/pets/{id}")).await;
        reply.expect_error(404, "pet_not_found");
        let says = format!("no pet has the id {shown}");
        assert!(reply.message().starts_with(&says), "{}", reply.message());
    }
}

#[tokio::test]
async fn finds_pets_with_the_outermost_ids() {
    let far = |id| SeedPet::new("far out", 1).with_id(id);
    let seed = Seed::none().pet(far(i64::MIN)).pet(far(i64::MAX));
    let mock = start_with(|builder| builder.seed(seed)).await;
    for id in [i64::MIN, i64::MAX] {
        assert_eq!(mock.get(&format!("/v1/pets/{id}")).await.json()["id"], id);
    }
    let full = mock.post(REX).await;
    full.expect_error(500, "internal_error");
}

#[tokio::test]
async fn lists_the_orders_it_was_seeded_with() {
    let order = json!({"any": {"thing": [1, null]}});
    let seed = Seed::none().order(order.clone());
    let mock = start_with(|builder| builder.seed(seed)).await;
    assert_eq!(mock.get("/v1/store/orders").await.json(), json!([order]));
}

#[tokio::test]
async fn answers_head_as_get_without_the_body() {
    let mock = start().await;
    for path in ["/v1/pets", "/v1/pets/99"] {
        let get = mock.get(path).await;
        let head = mock
            .request(Method::HEAD, path)
            .bearer_auth("enterprise-key");
        let head = reply(head).await;
        assert_eq!((head.status, &*head.body), (get.status, ""), "{path}");
        for name in ["content-type", "link", "deprecation", "date"] {
            assert_eq!(head.header(name), get.header(name), "{path} {name}");
        }
        assert_eq!(head.header("content-length"), get.body.len().to_string());
    }
}
