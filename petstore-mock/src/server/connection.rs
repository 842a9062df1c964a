//! One connection: HTTP/1.1, or with the feature `http2` also HTTP/2, if the client starts with it (RFC
//! 9113, section 3.3).

use std::{
    future::pending,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use futures_util::FutureExt as _;
use http::{Request, Response, Version, header::CONNECTION};
use hyper::{body::Incoming, rt, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{io::AsyncReadExt as _, net::TcpStream, sync::watch};

use super::{
    io::ConnectionIo,
    reply::ResponseBody,
    state::{InFlight, Shared, Throttle, Transport},
};
use crate::{
    clock::real_time,
    exchange::Caller,
    fault::{EndMode, SocketPlan},
    http::Service,
};

/// What a server bears.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The maximum number of connections. Others wait until one of these ends.
    pub(super) connections: usize,
    /// How long a client may take for its first byte and a TLS handshake, and then for the head of
    /// each request, in real time.
    pub(super) patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4_096,
            patience: Duration::from_secs(120),
        }
    }
}

/// The maximum size of the head of a request: 256 KiB.
const MAX_HEAD_BYTES: u32 = 256 * 1024;

/// The maximum number of header fields of a request.
const MAX_HEADERS: usize = 100;

/// The parts of the server that its connections share.
pub(super) struct ServeContext {
    pub(super) service: Service,
    pub(super) limits: Limits,
    /// `None` for plain HTTP.
    #[cfg(feature = "tls")]
    pub(super) tls: Option<tokio_rustls::TlsAcceptor>,
}

/// Serves a connection until its end. After `stop`, serves it only until the end of the request in
/// flight.
pub(super) async fn serve(
    stream: TcpStream,
    caller: Caller,
    server: Arc<ServeContext>,
    mut stop: watch::Receiver<bool>,
) {
    // Responses are written completely, so the socket need not wait for more bytes. If the option
    // cannot be set, the connection is slower, but works.
    let _ = stream.set_nodelay(true);
    let stream = tokio::select! {
        stream = begun(stream, &server) => stream,
        () = real_time::sleep(server.limits.patience) => None,
        () = stopped(&mut stop) => None,
    };
    let Some(stream) = stream else { return };
    let state = Shared::default();
    let io = ConnectionIo::new(stream, state.clone());
    let has_unread_bytes = speak(io, caller, &server, &state, stop).await;
    let (stream, end) = {
        let mut state = state.lock();
        (state.stream.take(), state.end)
    };
    let Some(stream) = stream else { return };
    match end {
        // This drops the bytes that a client has not read. If the option cannot be set, they are
        // kept, and the reset becomes a close.
        Some(EndMode::Reset) => drop(stream.socket().set_zero_linger()),
        Some(EndMode::Close | EndMode::Hang) => {}
        None if has_unread_bytes => drain(stream).await,
        None => close(stream),
    }
}

/// Waits until the server stops.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // If the sender is gone, so is the server.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Waits for the first byte. Returns the stream for HTTP, with TLS if enabled; `None` if the client
/// leaves, or does not begin with a handshake.
async fn begun(
    stream: TcpStream,
    #[cfg_attr(not(feature = "tls"), expect(unused_variables, reason = "for TLS"))]
    server: &ServeContext,
) -> Option<Box<dyn Transport>> {
    let mut first = [0];
    // `readable` may return too early.
    if stream.peek(&mut first).await.ok()? == 0 {
        return None;
    }
    #[cfg(feature = "tls")]
    if let Some(tls) = &server.tls {
        if first != [HANDSHAKE] {
            let mut stream: Box<dyn Transport> = Box::new(stream);
            // The client may have left.
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, plain_http().as_bytes()).await;
            drain(stream).await;
            return None;
        }
        // If the handshake fails, rustls sends an alert if it can.
        return Some(Box::new(tls.accept(stream).await.ok()?));
    }
    Some(Box::new(stream))
}

