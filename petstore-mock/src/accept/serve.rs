//! The accept loop: takes connections until told to stop, then waits for those there are. Dropping
//! it cuts them all.

use std::io;

use tokio::{sync::watch, task::JoinSet};

use super::{Door, connection};
use crate::router::Front;

/// Serves until `stop` says so, and then until the last connection has ended.
pub(crate) async fn serve(door: &Door, front: Front, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = door.accept() => accepted,
            // Takes the remains of connections away as they end.
            Some(_) = connections.join_next() => continue,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        match accepted {
            Some(Ok((stream, peer))) => {
                let serve = connection::serve(stream, peer.ip(), front.clone(), stop.clone());
                connections.spawn(serve);
            }
            Some(Err(error)) => wait_out(&error, &mut connections).await,
            None => break,
        }
    }
    door.close();
    while connections.join_next().await.is_some() {}
}

/// Waits until accepting may succeed again. A connection that broke while it waited is no reason to;
/// anything else is most likely a lack of file descriptors, and ends when a connection does.
async fn wait_out(error: &io::Error, connections: &mut JoinSet<()>) {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    let broken = matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted);
    if !broken && connections.join_next().await.is_none() {
        tokio::task::yield_now().await;
    }
}
