//! Tests that an error says correctly whether the service may have processed a POST, in each case
//! and for each transport. (Only on Linux, a full backlog ignores connections.)

#![cfg(target_os = "linux")]

use std::time::Duration;

use http::{Request, Response};
use petstore_client::bytes::Bytes;
use petstore_client::transport::{Builtin, Connection, Transport, TransportError};
use petstore_client::{ErrorKind, NewPet, RequestOptions, TimeoutKind};

use super::services::Service;
use crate::client::kit::{REX, answer, builder, create, once, secs};
use crate::client::wire::{Act, Wire};

/// The transport of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    Builtin,
    /// A transport that hands requests on to the built-in one.
    Wrapped,
    /// The same, without the mark that says whether a request was sent.
    WrappedUnmarked,
}

const ROUTES: [Route; 3] = [Route::Builtin, Route::Wrapped, Route::WrappedUnmarked];

struct Wrapper {
    builtin: Builtin,
    removes_mark: bool,
}

impl Transport for Wrapper {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        if self.removes_mark {
            request.extensions_mut().clear();
        }
        self.builtin.send(request).await
    }
}

/// A case: what happens to a POST, and its expected error.
struct Case {
    name: &'static str,
    service: Service,
    options: RequestOptions,
    /// The time limit for connecting.
    connect_timeout: Duration,
    kind: ErrorKind,
    /// Whether the service may have processed the request.
    processed: bool,
    /// Whether the error is `processed` anyway if the transport loses the mark.
    needs_mark: bool,
}

impl Case {
    /// Adds options of the client.
    fn with(self, options: RequestOptions) -> Self {
        Self { options, ..self }
    }

    fn needs_mark(self) -> Self {
        Self {
            needs_mark: true,
            ..self
        }
    }

    /// Creates a pet, and checks the error.
    async fn check(&self, route: Route) {
        let running = self.service.start().await;
        let mut connection = Connection::new()
            .allow_insecure_http(true)
            .connect_timeout(self.connect_timeout);
        if let Some(proxy) = running.proxy.clone() {
            connection = connection.proxy(proxy);
        }
        let mut builder = builder(&running.base)
            .api_key(format!("{}-{route:?}", self.name.replace(' ', "-")))
            .options(&RequestOptions::new().max_attempts(2))
            .max_wait(Duration::ZERO)
            .connection(connection);
        if route != Route::Builtin {
            builder = builder.wrap_transport(move |builtin| Wrapper {
                builtin,
                removes_mark: route == Route::WrappedUnmarked,
            });
        }
        let client = builder.build().unwrap().with_options(&self.options);
        let error = create(&client).await.unwrap_err();
        let shown = format!("{}, {route:?}: {error:?}", self.name);
        assert_eq!(error.kind(), self.kind, "{shown}");
        let expected = self.processed || (self.needs_mark && route == Route::WrappedUnmarked);
        assert_eq!(error.may_have_been_processed(), expected, "{shown}");
        let is_transient = error.is_connect() || error.is_timeout();
        let may_repeat = is_transient && error.timeout_kind() != Some(TimeoutKind::Call);
        let is_repeated = !expected && may_repeat && self.kind != ErrorKind::Tls;
        assert_eq!(error.attempts() == 2, is_repeated, "{shown}");
        let warns = error.to_string().contains("may have been processed");
        assert_eq!(warns, expected, "{shown}");
        let unresolved = client.limits().snapshot().unresolved;
        assert!(expected || unresolved == 0, "{shown}: {unresolved}");
    }
}

/// A case in which the service cannot have processed the request.
fn unprocessed(name: &'static str, service: Service, kind: ErrorKind) -> Case {
    Case {
        name,
        service,
        options: RequestOptions::new(),
        connect_timeout: secs(10),
        kind,
        processed: false,
        needs_mark: false,
    }
}

/// A case in which the service may have processed the request.
fn processed(name: &'static str, service: Service, kind: ErrorKind) -> Case {
    Case {
        processed: true,
        ..unprocessed(name, service, kind)
    }
}

/// The cases in which no connection is opened, or no request is sent.
fn unsent() -> Vec<Case> {
    use ErrorKind::{Connect, InvalidRequest, Timeout, Tls};
    use Service::{Acts, Full, Gone, Proxied, Unknown, Untrusted, WithoutTls};
    let options = RequestOptions::new;
    vec![
        unprocessed("refused connection", Gone, Connect),
        unprocessed("unknown host", Unknown, Connect),
        unprocessed("closed handshake", WithoutTls(b""), Connect),
        unprocessed("no TLS", WithoutTls(b"220 mail\r\n"), Tls),
        unprocessed("untrusted certificate", Untrusted, Tls),
        unprocessed("refusing proxy", Proxied(status(403)), Connect),
        unprocessed("invalid header", Acts(silence()), InvalidRequest)
            .with(options().header("host", "x")),
        Case {
            connect_timeout: secs(3),
            ..unprocessed("limit of connecting", Full, Timeout)
        },
        unprocessed("limit of an attempt that connects", Full, Timeout)
            .with(options().attempt_timeout(secs(3)))
            .needs_mark(),
        unprocessed("limit of a call that connects", Full, Timeout)
            .with(options().timeout(secs(3)))
            .needs_mark(),
    ]
}