/// The first byte of every TLS connection: a handshake record (RFC 8446, section 5.1).
#[cfg(feature = "tls")]
const HANDSHAKE: u8 = 22;

/// Returns the response to a request in plain HTTP, if the server speaks TLS.
#[cfg(feature = "tls")]
fn plain_http() -> String {
    let body = r#"{"code":"bad_request","message":"this port speaks TLS: use https","status":400}"#;
    let length = body.len();
    format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// Serves HTTP until the client, the server or a fault ends the connection. Returns whether the
/// client may still be sending a request that was answered.
async fn speak(
    io: ConnectionIo,
    caller: Caller,
    server: &Arc<ServeContext>,
    state: &Shared,
    mut stop: watch::Receiver<bool>,
) -> bool {
    let requests = AtomicU64::new(0);
    let service = service_fn(|request: Request<Incoming>| {
        let nth = requests.fetch_add(1, Relaxed) + 1;
        let caller = Caller { nth, ..caller };
        // The request begins here, and not in the future, so that requests that are read together
        // count together.
        let in_flight = state.begin(request.version() == Version::HTTP_2);
        answer(request, caller, Arc::clone(server), in_flight)
    });
    let protocols = protocols(&server.limits);
    let mut connection = pin!(protocols.serve_connection(TokioIo::new(io), service));
    let mut ended = pin!(state.ended());
    let (mut is_stopping, mut is_idle) = (false, false);
    loop {
        tokio::select! {
            biased;
            // An error is a request that hyper refused, or a client that has left.
            served = &mut connection => return served.is_err() || state.lock().must_drain,
            () = &mut ended => return false,
            () = stopped(&mut stop), if !is_stopping => {
                if state.lock().end == Some(EndMode::Hang) {
                    return false;
                }
                (is_stopping, is_idle) = (true, state.lock().is_idle());
                connection.as_mut().graceful_shutdown();
            }
            // The last response may still be on its way. hyper waits for the rest of a head.
            () = real_time::sleep(Duration::from_millis(100)), if is_idle => return false,
        }
    }
}

/// Returns the protocols of a connection: HTTP/1.1, and HTTP/2 if the client starts with it.
fn protocols(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut protocols = auto::Builder::new(TokioExecutor::new());
    protocols
        .http1()
        .auto_date_header(false)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES as usize)
        .timer(RealTimer)
        .header_read_timeout(limits.patience)
        .writev(false);
    #[cfg(feature = "http2")]
    protocols
        .http2()
        .auto_date_header(false)
        .max_header_list_size(MAX_HEAD_BYTES);
    protocols
}

/// A fault ends the connection before the response begins.
#[derive(Debug, thiserror::Error)]
#[error("a fault ends the connection")]
struct EndedByFault;

/// Answers one request.
async fn answer(
    request: Request<Incoming>,
    caller: Caller,
    server: Arc<ServeContext>,
    // If the client leaves, this is dropped with the request.
    in_flight: InFlight,
) -> Result<Response<ResponseBody>, EndedByFault> {
    let mut response = server.service.pass(caller, request).await;
    let plan = response.extensions_mut().remove::<SocketPlan>();
    let plan = plan.unwrap_or_default();
    {
        let mut connection = in_flight.connection();
        let clock = || server.service.app().clock().clone();
        connection.throttle = plan.pace().map(|pace| Throttle::new(pace, clock()));
        // The rest of the request may still arrive.
        connection.must_drain = response.headers().contains_key(CONNECTION);
    }
    let Some(end) = plan.end() else {
        return Ok(response.map(|body| ResponseBody::new(body, in_flight)));
    };
    if let Some(bytes) = end.after_body_bytes {
        let cut = |body| ResponseBody::new(body, in_flight).cut(bytes, end.how);
        return Ok(response.map(cut));
    }
    in_flight.end(end.how);
    if end.how == EndMode::Hang {
        pending::<()>().await;
    }
    Err(EndedByFault)
}

