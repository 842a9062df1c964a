//! How a connection is closed. Where a request was answered before all of it was read (a 413, say),
//! closing at once would reset the connection, and the client might lose the answer it has not read yet
//! (RFC 9112, section 9.6). So the rest is read and thrown away first, for a while.

use std::{future::poll_fn, pin::Pin, task::Poll, time::Duration};

use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::wire::Transport;
use crate::alarm;

/// How much of an unwanted request is thrown away before the connection is cut after all.
const PATIENCE: usize = 64 * 1024 * 1024;

/// Reads until the client has closed its side, has sent too much, or has taken too long.
pub(super) async fn linger(mut stream: Box<dyn Transport>, limit: Duration) {
    let read = async {
        // It may be shut down already.
        let _ = stream.shutdown().await;
        let mut scratch = vec![0; 16 * 1024];
        let mut patience = PATIENCE;
        while let Ok(read @ 1..) = stream.read(&mut scratch).await {
            let Some(left) = patience.checked_sub(read) else { break };
            patience = left;
        }
    };
    if limit.is_zero() {
        return read.await;
    }
    tokio::select! {
        () = read => {}
        () = alarm::ring_after(limit) => {}
    }
}

/// Says that nothing more comes, where that can be said at once: over TLS the end of the stream alone
/// could be anybody's (RFC 8446, section 6.1).
pub(super) async fn part(mut stream: Box<dyn Transport>) {
    // hyper may have said it already.
    let _ = poll_fn(|context| Poll::Ready(Pin::new(&mut stream).poll_shutdown(context))).await;
}
