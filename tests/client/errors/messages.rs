//! A snapshot of the message of each kind of error.

use std::time::Duration;

use petstore_client::http::Method;
use petstore_client::{Client, Error, RequestOptions};

use crate::client::kit::{DATE, answer, client, create_error, list_error, list_with, once, serve};
use crate::client::wire::{Act, Wire};

fn page(errors: &[Error]) -> String {
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    errors.join("\n\n")
}

#[tokio::test(start_paused = true)]
async fn what_the_service_answers() {
    let unauthorized = r#"{"code":"unauthorized","message":"unknown key","status":401}"#;
    let invalid = r#"{"code":"invalid_body","message":"`name` is missing"}"#;
    let moved = [("Location", "https://login.example/")];
    let errors = vec![
        list_error(answer(401, &[], unauthorized)).await,
        create_error(answer(400, &[], invalid)).await,
        list_error(answer(404, &[], "")).await,
        list_error(answer(302, &moved, "")).await,
        create_error(answer(502, &[], "<html><h1>Bad Gateway</h1></html>")).await,
        list_error(answer(599, &[], "")).await,
    ];
    insta::assert_snapshot!(page(&errors), @r#"
    listPets failed: the service answered 401 Unauthorized (unauthorized): unknown key

    createPet failed: the service answered 400 Bad Request (invalid_body): `name` is missing

    listPets failed: the service answered 404 Not Found; check the identifier and the base URL, version segment included

    listPets failed: the service answered 302 Found; it points to https://login.example/; redirects are not followed; check the base URL

    createPet failed: the service answered 502 Bad Gateway with an HTML page; the request may have been processed: check before you retry

    listPets failed: the service answered 599; try again later
    "#);
}

#[tokio::test(start_paused = true)]
async fn what_holds_a_call_back() {
    let refused = async |headers, options| {
        let (_server, client) = serve(vec![answer(429, headers, "")]);
        list_with(&client, &options).await.unwrap_err()
    };
    let half_a_minute = [("Date", DATE), ("Retry-After", "30")];
    let day = [
        ("Date", DATE),
        ("Retry-After", "57600"),
        ("X-RateLimit-Limit", "1000"),
        ("X-RateLimit-Remaining", "0"),
        ("X-RateLimit-Reset", "1800057600"),
    ];
    let hasty = RequestOptions::new().max_wait(Duration::from_secs(20));
    let errors = vec![
        refused(&half_a_minute, once()).await,
        refused(&half_a_minute, hasty.clone()).await,
        refused(&day, hasty).await,
    ];
    insta::assert_snapshot!(page(&errors), @r#"
    listPets failed: a rate limit blocks requests until Fri, 15 Jan 2027 08:00:30 GMT (another 30 s)

    listPets failed: a rate limit blocks requests until Fri, 15 Jan 2027 08:00:30 GMT (another 30 s), which is longer than this call may still wait (20 s)

    listPets failed: the day's quota blocks requests until Sat, 16 Jan 2027 00:00:00 GMT (another 16 h), which is longer than this call may still wait (20 s)
    "#);
}

#[tokio::test(start_paused = true)]
async fn what_happens_on_the_way() {
    let options = RequestOptions::new().timeout(Duration::from_secs(40));
    let server = Wire::start(|_| Act::Stall(Vec::new()));
    let nowhere = client("http://127.0.0.1:1/v1");
    let stalling = client(&server.base());
    let cut = b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n{".to_vec();
    let seven = r#"[{"id":1,"name":"a","categoryId":"seven"}]"#;
    let errors = vec![
        list_with(&nowhere, &once()).await.unwrap_err(),
        list_error(Act::Stall(Vec::new())).await,
        create_error(Act::Stall(Vec::new())).await,
        list_with(&stalling, &options).await.unwrap_err(),
        create_error(Act::Cut(cut)).await,
        list_error(Act::Cut(b"SSH-2.0-OpenSSH_9.6\r\n".to_vec())).await,
        list_error(answer(200, &[], seven)).await,
        list_error(answer(200, &[], "<html>Hello</html>")).await,
        create_error(answer(204, &[], "")).await,
    ];
    insta::assert_snapshot!(page(&errors), @r#"
    listPets failed: no connection to http://127.0.0.1:1: connection refused; check the base URL, the network, and that the service runs

    listPets failed: timed out after 30 s: no complete response; try again later

    createPet failed: timed out after 30 s: no complete response; the request may have been processed: check before you retry

    listPets failed: timed out after 40 s: the call took too long, with its waits; try again later (after 2 attempts)

    createPet failed: the response is cut off: the service closed the connection; the request may have been processed: check before you retry

    listPets failed: malformed response: invalid HTTP version parsed; check the base URL, or try again later

    listPets failed: the response 200 could not be read: at `[0].categoryId`: invalid type: string "seven", expected i64 at line 1 column 40

    listPets failed: the response 200 could not be read: its body is not JSON (expected value at line 1 column 1): `<html>Hello</html>`; check the base URL

    createPet failed: the response 204 could not be read: its body is empty where JSON was expected; the request may have been processed: check before you retry
    "#);
}

#[tokio::test]
async fn what_the_caller_can_correct() {
    let link = [("Link", "<http://evil.example/>; rel=next")];
    let server = Wire::of(vec![answer(200, &link, "[           ]")]);
    let here = client(&server.base());
    let small = once().max_response_bytes(5);
    let builder = |base: &str| Client::builder(base).api_key("k");
    let mut pages = here.pets().list().pages();
    pages.try_next().await.unwrap();
    let host = here.request(Method::GET, "x").header("Host", "a");
    let errors = vec![
        builder("petstore.example").build().unwrap_err(),
        builder("https://a.example")
            .api_key("k\n")
            .build()
            .unwrap_err(),
        Client::builder("https://a.example").build().unwrap_err(),
        here.pets().list().limit(500).await.unwrap_err(),
        here.request(Method::GET, "../x").await.unwrap_err(),
        host.await.unwrap_err(),
        list_with(&here, &small).await.unwrap_err(),
        pages.try_next().await.unwrap_err(),
    ];
    let debug = "Error { kind: InvalidRequest, message: \"listPets failed: the request was not sent: \
                 `limit` is 500, and must be from 1 to 100\", attempts: 0, source: None }";
    assert_eq!(format!("{:?}", errors[3]), debug);
    insta::assert_snapshot!(page(&errors), @r#"
    the base URL cannot be used: it does not begin with `https://`

    the API key cannot be used: it has a line break at character 2; remove it

    the API key cannot be used: none was given; set `api_key` or `api_key_provider`

    listPets failed: the request was not sent: `limit` is 500, and must be from 1 to 100

    GET ../x failed: the request was not sent: the path has `.` or `..`; give a path relative to the base URL, such as `/pets`

    GET x failed: the request was not sent: the client sets the header `host` itself

    listPets failed: the response is larger than 5 bytes

    listPets failed: stopped before the last page: the next page is on another host, which must not get the API key: http://evil.example/
    "#);
}
