//! Tests of unknown paths and methods, and of parameters.

use reqwest::Method;

use super::support::{Mock, Reply, reply, start};

#[tokio::test]
async fn any_other_method_is_405_with_and_without_a_key() {
    let mock = start().await;
    for method in ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get"] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        // A key is not needed to learn which paths and methods exist.
        for request in [
            mock.request(method.clone(), "/v1/pets"),
            mock.request(method, "/v1/pets")
                .bearer_auth("enterprise-key"),
        ] {
            reply(request).await.expect_error(405, "method_not_allowed");
        }
    }
    let post = reply(mock.request(Method::POST, "/v1/pets/1")).await;
    post.expect_error(405, "method_not_allowed");
    assert_eq!(
        post.header("deprecation"),
        "-",
        "a POST is not the deprecated operation"
    );
}

#[tokio::test]
async fn unknown_paths_are_404_with_and_without_a_key() {
    let mock = start().await;
    for (path, has_rate) in [
        ("/v1", true),
        ("/v1/", true),
        ("/v1/pets/", true),
        ("/v1/pets/1/", true),
        ("/v1/pets/1/photos", true),
        ("/v1/store", true),
        ("/v1//pets", true),
        ("/v1/Pets", true),
        ("/v1x/pets", false),
        ("/v2/pets", false),
        ("/", false),
        ("/_mocks", false),
        ("/_mock/nowhere", false),
    ] {
        for reply in [
            mock.get(path).await,
            reply(mock.request(Method::GET, path)).await,
        ] {
            reply.expect_error(404, "route_not_found");
            assert_eq!(reply.header("x-ratelimit-reset") != "-", has_rate, "{path}");
        }
    }
    let slash = mock.get("/v1/pets/").await;
    assert!(
        slash.message().contains("no trailing slash"),
        "{}",
        slash.message()
    );
}

#[tokio::test]
async fn a_path_is_the_same_with_percent_encoded_letters() {
    let mock = start().await;
    for path in [
        "/v1/%70ets",
        "/%76%31/pets",
        "/v1/pets/%31",
        "/v1/%70et%73/1",
        "/v1/st%6Fre/orders",
    ] {
        let reply = mock.get_as("free-key", path).await;
        assert_eq!((reply.status, reply.rate().0), (200, 60), "{path}");
    }
    mock.get("/v1/%70ets/1")
        .await
        .header("deprecation")
        .strip_prefix('@')
        .unwrap();
    mock.get("/v1%2Fpets")
        .await
        .expect_error(404, "route_not_found");
    mock.get("/v1/pets%2F1")
        .await
        .expect_error(404, "route_not_found");
}

#[tokio::test]
async fn answers_request_targets_other_than_paths() {
    let mock = start().await;
    let rest = b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    for (line, status, says) in [
        (&b"OPTIONS *"[..], 404, "unknown path OPTIONS *: "),
        (b"CONNECT x:80", 404, "unknown path CONNECT x:80: "),
        (
            b"GET http://elsewhere/v1/pets",
            401,
            "the API key is missing",
        ),
    ] {
        let request = [line, &rest[..]].concat();
        let reply = mock.raw(&request).await;
        assert_eq!(reply.error().0, status, "{}", line.escape_ascii());
        assert!(reply.message().starts_with(says), "{}", reply.message());
        assert!(!reply.body.contains('\x1b'));
    }
}

/// Sends a GET with this number of header fields.
async fn with_fields(mock: &Mock, path: &str, fields: usize) -> Reply {
    let more: String = (3..fields)
        .map(|number| format!("x-{number}: 1\r\n"))
        .collect();
    let head = "Host: x\r\nConnection: close\r\nAuthorization: Bearer free-key";
    mock.raw(format!("GET {path} HTTP/1.1\r\n{head}\r\n{more}\r\n").as_bytes())
        .await
}

