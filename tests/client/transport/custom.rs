//! Tests of custom transports.

use std::sync::Arc;

use petstore_client::bytes::Bytes;
use petstore_client::http::StatusCode;
use petstore_client::transport::{
    Connection, Proxy, ResponseLimit, SendMark, Tls, Transport, TransportError, transport_fn,
};
use petstore_client::{ClientBuilder, ErrorKind, NewPet, RequestOptions, TimeoutKind};
use tokio::time::Instant;

use crate::client::kit::{REX, builder, create, secs};

type Request = http::Request<Bytes>;
type Result = std::result::Result<http::Response<Bytes>, TransportError>;

/// Starts a client of a function.
fn client(respond: impl Fn(&Request) -> Result + Send + Sync + 'static) -> ClientBuilder {
    let transport = transport_fn(move |request| std::future::ready(respond(&request)));
    builder("https://petstore.test/v1").transport(transport)
}

fn answer(status: u16, body: &'static str) -> Result {
    let mut response = http::Response::new(Bytes::from_static(body.as_bytes()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    Ok(response)
}

#[tokio::test]
async fn gets_the_whole_request_and_the_limit_of_the_response() {
    let client = client(|request| {
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
    type Case = (fn() -> TransportError, ErrorKind, bool, u32, &'static str);
    let cases: [Case; 4] = [
        (
            || TransportError::connect("refused"),
            ErrorKind::Connect,
            false,
            4,
            "no connection to https://petstore.test",
        ),
        (
            || TransportError::tls("expired"),
            ErrorKind::Tls,
            false,
            1,
            "no secure connection to https://petstore.test",
        ),
        (
            || TransportError::interrupted("reset by peer"),
            ErrorKind::Interrupted,
            true,
            1,
            "the connection broke before the response",
        ),
        (
            TransportError::body_too_large,
            ErrorKind::BodyTooLarge,
            true,
            1,
            "larger than 10485760 bytes",
        ),
    ];
    for (error, kind, may_have_been_processed, attempts, message) in cases {
        let client = client(move |_| Err(error())).build().unwrap();
        let error = create(&client).await.unwrap_err();
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
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[tokio::test]
async fn its_response_may_not_be_too_large() {
    let client = client(|_| answer(200, "[                 ]"));
    let small = client.options(&RequestOptions::new().max_response_bytes(5));
    let error = small.build().unwrap().pets().list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BodyTooLarge, "{error}");
}

/// Never responds.
struct Hanging {
    /// Whether it sets the mark that the request is sent, if it takes that at all.
    sends: Option<bool>,
}

impl Transport for Hanging {
    async fn send(&self, mut request: Request) -> Result {
        let mark = self
            .sends
            .map(|sends| (SendMark::take(&mut request), sends));
        if let Some((mark, true)) = &mark {
            mark.sent();
        }
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_ends_it_and_its_mark_says_whether_the_request_was_sent() {
    for (sends, may_have_been_processed) in [(None, true), (Some(true), true), (Some(false), false)]
    {
        let hanging = Arc::new(Hanging { sends });
        let client = builder("https://petstore.test/v1").transport(hanging);
        let options = RequestOptions::new()
            .attempt_timeout(secs(3))
            .max_attempts(1);
        let client = client.options(&options).build().unwrap();
        let start = Instant::now();
        let create = client.pets().create(&NewPet::new("Rex", 7));
        let error = create.await.unwrap_err();
        assert_eq!(start.elapsed().as_secs(), 3);
        assert_eq!(error.timeout_kind(), Some(TimeoutKind::Attempt));
        let processed = error.may_have_been_processed();
        assert_eq!(processed, may_have_been_processed, "{sends:?}");
    }
}

#[test]
fn what_is_set_of_the_built_in_one_besides_is_refused() {
    let connection = Connection::new;
    for (connection, name) in [
        (
            connection().connect_timeout(secs(1)),
            "time limit for connecting",
        ),
        (
            connection().idle_timeout(secs(1)),
            "idle time of connections",
        ),
        (connection().proxy(Proxy::none()), "proxy"),
        (connection().tls(Tls::new()), "TLS setting"),
        (connection().roots("x"), "TLS setting"),
    ] {
        let hanging = builder("https://petstore.test").transport(Hanging { sends: None });
        let error = hanging.connection(connection).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        let expected = format!("the {name} cannot be used: it is for the built-in transport");
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
}