/// Reads and discards what the client still sends, up to 64 MiB and for 5 s. Closing immediately would
/// reset the connection, and the client might lose an unread response (RFC 9112, section 9.6).
async fn drain(mut stream: Box<dyn Transport>) {
    // An error means that the stream is already shut down.
    let _ = tokio::io::AsyncWriteExt::shutdown(&mut stream).await;
    let mut rest = stream.take(64 * 1024 * 1024);
    let mut sink = tokio::io::sink();
    tokio::select! {
        _ = tokio::io::copy(&mut rest, &mut sink) => {}
        () = real_time::sleep(Duration::from_secs(5)) => {}
    }
}

/// Closes the stream gracefully, if that can be written immediately. Over TLS, a close without an
/// alert could be an attack (RFC 8446, section 6.1).
fn close(mut stream: Box<dyn Transport>) {
    // hyper may have closed the stream already.
    let _ = tokio::io::AsyncWriteExt::shutdown(&mut stream).now_or_never();
}

/// hyper's timer, in real time: under paused time, an idle connection would time out at once.
#[derive(Clone, Copy, Debug)]
struct RealTimer;

impl rt::Timer for RealTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        real_time::within(|| TokioTimer::new().sleep(duration))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        real_time::within(|| TokioTimer::new().sleep_until(deadline))
    }

    fn now(&self) -> Instant {
        real_time::now()
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn rt::Sleep>>, deadline: Instant) {
        TokioTimer::new().reset(sleep, deadline);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

    use super::*;
    use crate::{server::Builder, server::MockServer};

    fn impatient() -> Builder {
        MockServer::builder().limits(Limits {
            patience: Duration::from_millis(300),
            ..Limits::default()
        })
    }

    /// Returns what a client receives that sends this, and then waits.
    async fn reply(builder: Builder, bytes: &[u8]) -> String {
        let server = builder.start().await.unwrap();
        let mut stream = TcpStream::connect(server.addr()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        reply
    }

    #[tokio::test]
    async fn a_client_that_takes_too_long_is_closed_without_a_response() {
        for bytes in ["", "G", "GET /v1/pets HTTP/1.1\r\nHost: x\r\nX-Slow: "] {
            assert_eq!(reply(impatient(), bytes.as_bytes()).await, "", "{bytes}");
        }
        #[cfg(feature = "tls")]
        assert_eq!(reply(impatient().tls(), b"\x16\x03\x01\x02").await, "");
    }

    #[tokio::test]
    async fn an_idle_connection_is_closed_after_its_response() {
        let get = b"GET /_mock/health HTTP/1.1\r\nHost: x\r\n\r\n";
        let reply = reply(impatient(), get).await;
        assert!(
            reply.starts_with("HTTP/1.1 200") && reply.ends_with("\"ok\"}"),
            "{reply}"
        );
    }

    #[tokio::test]
    async fn a_connection_beyond_the_limit_waits_for_another_to_end() {
        let builder = MockServer::builder().limits(Limits {
            connections: 1,
            ..Limits::default()
        });
        let server = builder.start().await.unwrap();
        let get = b"GET /v1/pets HTTP/1.1\r\nHost: x\r\n\r\n";
        let mut response = Vec::new();
        let mut first = BufReader::new(TcpStream::connect(server.addr()).await.unwrap());
        first.write_all(get).await.unwrap();
        first.read_until(b'}', &mut response).await.unwrap();
        let mut second = BufReader::new(TcpStream::connect(server.addr()).await.unwrap());
        second.write_all(get).await.unwrap();
        first.write_all(get).await.unwrap();
        first.read_until(b'}', &mut response).await.unwrap();
        assert_eq!(server.requests(..).len(), 2);
        drop(first);
        second.read_until(b'}', &mut response).await.unwrap();
        assert_eq!(server.requests(..).len(), 3);
    }
}