#[tokio::test]
async fn too_many_header_fields_are_431_before_anything_else() {
    let mock = start().await;
    assert_eq!(with_fields(&mock, "/v1/pets", 100).await.status, 200);
    for path in ["/v1/pets", "/v1/nowhere", "/", "/_mock/clock"] {
        let reply = with_fields(&mock, path, 101).await;
        assert_eq!((reply.status, &*reply.body), (431, ""), "{path}");
    }
    assert_eq!(mock.get_as("free-key", "/v1/pets").await.rate().1, 58);
}

#[tokio::test]
async fn a_long_target_is_answered_like_a_short_one() {
    let mock = start().await;
    let long = "x".repeat(65_000);
    mock.get(&format!("/v1/{long}"))
        .await
        .expect_error(404, "route_not_found");
    mock.get(&format!("/v1/pets/{long}"))
        .await
        .expect_error(404, "pet_not_found");
    mock.get(&format!("/v1/pets?limit={long}"))
        .await
        .expect_error(400, "invalid_parameter");
    assert_eq!(
        mock.get(&format!("/v1/pets?other={long}")).await.status,
        200
    );
}

#[tokio::test]
async fn bad_query_parameters_are_400_and_are_named() {
    let mock = start().await;
    for (query, says) in [
        ("limit=0", "`limit` is \"0\""),
        ("limit=101", "from 1 to 100"),
        ("limit=ten", "\"ten\""),
        ("limit=", "`limit`"),
        ("limit", "`limit`"),
        ("limit=1e1", "from 1 to 100"),
        ("limit=%D9%A5", "from 1 to 100"),
        ("limit=99999999999999999999", "`limit`"),
        ("limit=5&limit=5", "more than once"),
        ("limit&%6cimit=1", "more than once"),
        ("limit=%zz", "\"%zz\""),
        ("status=lost", "available, pending, sold"),
        ("status=Sold", "available, pending, sold"),
        ("status=", "available, pending, sold"),
        ("status=sold,pending", "available, pending, sold"),
        ("status=sold&status=sold", "more than once"),
        ("status=%1b%5b31m", "\\u{1b}[31m"),
        ("cursor=20", "`cursor`"),
        ("cursor=", "`cursor`"),
    ] {
        let reply = mock.get(&format!("/v1/pets?{query}")).await;
        assert_eq!(reply.status, 400, "{query}");
        reply.expect_error(400, "invalid_parameter");
        assert!(
            reply.message().contains(says),
            "{query}: {}",
            reply.message()
        );
    }
    let long = mock
        .get(&format!("/v1/pets?status={}", "x".repeat(5_000)))
        .await;
    assert!(long.body.len() < 300, "{}", long.body);
}

#[tokio::test]
async fn unknown_query_parameters_are_ignored_broken_or_not() {
    let mock = start().await;
    for query in [
        "",
        "&&",
        "page=2",
        "%zz=1",
        "x=%ff",
        "Limit=0",
        "limit=%35",
        "status=s%6Fld",
    ] {
        assert_eq!(
            mock.get(&format!("/v1/pets?{query}")).await.status,
            200,
            "{query}"
        );
    }
}

#[tokio::test]
async fn the_key_comes_before_the_parameters() {
    let mock = start().await;
    let reply = reply(mock.request(Method::GET, "/v1/pets?limit=0")).await;
    reply.expect_error(401, "unauthorized");
}

#[tokio::test]
async fn an_unknown_path_gets_a_suggestion() {
    let mock = start().await;
    for (path, hint) in [
        ("/pets", " did you mean /v1/pets?"),
        ("/v1/pet/7", " did you mean /v1/pets/{petId}?"),
        ("/v1/store/order", " did you mean /v1/store/orders?"),
        ("/v1/nowhere", ": the operations are"),
        ("/_mock/history", ": GET /_mock/admin.yaml lists"),
    ] {
        let reply = mock.get(path).await;
        reply.expect_error(404, "route_not_found");
        assert!(reply.message().contains(hint), "{}", reply.message());
    }
}
