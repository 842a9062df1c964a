//! Tests of the journal: its content, its size, that it contains no keys, and assertions about its
//! requests.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use petstore_mock::{Admission, BanPolicy, Operation, Plan};
use reqwest::{Method, header::USER_AGENT};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use super::support::{NOW, REX, at, reply, start, start_with};

#[tokio::test]
async fn keeps_a_request_and_its_answer() {
    let mock = start().await;
    mock.get("/v1/store/orders").await;
    mock.advance(5);
    let request = mock
        .request(Method::POST, "/v1/pets?x=%70")
        .bearer_auth("free-key");
    let request = request.header("content-type", "application/json");
    reply(request.header(USER_AGENT, "me/1").body(REX)).await;

    let post = &mock.server.requests(..)[1];
    let place = (post.number, post.connection, post.nth_on_connection);
    assert_eq!(place, (2, 1, 2));
    assert_eq!((post.arrived, post.ended), (at(NOW + 5), at(NOW + 5)));
    assert_eq!(post.method, Method::POST);
    assert_eq!((post.path(), post.query()), ("/v1/pets", "x=%70"));
    assert_eq!(post.headers["user-agent"], "me/1");
    assert_eq!((&*post.body, post.body_length), (REX.as_bytes(), 32));
    assert_eq!(post.key.as_ref().unwrap().to_string(), "#1 free-key (free)");
    assert_eq!(post.operation, Some(Operation::CreatePet));
    assert_eq!((post.status, post.answered), (Some(201), true));
    assert_eq!(post.reply_headers["location"], "/v1/pets/26");
    assert!(post.reply_body.starts_with(br#"{"id":26,"#));
    assert_eq!(post.reply_body_length, post.reply_body.len() as u64);
}

#[tokio::test]
async fn knows_how_each_request_was_met() {
    let ban = BanPolicy {
        after: 0,
        ..BanPolicy::default()
    };
    let one = Plan::enterprise(1, 10);
    let mock = start_with(|builder| builder.key("free-key", one).ban(ban)).await;
    for (key, path, admission, status) in [
        ("free-key", "/v1/pets", Admission::Admitted, 200),
        ("free-key", "/v1/pets", Admission::Refused, 429),
        ("free-key", "/v1/pets", Admission::Banned, 429),
        ("no-key", "/v1/pets", Admission::Anonymous, 401),
        ("free-key", "/elsewhere", Admission::Outside, 404),
    ] {
        mock.get_as(key, path).await;
        mock.get("/_mock/health").await;
        let all = mock.server.requests(..);
        let last = all.last().unwrap();
        assert_eq!((last.admission, last.status), (admission, Some(status)));
    }
}

#[tokio::test]
async fn keeps_the_last_ones_only() {
    let mock = start_with(|builder| builder.journal(3)).await;
    for _ in 0..5 {
        mock.get("/v1/pets").await;
    }
    let kept = mock.server.requests(..);
    assert!(kept.iter().map(|one| one.number).eq([3, 4, 5]));
    mock.server.verify(Operation::ListPets, 3..);
    let text = failure(|| mock.server.verify(Operation::GetPet, 0));
    assert!(text.contains("the journal, but it has dropped"), "{text}");
    mock.server.reset().unwrap();
    mock.get_as("free-key", "/v1/pets").await;
    // A reset makes an assertion certain again.
    mock.server.verify(Operation::ListPets, 1);
}

#[tokio::test]
async fn keeps_the_beginning_of_long_bodies_and_few_of_them() {
    let mock = start().await;
    let name = "x".repeat(20_000);
    let body = format!(r#"{{"name": "{name}", "categoryId": 1}}"#);
    for _ in 0..150 {
        assert_eq!(mock.post(body.clone()).await.status, 201);
    }
    let all = mock.server.requests(..);
    let bytes: usize = all
        .iter()
        .map(|one| one.body.len() + one.reply_body.len())
        .sum();
    assert!(bytes < 4 * 1024 * 1024, "{bytes}");
    assert!(all.len() > 100, "{}", all.len());
    assert_eq!(all[0].body, &body.as_bytes()[..16 * 1024]);
    assert_eq!(all[0].body_length, body.len() as u64);
    assert_eq!(all[0].reply_body.len(), 16 * 1024);
    assert!(all[0].reply_body_length > 20_000);
}

#[tokio::test]
async fn a_request_whose_client_leaves_is_recorded_without_a_response() {
    let mock = start().await;
    let slow = mock
        .on(Operation::ListPets)
        .delay(Duration::from_secs(3_600));
    let mut stream = TcpStream::connect(mock.server.addr()).await.unwrap();
    let request = "GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer free-key\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    while slow.hits() == 0 {
        tokio::task::yield_now().await;
    }
    drop(stream);
    mock.server.wait_for(Operation::ListPets, 1).await;
    let list = &mock.server.requests(..)[0];
    assert_eq!((list.status, list.answered), (None, false));
}

#[tokio::test]
async fn credentials_are_masked_whether_the_server_knows_them_or_not() {
    let (long, short) = ("sk-0123456789-secret", "tiny7");
    let mock = start_with(|builder| builder.key(long, Plan::Free).key(short, Plan::Free)).await;
    let encoded: String = long.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let query = format!("q={encoded}&api_key=unknown1&Access_Token=unknown2&k={short}");
    let post = mock.request(Method::POST, &format!("/v1/pets/{short}?{query}"));
    let post = post.bearer_auth(short).header("x-auth-token", "unknown3");
    reply(post.body(format!(r#"{{"a": "{short}", "b": "{encoded}"}}"#))).await;
    let get = mock.request(Method::GET, &format!("/v1/pets/{long}?api_key={long}"));
    reply(get.bearer_auth(long).header("x-api-key", long)).await;
    // The response repeats the key.
    let pet = format!(r#"{{"name": "{long}", "categoryId": 1}}"#);
    mock.post_as(long, pet).await.expect_status(201);

    let all = mock.server.requests(..);
    let shown = mock.get_as(short, "/_mock/requests").await.body;
    let shown = format!("{all:?}{}{shown}", serde_json::to_string(&all).unwrap());
    for secret in [
        "0123456789",
        short,
        &encoded,
        "unknown1",
        "unknown2",
        "unknown3",
    ] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
    assert_eq!(all[1].key.as_ref().unwrap().to_string(), "#1 …cret (free)");
    assert_eq!(all[1].target, "/v1/pets/***?api_key=***");
    assert_eq!(all[1].headers["authorization"], "Bearer ***");
}

/// Returns the message of a failing assertion.
fn failure(assertion: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(assertion)).expect_err("a panic");
    *panic.downcast::<String>().expect("it has a message")
}

#[tokio::test]
async fn an_assertion_counts_requests_and_shows_the_last_if_it_fails() {
    let mock = start().await;
    let text = failure(|| mock.server.verify((Method::PUT, "/pets/{petId}"), 1..));
    let says = "expected at least 1 request of PUT /v1/pets/{petId}, but 0 came";
    assert!(text.starts_with(says), "{text}");
    mock.get("/v1/pets?limit=5").await;
    mock.get("/v1/%70ets").await;
    mock.get("/v1/pets/99").await;
    mock.server.verify(.., 3);
    mock.server.verify((Method::GET, "/pets"), 2);
    mock.server.verify((Method::GET, "/v1/pets/{id}"), 1..=2);
    mock.server.verify(Operation::CreatePet, 0);
    let text = failure(|| mock.server.verify(Operation::GetPet, 0));
    let says = "expected no request of getPet, but 1 came; the last requests were:\n";
    assert!(text.starts_with(says), "{text}");
    assert!(text.ends_with("  #3 GET /v1/pets/99 -> 404"), "{text}");
}
