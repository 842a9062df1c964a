//! Tests of custom transports.

use std::sync::Arc;

use petstore_client::bytes::Bytes;
use petstore_client::http::StatusCode;
use petstore_client::transport::{
    Connection, Proxy, ResponseLimit, SendMark, Tls, Transport, TransportError, transport_fn,
};
use petstore_client::{ClientBuilder, ErrorKind, RequestOptions, TimeoutKind};

use crate::client::kit::{REX, builder, create, once, secs};

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
        assert_eq!(header("content-type"), "application/json");
        assert_eq!(request.body(), r#"{"name":"Rex","categoryId":7}"#);
        assert_eq!(request.extensions().get(), Some(&ResponseLimit(1_000)));
        answer(201, REX)
    });
    let options = RequestOptions::new().max_response_bytes(1_000);
    let client = client.options(&options).build().unwrap();
    assert_eq!(create(&client).await.unwrap().id, 1);
}

#[tokio::test]
async fn its_errors_say_what_may_have_been_processed() {
    use ErrorKind::{BodyTooLarge, Connect, Interrupted, Tls};
    type Case = (fn() -> TransportError, ErrorKind, bool, u32);
    let cases: [Case; 4] = [
        (|| TransportError::connect("refused"), Connect, false, 4),
        (|| TransportError::tls("expired"), Tls, false, 1),
        (
            || TransportError::interrupted("reset by peer"),
            Interrupted,
            true,
            1,
        ),
        (TransportError::body_too_large, BodyTooLarge, true, 1),
    ];
    for (error, kind, may_have_been_processed, attempts) in cases {
        let client = client(move |_| Err(error())).build().unwrap();
        let error = create(&client).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.attempts()),
            (kind, attempts),
            "{error}"
        );
        let processed = error.may_have_been_processed();
        assert_eq!(processed, may_have_been_processed, "{error}");
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
        let options = once().attempt_timeout(secs(3));
        let client = client.options(&options).build().unwrap();
        let error = create(&client).await.unwrap_err();
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
        let problem = format!("the {name} cannot be used: ");
        assert!(error.to_string().starts_with(&problem), "{error}");
    }
}
