//! A mock with a frozen clock, and helpers to send requests.

use std::time::{Duration, SystemTime};

use petstore_mock::{Builder, Clock, FaultBuilder, MockServer, Target};
use reqwest::{Method, header::HeaderMap};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::openapi::{Answer, Watched, offence};

/// 2026-01-01T00:00:10Z: 50 seconds before the minute ends.
pub(crate) const NOW: u64 = 1_767_225_610;
/// The end of that minute.
pub(crate) const MINUTE_ENDS: u64 = NOW + 50;
/// The end of that day.
pub(crate) const DAY_ENDS: u64 = NOW - 10 + 86_400;

/// A pet of 32 bytes.
pub(crate) const REX: &str = r#"{"name": "Rex", "categoryId": 7}"#;

/// Returns the head of a POST of a pet with the Free key and some more header fields.
pub(crate) fn post_head(fields: &str) -> String {
    format!(
        "POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer free-key\r\n\
         Content-Type: application/json\r\n{fields}\r\n\r\n"
    )
}

/// An instant by its seconds since the Unix epoch.
pub(crate) fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// A server and a client of it.
pub(crate) struct Mock {
    pub(crate) server: Watched,
    client: reqwest::Client,
}

/// A response with its complete body.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

/// Starts a mock at `NOW`, with the default keys and pets.
pub(crate) async fn start() -> Mock {
    start_with(|builder| builder).await
}

/// Starts a mock at `NOW` with other settings.
pub(crate) async fn start_with(set: impl FnOnce(Builder) -> Builder) -> Mock {
    let clock = Clock::frozen(at(NOW));
    let builder = set(MockServer::builder().clock(clock));
    Mock {
        server: Watched::start(builder).await,
        client: client(),
    }
}

/// Returns a client without a proxy and with a `User-Agent`.
pub(crate) fn client() -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .user_agent("test/1")
        .build()
        .unwrap()
}

impl Mock {
    /// Sends a GET with the Enterprise key.
    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.get_as("enterprise-key", path).await
    }

    /// Sends a GET with a key.
    pub(crate) async fn get_as(&self, key: &str, path: &str) -> Reply {
        let request = self.request(Method::GET, path).bearer_auth(key);
        reply(request).await
    }

    /// Sends a POST of JSON with the Enterprise key.
    pub(crate) async fn post(&self, body: impl Into<reqwest::Body>) -> Reply {
        self.post_as("enterprise-key", body).await
    }

    /// Sends a POST of JSON with a key.
    pub(crate) async fn post_as(&self, key: &str, body: impl Into<reqwest::Body>) -> Reply {
        let request = self.request(Method::POST, "/v1/pets").bearer_auth(key);
        let json = request.header("content-type", "application/json");
        reply(json.body(body)).await
    }

    /// Sends a request without a key. The line is its method and its path.
    pub(crate) async fn send(&self, line: &str, body: impl Into<reqwest::Body>) -> Reply {
        let (method, path) = line.split_once(' ').unwrap();
        reply(self.request(method.parse().unwrap(), path).body(body)).await
    }

    /// Sends a request of the administration, which must succeed without a body.
    pub(crate) async fn change(&self, line: &str, body: impl Into<reqwest::Body>) {
        self.send(line, body).await.expect_status(204);
    }

    /// Begins a request to a path below the origin.
    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let url = format!("{}{path}", self.server.origin());
        self.client.request(method, url)
    }

    /// Starts a fault for some requests.
    pub(crate) fn on(&self, target: impl Into<Target>) -> FaultBuilder<'_> {
        self.server.faults().on(target)
    }

    /// Moves the clock.
    pub(crate) fn advance(&self, seconds: u64) {
        self.server.clock().advance(Duration::from_secs(seconds));
    }

    /// Stops the server, which must wait for nothing.
    pub(crate) async fn stop(self) {
        // This is less than the grace period for requests in flight.
        let stopped = timeout(Duration::from_secs(4), self.server.stop()).await;
        assert!(stopped.is_ok(), "the stop waited");
    }

    /// Sends raw bytes, and returns the response, which must end with the connection.
    pub(crate) async fn raw(&self, request: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(self.server.addr()).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        Reply::parse(&String::from_utf8(answer).unwrap())
    }
}

/// Sends a request and reads the complete response. Responses of the administration must match its
/// OpenAPI document.
pub(crate) async fn reply(request: reqwest::RequestBuilder) -> Reply {
    let (client, request) = request.build_split();
    let request = request.unwrap();
    let (method, path) = (request.method().clone(), request.url().path().to_owned());
    let response = client.execute(request).await.unwrap();
    let reply = Reply {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        body: response.text().await.unwrap(),
    };
    if path.starts_with("/_mock/") {
        let answer = Answer {
            method: method.as_str(),
            path: &path,
            status: reply.status,
            headers: reply.headers.clone(),
            body: Some(reply.body.as_bytes()),
        };
        assert_eq!(offence(&answer), None);
    }
    reply
}

impl Reply {
    pub(crate) fn parse(answer: &str) -> Self {
        let (head, body) = answer.split_once("\r\n\r\n").expect(answer);
        let mut lines = head.lines();
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1))
            .expect(answer);
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(": ").expect(line);
            let name = reqwest::header::HeaderName::try_from(name).unwrap();
            headers.append(name, value.parse().unwrap());
        }
        Self {
            status: status.parse().unwrap(),
            headers,
            body: body.to_owned(),
        }
    }

    /// Returns the value of a header, or "-" if it is missing. Panics if it is repeated.
    pub(crate) fn header(&self, name: &str) -> &str {
        let all: Vec<_> = self.headers.get_all(name).iter().collect();
        match all[..] {
            [] => "-",
            [one] => one.to_str().unwrap(),
            _ => panic!("{name} is there more than once: {all:?}"),
        }
    }

    /// Returns limit, remaining and reset.
    pub(crate) fn rate(&self) -> (u64, u64, u64) {
        let number = |name| self.header(name).parse().expect(name);
        (
            number("x-ratelimit-limit"),
            number("x-ratelimit-remaining"),
            number("x-ratelimit-reset"),
        )
    }

    /// Returns the body as JSON. Panics if the body or its content type is not JSON.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), "application/json");
        serde_json::from_str(&self.body).expect(&self.body)
    }

    /// Returns status and code of an error, which must have the Error shape and nothing else.
    pub(crate) fn error(&self) -> (u16, String) {
        let json = self.json();
        let fields = json.as_object().expect(&self.body);
        assert_eq!(fields.len(), 3, "{json}");
        assert_eq!(json["status"], self.status, "{json}");
        assert!(!json["message"].as_str().unwrap().is_empty(), "{json}");
        (self.status, json["code"].as_str().unwrap().to_owned())
    }

    /// Fails unless the response has this status.
    #[track_caller]
    pub(crate) fn expect_status(&self, status: u16) {
        assert_eq!(self.status, status, "{}", self.body);
    }

    /// Fails unless this is the error.
    #[track_caller]
    pub(crate) fn expect_error(&self, status: u16, code: &str) {
        assert_eq!(self.error(), (status, code.to_owned()), "{}", self.body);
    }

    /// Returns the message of an error.
    pub(crate) fn message(&self) -> String {
        self.json()["message"].as_str().unwrap().to_owned()
    }
}
