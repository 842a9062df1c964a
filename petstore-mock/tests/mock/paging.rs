//! Tests of pages and their links.

use super::support::{Mock, Reply, start, start_with};

fn ids(reply: &Reply) -> Vec<i64> {
    let pets = reply.json();
    let pets = pets.as_array().unwrap();
    pets.iter().map(|pet| pet["id"].as_i64().unwrap()).collect()
}

/// Returns the target of the link to the next page.
fn next(reply: &Reply) -> Option<String> {
    let link = reply.header("link");
    if link == "-" {
        return None;
    }
    let target = link.strip_prefix('<')?.strip_suffix(">; rel=\"next\"");
    Some(target.expect(link).to_owned())
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
async fn the_last_page_has_no_link() {
    let mock = start().await;
    for path in [
        "/v1/pets?limit=25",
        "/v1/pets?limit=100",
        "/v1/pets?status=sold",
    ] {
        assert_eq!(mock.get(path).await.header("link"), "-", "{path}");
    }
    let by_fives = walk(&mock, "/v1/pets?limit=5").await;
    assert_eq!(by_fives.len(), 5, "no empty page at the end");
}

#[tokio::test]
async fn the_link_keeps_limit_and_status() {
    let mock = start().await;
    let reply = mock.get("/v1/pets?status=available&limit=3&x=y").await;
    let target = next(&reply).unwrap();
    assert!(
        target.starts_with("/v1/pets?limit=3&status=available&cursor="),
        "{target}"
    );
    let pages = walk(&mock, "/v1/pets?status=available&limit=3").await;
    let all = ids(&mock.get("/v1/pets?status=available&limit=100").await);
    assert_eq!(pages.concat(), all);
    let default = mock.get("/v1/pets").await;
    assert!(
        next(&default)
            .unwrap()
            .starts_with("/v1/pets?limit=20&cursor=")
    );
}

#[tokio::test]
async fn an_invalid_cursor_is_400() {
    let mock = start().await;
    let target = next(&mock.get("/v1/pets").await).unwrap();
    let (_, cursor) = target.rsplit_once('=').unwrap();
    let changed = cursor.chars().rev().collect::<String>();
    for wrong in [&changed, "20", "", "0000", &cursor[1..]] {
        let reply = mock.get(&format!("/v1/pets?cursor={wrong}")).await;
        reply.expect_error(400, "invalid_parameter");
    }
    let twice = mock
        .get(&format!("/v1/pets?cursor={cursor}&cursor={cursor}"))
        .await;
    twice.expect_error(400, "invalid_parameter");
}

#[tokio::test]
async fn without_paging_there_is_no_link_and_no_cursor() {
    let mock = start_with(|builder| builder.paging(false)).await;
    let reply = mock.get("/v1/pets?limit=3&cursor=whatever").await;
    assert_eq!((ids(&reply), reply.header("link")), (vec![1, 2, 3], "-"));
}
