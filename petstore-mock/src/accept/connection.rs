//! One connection: HTTP/1.1 or, where the client begins so, HTTP/2 without TLS (RFC 9113, section 3.3),
//! with the mock's own `Date`, until the client, the server or a limit ends it.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
};

use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{net::TcpStream, sync::watch};

use super::{
    answering::answer,
    farewell, handshake,
    link::Link,
    stage::Ending,
    wire::{Slot, Transport, Wire},
};
use crate::{journal::Caller, limits::Limits, router::Front, tls::Tls};

/// More header fields than these, or a longer head, hyper refuses by itself. Far enough above the
/// service's own limits that whoever passes those hears of it from the service.
const MOST_FIELDS: usize = 500;
const LONGEST_HEAD: u32 = 1024 * 1024;

/// What a connection is served with.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) caller: Caller,
    pub(super) front: Front,
    pub(super) limits: Limits,
    /// Where HTTP is spoken over TLS.
    pub(super) tls: Option<Tls>,
    /// Whether there are connections enough without this one: it is only told so.
    pub(super) is_one_too_many: bool,
}

/// Serves a connection to its end; once `stop` says so, it ends after the request at hand.
pub(super) async fn serve(stream: TcpStream, terms: Terms, mut stop: watch::Receiver<bool>) {
    // Answers are written whole, so there is nothing to gain from waiting for more of one. Where it
    // can't be set the connection is slower, but works.
    let _ = stream.set_nodelay(true);
    let stream: Box<dyn Transport> = match &terms.tls {
        None => Box::new(stream),
        Some(tls) => match handshake::secure(stream, tls, &terms, &mut stop).await {
            Some(stream) => stream,
            None => return,
        },
    };
    let (link, after) = (Arc::new(Link::new()), Slot::default());
    let wire = Wire::new(stream, Arc::clone(&after), Arc::clone(&link), terms.front.clone());
    let limits = terms.limits;
    speak(wire, terms, &link, stop).await;
    // hyper is done with it, whichever way it ended.
    let Some(stream) = after.lock().ok().and_then(|mut after| after.take()) else { return };
    let ending = link.stage().ending();
    if ending == Some(Ending::Reset) || link.is_stuck() {
        // The latter so that what the client does not take is not kept for it. Where it can't be set,
        // it is, and a fault's reset is a close.
        let _ = stream.socket().set_zero_linger();
    } else if ending.is_none() {
        if link.has_unread() {
            farewell::linger(stream, limits.body).await;
        } else {
            farewell::part(stream).await;
        }
    }
}

/// Speaks HTTP until the client, the server or a limit ends it.
async fn speak(wire: Wire, terms: Terms, link: &Arc<Link>, mut stop: watch::Receiver<bool>) {
    let limits = terms.limits;
    let terms = Arc::new(terms);
    let requests = AtomicU64::new(0);
    let service = service_fn(|request| {
        let nth = requests.fetch_add(1, Ordering::Relaxed) + 1;
        let caller = Caller { nth, ..terms.caller };
        answer(request, caller, &terms, link)
    });
    let mut protocols = auto::Builder::new(TokioExecutor::new());
    protocols
        .http1()
        .auto_date_header(false)
        .max_headers(MOST_FIELDS)
        .max_buf_size(LONGEST_HEAD as usize)
        // Without a timer of its own: under a paused runtime it would ring at once.
        .header_read_timeout(None)
        // Answers are short: to copy one is cheaper than to gather it.
        .writev(false);
    protocols.http2().auto_date_header(false).max_header_list_size(LONGEST_HEAD);
    let mut connection = pin!(protocols.serve_connection(TokioIo::new(wire), service));
    let mut overtime = pin!(link.overtime(limits));
    let mut stops = false;
    // What a connection ends with is the client's affair: it may break off whenever it likes.
    loop {
        tokio::select! {
            biased;
            _ = &mut connection => return,
            () = poll_fn(|context| link.stage().poll_end(context, link.is_multiplexed())) => return,
            () = &mut overtime => break,
            _ = stop.wait_for(|stop| *stop), if !stops => {
                // Neither is a request at hand, nor will one be.
                if link.stage().is_stuck() || link.is_in_head() {
                    return;
                }
                stops = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
    if link.is_late() {
        // It finds out when it reads on, and says so. What it can't say at once stays unsaid.
        let _ = poll_fn(|context| Poll::Ready(connection.as_mut().poll(context))).await;
    }
}
