//! One connection: HTTP/1.1, or HTTP/2 if the client starts with it (RFC 9113, section 3.3).

use std::{
    future::{pending, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{BoxError, body::Body};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, Version, header::CONNECTION, header::EXPECT};
use hyper::{
    body::{Body as HttpBody, Frame, Incoming, SizeHint},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    io::{AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    sync::watch,
    time::Sleep,
};

use super::{
    io::ConnectionIo,
    socket_faults::ResponseBody,
    state::{InFlightGuard, Limits, Shared, Throttle, Transport},
};
use crate::{
    clock::real_time,
    fault::{CutPoint, EarlyEnd, EndMode, SocketPlan},
    http::{ApiError, BodyTimeout, MAX_HEAD_BYTES, MAX_HEADER_FIELDS, Service},
    journal::{Caller, OpenConnection},
};

/// Longer HTTP/2 header lists are refused by hyper, without a body.
const MAX_HTTP2_HEADER_BYTES: u32 = 4 * MAX_HEAD_BYTES;

/// A body of at most this length has usually arrived when the request is answered, so the
/// connection can stay open.
const MAX_SHORT_BODY: u64 = 8 * 1024;

/// How much of an unread request is read and discarded before the connection is closed.
const MAX_DRAINED_BYTES: u64 = 64 * 1024 * 1024;

/// The parts of the server that its connections share.
pub(super) struct ServeContext {
    pub(super) service: Service,
    pub(super) limits: Limits,
    /// `None` for plain HTTP.
    #[cfg(feature = "tls")]
    pub(super) tls: Option<super::tls::Tls>,
}

/// Serves a connection until its end. After `stop`, serves it only until the end of the request in
/// flight.
pub(super) async fn serve(
    stream: TcpStream,
    caller: Caller,
    open: OpenConnection,
    server: Arc<ServeContext>,
    stop: watch::Receiver<bool>,
) {
    // Responses are written completely, so the socket need not wait for more bytes. If the option
    // cannot be set, the connection is slower, but works.
    let _ = stream.set_nodelay(true);
    let state = Shared::new();
    #[cfg(feature = "tls")]
    let Some(stream) = secured(stream, caller, &server, stop.clone()).await else {
        return;
    };
    #[cfg(not(feature = "tls"))]
    let stream = Box::new(stream);
    speak(
        ConnectionIo::new(stream, state.clone()),
        caller,
        &server,
        &state,
        stop,
    )
    .await;
    drop(open);
    let (stream, head, refused, end, is_blocked, must_drain) = {
        let mut state = state.lock();
        let (stream, head) = (state.stream.take(), std::mem::take(&mut state.head));
        (
            stream,
            head,
            state.refused,
            state.end,
            state.is_blocked(),
            state.must_drain,
        )
    };
    let Some(stream) = stream else { return };
    if end == Some(EndMode::Reset) || is_blocked {
        // This drops the bytes that a client has not read. If the option cannot be set, they are
        // kept, and a fault's reset becomes a close.
        let _ = stream.socket().set_zero_linger();
    } else if let Some(code) = refused {
        refuse(stream, caller, &server, &head, &ApiError::unreadable(code)).await;
    } else if must_drain {
        drain(stream, server.limits.body).await;
    } else if end.is_none() {
        close(stream).await;
    }
}

/// Waits until the server stops.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // If the sender is gone, so is the server.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Returns the stream for HTTP, with TLS if enabled; `None` if the handshake fails.
#[cfg(feature = "tls")]
async fn secured(
    stream: TcpStream,
    caller: Caller,
    server: &ServeContext,
    mut stop: watch::Receiver<bool>,
) -> Option<Box<dyn Transport>> {
    let Some(tls) = &server.tls else {
        return Some(Box::new(stream));
    };
    let limit = server.limits.head;
    let handshake = tokio::select! {
        handshake = tls.accept(stream) => handshake?,
        () = real_time::sleep(limit), if !limit.is_zero() => return None,
        () = stopped(&mut stop) => return None,
    };
    match handshake {
        Ok(stream) => Some(stream),
        Err(stream) => {
            let error = ApiError::bad_request("this port speaks TLS: use https");
            refuse(stream, caller, server, &[], &error).await;
            None
        }
    }
}

/// Serves HTTP until the client, the server, a limit or a fault ends the connection.
async fn speak(
    io: ConnectionIo,
    caller: Caller,
    server: &Arc<ServeContext>,
    state: &Shared,
    mut stop: watch::Receiver<bool>,
) {
    let requests = AtomicU64::new(0);
    let service = service_fn(|request: Request<Incoming>| {
        let nth = requests.fetch_add(1, Relaxed) + 1;
        let in_flight = InFlightGuard::begin(state.clone());
        let caller = Caller { nth, ..caller };
        answer(
            request,
            caller,
            Arc::clone(server),
            state.clone(),
            in_flight,
        )
    });
    let mut protocols = auto::Builder::new(TokioExecutor::new());
    protocols
        .http1()
        .auto_date_header(false)
        .max_headers(MAX_HEADER_FIELDS)
        .max_buf_size(MAX_HEAD_BYTES as usize)
        // hyper's is one timer for an idle connection and a slow head, set anew for each request, and it does
        // not run before the first byte. hyper has none for a client that does not read, or for an idle
        // HTTP/2 connection. So `Shared::overdue` has all limits, with one timer per connection.
        .header_read_timeout(None)
        // Responses are short, so copying them is cheaper than vectored writes.
        .writev(false);
    protocols
        .http2()
        .auto_date_header(false)
        .max_header_list_size(MAX_HTTP2_HEADER_BYTES);
    let mut connection = pin!(protocols.serve_connection(TokioIo::new(io), service));
    let mut overdue = pin!(state.overdue(server.limits));
    let mut ended = pin!(state.ended());
    let mut is_stopping = false;
    // The client may disconnect at any time, so errors are ignored.
    loop {
        tokio::select! {
            biased;
            _ = &mut connection => return,
            () = &mut ended => return,
            () = &mut overdue => return,
            () = stopped(&mut stop), if !is_stopping => {
                if state.lock().can_be_cut() {
                    return;
                }
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
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
    state: Shared,
    // If the client leaves, this is dropped with the request.
    in_flight: InFlightGuard,
) -> Result<Response<ResponseBody>, EndedByFault> {
    let is_http1 = request.version() != Version::HTTP_2;
    if is_http1 {
        // A client that sent `Expect` may or may not send its body after the response.
        let is_long = request.headers().contains_key(EXPECT)
            || request
                .body()
                .size_hint()
                .upper()
                .is_none_or(|length| length > MAX_SHORT_BODY);
        state.lock().has_unread_body = is_long && !request.body().is_end_stream();
    }
    let request = request.map(|body| {
        if body.is_end_stream() {
            return Body::empty();
        }
        let state = is_http1.then(|| state.clone());
        Body::new(RequestBody {
            body,
            timeout: server.limits.body,
            sleep: None,
            state,
        })
    });
    let mut response = server.service.pass(caller, request).await;
    let plan = response
        .extensions_mut()
        .remove::<SocketPlan>()
        .unwrap_or_default();
    let clock = || server.service.app().clock().clone();
    let closes = response
        .headers()
        .get(CONNECTION)
        .is_some_and(|value| value == "close");
    {
        let mut state = state.lock();
        state.throttle = plan.pace().map(|pace| Throttle::new(pace, clock()));
        if is_http1 && (closes || state.has_unread_body) {
            // The rest of the body must not be read as a request.
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
            state.must_drain = true;
        }
    }
    let response = response.map(|body| ResponseBody::new(body, in_flight));
    match plan.end() {
        None => Ok(response),
        Some(EarlyEnd {
            at: CutPoint::Body(bytes),
            how,
        }) => Ok(response.map(|body| body.cut(bytes, how, clock()))),
        Some(EarlyEnd {
            at: CutPoint::Start,
            how,
        }) => {
            state.end(how);
            if matches!(how, EndMode::Stall(_)) {
                pending::<()>().await;
            }
            Err(EndedByFault)
        }
    }
}

/// The body of a request. It fails with [`BodyTimeout`] if it takes too long.
struct RequestBody {
    body: Incoming,
    timeout: Duration,
    /// Set if the body has to be awaited. Most bodies arrive together with their head.
    sleep: Option<Pin<Box<Sleep>>>,
    /// The state of an HTTP/1 connection. There, unread bytes would come before the next request.
    state: Option<Shared>,
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            if let Some(state) = &this.state {
                let mut state = state.lock();
                match &frame {
                    Some(Err(_)) => state.has_unread_body = true,
                    Some(Ok(_)) if !this.body.is_end_stream() => {}
                    Some(Ok(_)) | None => state.has_unread_body = false,
                }
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        if this.timeout.is_zero() {
            return Poll::Pending;
        }
        let sleep = this
            .sleep
            .get_or_insert_with(|| Box::pin(real_time::sleep(this.timeout)));
        sleep
            .as_mut()
            .poll(context)
            .map(|()| Some(Err(BodyTimeout.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Writes a complete response to bytes that are not a valid request, and closes the connection.
async fn refuse(
    mut stream: Box<dyn Transport>,
    caller: Caller,
    server: &ServeContext,
    head: &[u8],
    error: &ApiError,
) {
    let (parts, body) = server.service.refuse(caller, head, error).into_parts();
    let mut text = format!("HTTP/1.1 {}\r\n", parts.status).into_bytes();
    for (name, value) in &parts.headers {
        text.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    text.extend(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    text.extend(body);
    // The client may have left, or may not read, so the time is limited.
    let limit = server.limits.write;
    let is_written = tokio::select! {
        written = stream.write_all(&text) => written.is_ok(),
        () = real_time::sleep(limit), if !limit.is_zero() => false,
    };
    if is_written {
        drain(stream, server.limits.body).await;
    }
}

/// Reads and discards what the client still sends. Closing immediately would reset the connection,
/// and the client might lose an unread response (RFC 9112, section 9.6).
async fn drain(mut stream: Box<dyn Transport>, limit: Duration) {
    // An error means that the stream is already shut down.
    let _ = stream.shutdown().await;
    let mut rest = stream.take(MAX_DRAINED_BYTES);
    let mut sink = tokio::io::sink();
    tokio::select! {
        _ = tokio::io::copy(&mut rest, &mut sink) => {}
        () = real_time::sleep(limit), if !limit.is_zero() => {}
    }
}

/// Closes the stream gracefully, if that can be written immediately. Over TLS, a close without an
/// alert could be an attack (RFC 8446, section 6.1).
async fn close(mut stream: Box<dyn Transport>) {
    // hyper may have closed the stream already.
    let _ = poll_fn(|context| Poll::Ready(Pin::new(&mut stream).poll_shutdown(context))).await;
}