/// The cases in which the request is sent, and no complete response comes.
fn lost() -> Vec<Case> {
    use ErrorKind::{BodyTooLarge, Decode, Interrupted, Timeout};
    use Service::Acts;
    let options = RequestOptions::new;
    let half_a_body = b"HTTP/1.1 201 X\r\nContent-Length: 9\r\n\r\n{".to_vec();
    let half = || half_a_body.clone();
    let no_http = b"220 mail\r\n\r\n".to_vec();
    vec![
        processed("closed connection", Acts(Act::Cut(vec![])), Interrupted),
        processed("reset connection", Acts(Act::Reset(vec![])), Interrupted),
        processed("no HTTP", Acts(Act::Cut(no_http)), Interrupted),
        processed("limit of an attempt", Acts(silence()), Timeout),
        processed("limit of a call", Acts(silence()), Timeout).with(options().timeout(secs(3))),
        processed("limit between reads", Acts(Act::Stall(half())), Timeout)
            .with(options().read_timeout(secs(3))),
        processed("cut body", Acts(Act::Cut(half())), Interrupted),
        processed("reset body", Acts(Act::Reset(half())), Interrupted),
        processed("no pet", Acts(answer(201, &[], "{}")), Decode),
        processed("large body", Acts(answer(201, &[], REX)), BodyTooLarge)
            .with(options().max_response_bytes(9)),
    ]
}

/// The cases in which the service refuses the request, or fails.
fn refused() -> Vec<Case> {
    use ErrorKind::{RateLimited, Rejected, Server, Unauthorized};
    use Service::Acts;
    let limited = answer(429, &[("Retry-After", "60")], "");
    let half = b"HTTP/1.1 400 X\r\nContent-Length: 9\r\n\r\n{".to_vec();
    vec![
        unprocessed("400", Acts(status(400)), Rejected),
        unprocessed("cut 400", Acts(Act::Cut(half)), Rejected),
        unprocessed("401", Acts(status(401)), Unauthorized),
        processed("408", Acts(status(408)), Rejected),
        unprocessed("429", Acts(limited), RateLimited),
        processed("503", Acts(status(503)), Server),
        processed("303", Acts(status(303)), Rejected),
        unprocessed("301", Acts(status(301)), Rejected),
    ]
}

fn silence() -> Act {
    Act::Stall(Vec::new())
}

fn status(status: u16) -> Act {
    answer(status, &[], "")
}

#[tokio::test(start_paused = true)]
async fn an_error_says_whether_its_request_may_have_been_processed() {
    for case in unsent().into_iter().chain(lost()).chain(refused()) {
        for route in ROUTES {
            case.check(route).await;
        }
    }
}

/// Sends each request to two services in turn, until one responds.
struct Failover {
    builtin: Builtin,
    second: String,
}

impl Transport for Failover {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let mut other = request.clone();
        *other.uri_mut() = self.second.parse().unwrap();
        match self.builtin.send(request).await {
            Ok(response) => Ok(response),
            Err(_) => self.builtin.send(other).await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrapper_that_sends_twice_may_have_been_processed() {
    let gone = Service::Gone.start().await.base;
    for (first, processed) in [
        (Service::Gone, false),
        (Service::Acts(Act::Cut(vec![])), true),
    ] {
        let first = first.start().await;
        let second = gone.clone();
        let client = builder(&first.base)
            .wrap_transport(move |builtin| Failover { builtin, second })
            .build()
            .unwrap();
        let error = create(&client).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
        assert_eq!(error.may_have_been_processed(), processed, "{error}");
        assert_eq!(error.attempts(), if processed { 1 } else { 4 }, "{error}");
    }
}

/// Attempts end at about the time at which a connection in another thread takes their request.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_request_that_arrives_is_never_called_unprocessed() {
    let server = Wire::start(|_| answer(201, &[], REX));
    let client = builder(&server.base()).options(&once()).build().unwrap();
    let mut unprocessed = Vec::new();
    for round in 0..40 {
        let limit = Duration::from_micros(20 * round);
        let names = (0..16).map(|number| format!("pet {round}-{number}"));
        let calls = names.map(|name| {
            let call = client.pets().create(&NewPet::new(&name, 7));
            let call = call
                .options(&RequestOptions::new().attempt_timeout(limit))
                .send();
            tokio::spawn(async move { (name, call.await) })
        });
        for call in calls.collect::<Vec<_>>() {
            match call.await.unwrap() {
                (name, Err(error)) if !error.may_have_been_processed() => unprocessed.push(name),
                _ => {}
            }
        }
    }
    for seen in server.seen() {
        let body = String::from_utf8(seen.body).unwrap();
        let name = body.split('"').nth(3).unwrap().to_owned();
        assert!(!unprocessed.contains(&name), "{name} arrived");
    }
}
