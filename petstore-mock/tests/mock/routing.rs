//! Tests of unknown paths and methods, and of parameters.

use reqwest::Method;

use super::support::{reply, start};

#[tokio::test]
async fn any_other_method_is_405_with_and_without_a_key() {
    let mock = start().await;
    for line in [
        "PUT /v1/pets",
        "OPTIONS /v1/pets",
        "get /v1/pets",
        "POST /v1/pets/1",
    ] {
        // A key is not needed to learn which paths and methods exist.
        let (method, path) = line.split_once(' ').unwrap();
        let request = mock.request(method.parse().unwrap(), path);
        let with_key = reply(request.bearer_auth("pro-key")).await;
        for refused in [with_key, mock.send(line, "").await] {
            refused.expect_error(405, "method_not_allowed");
            // A POST is not the deprecated operation.
            assert_eq!(refused.header("deprecation"), "-");
        }
    }
}

#[tokio::test]
async fn unknown_paths_are_404_with_and_without_a_key_and_list_the_operations() {
    let mock = start().await;
    for (path, has_rate, hint) in [
        ("/v1", true, "/_mock"),
        ("/v1/pets/", true, "no trailing slash"),
        ("/v1//pets", true, ""),
        ("/v1%2Fpets", false, ""),
        ("/v1/pet/7", true, "GET /v1/pets/{petId}"),
        ("/v1/nowhere", true, ": the operations are"),
        ("/v1x/pets", false, ""),
        (
            "/pets",
            false,
            "the operations are GET /v1/pets, POST /v1/pets",
        ),
        ("/", false, "/_mock"),
        ("/_mock/history", false, ": GET /_mock/admin.yaml lists"),
    ] {
        let without_key = mock.send(&format!("GET {path}"), "").await;
        for unknown in [mock.get(path).await, without_key] {
            unknown.expect_error(404, "route_not_found");
            let message = unknown.message();
            assert!(message.contains(hint), "{path}: {message}");
            assert_eq!(
                unknown.header("x-ratelimit-reset") != "-",
                has_rate,
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn a_path_is_the_same_with_percent_encoded_letters() {
    let mock = start().await;
    for (path, is_deprecated) in [("/%76%31/%70ets", false), ("/v1/pets/%31", true)] {
        let reply = mock.get_as("free-key", path).await;
        assert_eq!((reply.status, reply.rate().0), (200, 60), "{path}");
        assert_eq!(reply.header("deprecation") != "-", is_deprecated, "{path}");
        let stranger = mock.get_as("no-key", path).await;
        stranger.expect_error(401, "unauthorized");
    }
}

#[tokio::test]
async fn answers_request_targets_other_than_paths() {
    let mock = start().await;
    for (line, status, code) in [
        ("OPTIONS *", 404, "route_not_found"),
        ("CONNECT x:80", 404, "route_not_found"),
        ("GET http://elsewhere/v1/pets", 401, "unauthorized"),
    ] {
        let head = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let reply = mock.raw(head.as_bytes()).await;
        reply.expect_error(status, code);
    }
}

#[tokio::test]
async fn bad_query_parameters_are_400_and_are_named() {
    let mock = start().await;
    for (query, says) in [
        ("limit=0", "`limit` is \"0\""),
        ("limit=101", "from 1 to 100"),
        ("limit", "`limit`"),
        // A number as JSON writes it.
        ("limit=05", "from 1 to 100"),
        ("limit=+5", "from 1 to 100"),
        ("limit=99999999999999999999", "`limit`"),
        ("limit&%6cimit=1", "more than once"),
        ("status=Sold", "available, pending, sold"),
        ("status=", "available, pending, sold"),
        ("status=sold&status=sold", "more than once"),
        ("status=%1b%5b31m", "\\u{1b}[31m"),
    ] {
        let reply = mock.get(&format!("/v1/pets?{query}")).await;
        reply.expect_error(400, "invalid_parameter");
        let message = reply.message();
        assert!(message.contains(says), "{query}: {message}");
    }
    // The key comes before the parameters.
    let stranger = reply(mock.request(Method::GET, "/v1/pets?limit=0")).await;
    stranger.expect_error(401, "unauthorized");
    // Unknown parameters are ignored, broken or not.
    for query in ["&&", "%zz=1", "x=%ff", "Limit=0", "status=s%6Fld"] {
        let reply = mock.get(&format!("/v1/pets?{query}")).await;
        assert_eq!(reply.status, 200, "{query}");
    }
}
