//! Tests of the journal: its content, its size, and that it contains no keys.

use std::time::Duration;

use petstore_mock::{Admission, Operation, Plan};
use reqwest::{Method, header::USER_AGENT};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::support::{NOW, REX, at, post_head, start, start_with};

#[tokio::test]
async fn keeps_a_request_and_its_answer() {
    let mock = start().await;
    mock.get("/v1/store/orders").await;
    mock.advance(5);
    let request = mock
        .request(Method::POST, "/v1/pets?x=%70")
        .bearer_auth("free-key");
    let request = request
        .header("content-type", "application/json")
        .header(USER_AGENT, "me/1");
    request.body(REX).send().await.unwrap();

    let all = mock.server.requests(..);
    assert_eq!(all.len(), 2);
    let post = &all[1];
    assert_eq!(
        (post.number, post.connection, post.nth_on_connection),
        (2, 1, 2)
    );
    assert_eq!((post.arrived, post.ended), (at(NOW + 5), at(NOW + 5)));
    assert_eq!(
        (&post.method, &*post.target),
        (&Method::POST, "/v1/pets?x=%70")
    );
    assert_eq!((post.path(), post.query()), ("/v1/pets", "x=%70"));
    assert_eq!(post.headers["user-agent"], "me/1");
    assert_eq!((&*post.body, post.body_length), (REX.as_bytes(), 32));
    assert_eq!(post.key.as_ref().unwrap().to_string(), "#1 free-key (free)");
    assert_eq!(post.operation, Some(Operation::CreatePet));
    assert_eq!(post.admission, Admission::Admitted);
    assert_eq!((post.status, post.answered), (Some(201), true));
    assert_eq!(post.reply_headers["location"], "/v1/pets/26");
    assert_eq!(post.reply_headers["x-ratelimit-remaining"], "59");
    let reply: serde_json::Value = serde_json::from_slice(&post.reply_body).unwrap();
    assert_eq!(reply["id"], 26);
    assert_eq!(post.reply_body_length, post.reply_body.len() as u64);
    assert!(post.faults.is_empty());
}

#[tokio::test]
async fn knows_how_each_request_was_met() {
    let mock = start_with(|builder| {
        let ban = petstore_mock::BanPolicy {
            after: 0,
            ..petstore_mock::BanPolicy::default()
        };
        builder.key("free-key", Plan::enterprise(1, 10)).ban(ban)
    })
    .await;
    for _ in 0..3 {
        mock.get_as("free-key", "/v1/pets").await;
    }
    mock.get_as("no-key", "/v1/pets").await;
    mock.get_as("free-key", "/elsewhere").await;
    mock.get("/_mock/health").await;
    let met: Vec<_> = mock
        .server
        .requests(..)
        .iter()
        .map(|one| (one.admission, one.status))
        .collect();
    assert_eq!(
        met,
        [
            (Admission::Admitted, Some(200)),
            (Admission::Refused, Some(429)),
            (Admission::Banned, Some(429)),
            (Admission::Anonymous, Some(401)),
            (Admission::Outside, Some(404)),
        ]
    );
}

#[tokio::test]
async fn keeps_the_last_ones_only() {
    let mock = start_with(|builder| builder.journal(3)).await;
    for _ in 0..5 {
        mock.get("/v1/pets").await;
    }
    let numbers: Vec<_> = mock
        .server
        .requests(..)
        .iter()
        .map(|one| one.number)
        .collect();
    assert_eq!(numbers, [3, 4, 5]);
    let mock = start_with(|builder| builder.journal(0)).await;
    mock.get("/v1/pets").await;
    assert!(mock.server.requests(..).is_empty());
}

