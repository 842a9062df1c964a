//! One connection: HTTP/1.1, with the mock's own `Date`, until the client or the server ends it.

use std::{
    convert::Infallible,
    net::IpAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use axum::response::Response;
use http::{HeaderValue, Request, StatusCode, header::CONNECTION};
use hyper::{
    body::{Body as _, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, sync::watch};

use super::linger::Lingering;
use crate::{journal::Caller, router::Front};

/// A body as short as this is on its way already when the request is answered: no need to close.
const SHORT: u64 = 8 * 1024;

/// More header fields than these, or a longer head, hyper answers by itself and without a body. Far
/// enough above the service's own limits that whoever passes those hears of it in its own shape.
const MOST_FIELDS: usize = 500;
const LONGEST_HEAD: usize = 1024 * 1024;

/// Serves a connection, the `number`th of its server, to its end; once `stop` says so, it ends after the request at hand.
pub(super) async fn serve(
    stream: TcpStream,
    peer: IpAddr,
    number: u64,
    front: Front,
    mut stop: watch::Receiver<bool>,
) {
    // Answers are written whole, so there is nothing to gain from waiting for more of one. Where it
    // can't be set the connection is slower, but works.
    let _ = stream.set_nodelay(true);
    let unread = Arc::new(AtomicBool::new(false));
    let io = TokioIo::new(Lingering::new(stream, Arc::clone(&unread)));
    let requests = AtomicU64::new(0);
    let service = service_fn(move |request: Request<Incoming>| {
        let mut front = front.clone();
        let unread = Arc::clone(&unread);
        let nth = requests.fetch_add(1, Ordering::Relaxed) + 1;
        let caller = Caller { peer, connection: number, nth };
        async move {
            let has_long_body = request.body().size_hint().upper().is_none_or(|all| all > SHORT);
            let mut response = front.answer(caller, request).await;
            if has_long_body && leaves_the_body(&response) {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
                unread.store(true, Ordering::Relaxed);
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .auto_date_header(false)
        .max_headers(MOST_FIELDS)
        .max_buf_size(LONGEST_HEAD)
        // Without a timer of its own: under a paused runtime it would ring at once.
        .header_read_timeout(None)
        .serve_connection(io, service);
    let mut connection = pin!(connection);
    // What a connection ends with is the client's affair: it may break off whenever it likes.
    tokio::select! {
        biased;
        _ = &mut connection => return,
        _ = stop.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Whether a request is answered like this before its body was read to the end.
fn leaves_the_body(response: &Response) -> bool {
    matches!(
        response.status(),
        StatusCode::UNAUTHORIZED
            | StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::GONE
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    )
}
