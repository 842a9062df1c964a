//! Tests of custom transports.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use petstore_client::bytes::Bytes;
use petstore_client::http::StatusCode;
use petstore_client::transport::{
    Connection, Proxy, ResponseLimit, Tls, Transport, TransportError, transport_fn,
};
use petstore_client::{Client, ClientBuilder, ErrorKind, NewPet, RequestOptions, TimeoutKind};
use tokio::time::Instant;

use crate::client::kit::{REX, builder, list_meta, secs};

type Request = http::Request<Bytes>;
type Result = std::result::Result<http::Response<Bytes>, TransportError>;

/// Starts a client of a function that gets the number of the request.
fn client(respond: impl Fn(usize, &Request) -> Result + Send + Sync + 'static) -> ClientBuilder {
    let respond = Arc::new(respond);
    let count = Arc::new(AtomicUsize::new(0));
    builder("https://petstore.test/v1").transport(transport_fn(move |request| {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        let respond = Arc::clone(&respond);
        async move { respond(number, &request) }
    }))
}

fn answer(status: u16, body: &'static str) -> Result {
    let mut response = http::Response::new(Bytes::from_static(body.as_bytes()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    Ok(response)
}

#[tokio::test]
async fn gets_the_whole_request_and_the_limit_of_the_response() {
    let client = client(|_, request| {
        assert_eq!(request.uri(), "https://petstore.test/v1/pets");
        assert_eq!(request.method(), "POST");
        let header = |name| request.headers()[name].to_str().unwrap();
        assert!(header("authorization").starts_with("Bearer "));
        assert_eq!(
            (header("accept"), header("content-type")),
            ("application/json", "application/json")
        );
        assert!(header("user-agent").starts_with("petstore-client/"));
        assert_eq!(request.body(), r#"{"name":"Rex","categoryId":7}"#);
        assert_eq!(request.extensions().get(), Some(&ResponseLimit(1_000)));
        answer(201, REX)
    });
    let client = client.build().unwrap();
    let rex = client
        .pets()
        .create(&NewPet::new("Rex", 7))
        .options(&RequestOptions::new().max_response_bytes(1_000))
        .with_meta()
        .await
        .unwrap();
    assert_eq!((rex.value.id, rex.meta.status().as_u16()), (1, 201));
}

#[tokio::test]
async fn its_errors_say_what_may_have_been_processed() {
    type Case = (fn() -> TransportError, ErrorKind, bool, u32);
    let cases: [Case; 4] = [
        (
            || TransportError::connect("refused"),
            ErrorKind::Connect,
            false,
            4,
        ),
        (|| TransportError::tls("expired"), ErrorKind::Tls, false, 1),
        (
            || TransportError::interrupted("reset by peer"),
            ErrorKind::Interrupted,
            true,
            1,
        ),
        (
            TransportError::body_too_large,
            ErrorKind::BodyTooLarge,
            true,
            1,
        ),
    ];
    for (error, kind, may_have_been_processed, attempts) in cases {
        let client = client(move |_, _| Err(error())).build().unwrap();
        let error = client
            .pets()
            .create(&NewPet::new("Rex", 7))
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.attempts()),
            (kind, attempts),
            "{error}"
        );
        assert_eq!(
            error.may_have_been_processed(),
            may_have_been_processed,
            "{error}"
        );
        if kind == ErrorKind::Connect {
            assert!(
                error
                    .to_string()
                    .contains("no connection to https://petstore.test"),
                "{error}"
            );
            assert_eq!(
                std::error::Error::source(&error).unwrap().to_string(),
                "refused"
            );
        }
        if kind == ErrorKind::BodyTooLarge {
            assert!(
                error.to_string().contains("larger than 10485760 bytes"),
                "{error}"
            );
        }
    }
}

#[tokio::test]
async fn a_lost_get_is_sent_again_and_a_large_response_is_refused() {
    let flaky = client(|number, _| match number {
        1 => Err(TransportError::interrupted("reset by peer")),
        _ => answer(200, "[]"),
    });
    let flaky = flaky.build().unwrap();
    assert_eq!(list_meta(&flaky).await.attempts(), 2);
    let small = RequestOptions::new().max_response_bytes(5);
    let large = client(|_, _| answer(200, "[                 ]")).options(&small);
    let error = large.build().unwrap().pets().list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BodyTooLarge, "{error}");
}

struct Hanging;

impl Transport for Hanging {
    async fn send(&self, _: Request) -> Result {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_ends_it_and_its_request_may_have_been_sent() {
    let client = builder("https://petstore.test/v1").transport(Arc::new(Hanging));
    let options = RequestOptions::new().attempt_timeout(secs(3));
    let client = client.options(&options).build().unwrap();
    let start = Instant::now();
    let error = client
        .pets()
        .create(&NewPet::new("Rex", 7))
        .await
        .unwrap_err();
    assert_eq!(start.elapsed().as_secs(), 3);
    assert_eq!(
        (error.timeout_kind(), error.may_have_been_processed()),
        (Some(TimeoutKind::Attempt), true)
    );
}

#[test]
fn what_is_set_of_the_built_in_one_besides_is_refused() {
    type Set = fn(ClientBuilder) -> ClientBuilder;
    let settings: [(Set, &str); 5] = [
        (
            |builder| builder.connection(Connection::new().connect_timeout(secs(1))),
            "time limit for connecting",
        ),
        (
            |builder| builder.connection(Connection::new().idle_timeout(secs(1))),
            "idle time of connections",
        ),
        (
            |builder| builder.connection(Connection::new().proxy(Proxy::none())),
            "proxy",
        ),
        (
            |builder| builder.connection(Connection::new().tls(Tls::new())),
            "TLS setting",
        ),
        (
            |builder| builder.connection(Connection::new().roots("x")),
            "TLS setting",
        ),
    ];
    for (set, name) in settings {
        let builder = Client::builder("https://petstore.test")
            .api_key("key")
            .transport(Hanging);
        let error = set(builder).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        let expected = format!("the {name} cannot be used: it is for the built-in transport");
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
}