#[tokio::test]
async fn keeps_the_beginning_of_long_bodies_and_few_of_them() {
    let mock = start().await;
    let body = format!(
        "{{\"name\": \"{}\", \"categoryId\": 1}}",
        "x".repeat(100_000)
    );
    for _ in 0..200 {
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
    assert!(all[0].reply_body_length > 100_000);
}

#[tokio::test]
async fn keeps_the_received_part_of_an_interrupted_body() {
    let mock = start().await;
    let mut stream = TcpStream::connect(mock.server.addr()).await.unwrap();
    let begun = post_head("Content-Length: 50") + "{\"name\"";
    stream.write_all(begun.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    // Wait until the mock closes the connection, with or without a response.
    let _ = stream.read_to_end(&mut Vec::new()).await;
    let post = &mock.server.requests(Operation::CreatePet)[0];
    assert_eq!((&*post.body, post.body_length), (&b"{\"name\""[..], 7));
    assert_eq!(post.status, Some(400), "the body had no end");
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
async fn refusals_of_the_server_are_recorded_too() {
    let mock = start().await;
    for (request, status, method) in [
        ("GET /v1/pets HTTP/1.1\r\n\r\n", 400, "GET"),
        (
            "POST /v1/pets HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            501,
            "POST",
        ),
    ] {
        let reply = mock.raw(request.as_bytes()).await;
        assert_eq!(reply.status, status, "{request}");
        let exchanges = mock.server.requests(..);
        let last = exchanges.last().expect(request);
        assert_eq!(
            (last.status, last.admission),
            (Some(status), Admission::Rejected)
        );
        assert_eq!((last.method.as_str(), last.path()), (method, "/v1/pets"));
        assert_eq!(last.reply_body, reply.body.as_bytes());
    }
}

#[tokio::test]
async fn credentials_are_masked_whether_the_server_knows_them_or_not() {
    let (long, short) = ("sk-0123456789-secret", "tiny7");
    let mock = start_with(|builder| builder.key(long, Plan::Free).key(short, Plan::Free)).await;
    let encoded: String = long.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let target =
        format!("/v1/pets/{short}?q={encoded}&api_key=unknown1&Access_Token=unknown2&k={short}");
    let request = mock.request(Method::POST, &target).bearer_auth(short);
    let request = request
        .header("x-api-key", "unknown3")
        .header("x-auth-token", "unknown4");
    request
        .body(format!("{{\"a\": \"{short}\", \"b\": \"{encoded}\"}}"))
        .send()
        .await
        .unwrap();
    let request = mock.request(Method::GET, &format!("/v1/pets/{long}?api_key={long}"));
    request
        .bearer_auth(long)
        .header("x-api-key", long)
        .body(long)
        .send()
        .await
        .unwrap();
    let pet = mock
        .request(Method::POST, "/v1/pets")
        .header("content-type", "application/json");
    let pet = pet.body(format!("{{\"name\": \"{long}\", \"categoryId\": 1}}"));
    pet.bearer_auth(long).send().await.unwrap();

    let all = mock.server.requests(..);
    let shown = mock.get_as(short, "/_mock/requests").await.body;
    let shown = format!("{all:?}{}{shown}", serde_json::to_string(&all).unwrap());
    for secret in [
        long,
        "0123456789",
        short,
        &encoded,
        "unknown1",
        "unknown2",
        "unknown3",
        "unknown4",
    ] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
    assert_eq!((all[1].status, all[2].status), (Some(404), Some(201)));
    assert_eq!(all[1].key.as_ref().unwrap().to_string(), "#1 …cret (free)");
    assert_eq!(all[1].target, "/v1/pets/***?api_key=***");
    assert_eq!(all[1].headers["authorization"], "Bearer ***");
    assert_eq!(all[1].headers["x-api-key"], "***");
}

#[tokio::test]
async fn verification_is_certain_again_after_a_reset() {
    let mock = start_with(|builder| builder.journal(2)).await;
    for _ in 0..3 {
        mock.get("/v1/pets").await;
    }
    mock.server.keys().get("free-key").unwrap().remove();
    mock.server.keys().insert("free-key", Plan::Free).unwrap();
    mock.server.reset().unwrap();
    mock.get_as("free-key", "/v1/pets").await;
    mock.server.verify(Operation::ListPets, 1);
}
