//! The listening socket and the accept loop. It accepts connections until `stop`, and then waits
//! for the existing ones. Dropping it closes them all.

use std::{
    collections::BTreeSet,
    future::poll_fn,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use super::connection::{self, ServeContext};
use crate::{clock::real_time, exchange::Caller, lock::lock};

/// Listens on an address. A free port is one that no earlier server of this process had, if there is one
/// among 64. Otherwise clients would apply what they know of a key's limits to the new
/// server.
pub(super) async fn bind(addr: SocketAddr) -> io::Result<TcpListener> {
    static USED: Mutex<BTreeSet<SocketAddr>> = Mutex::new(BTreeSet::new());

    for _ in 0..64 {
        let listener = TcpListener::bind(addr).await?;
        let is_new = lock(&USED).insert(listener.local_addr()?);
        if is_new || addr.port() != 0 {
            return Ok(listener);
        }
    }
    TcpListener::bind(addr).await
}

/// A listening socket that can be closed from anywhere, at once, without running another task.
pub(super) struct Listener(Mutex<Option<TcpListener>>);

impl Listener {
    pub(super) fn new(listener: TcpListener) -> Self {
        Self(Mutex::new(Some(listener)))
    }

    /// Closes the socket. Does not wake `accept`; `stop` does.
    pub(super) fn close(&self) {
        lock(&self.0).take();
    }

    /// Waits for a connection; `None` if the socket is closed.
    async fn accept(&self) -> Option<io::Result<(TcpStream, SocketAddr)>> {
        poll_fn(|context| match &*lock(&self.0) {
            Some(listener) => listener.poll_accept(context).map(Some),
            None => Poll::Ready(None),
        })
        .await
    }
}

/// Serves until `stop`, and then until the last connection has ended.
pub(super) async fn serve(
    listener: &Listener,
    server: Arc<ServeContext>,
    mut stop: watch::Receiver<bool>,
) {
    let limit = server.limits.connections;
    let mut connections = JoinSet::new();
    let mut count = 0;
    loop {
        let accepted = tokio::select! {
            // Further connections wait in the socket's backlog.
            accepted = listener.accept(), if connections.len() < limit => accepted,
            // Removes ended connections.
            Some(_) = connections.join_next() => continue,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        match accepted {
            Some(Ok((stream, peer))) => {
                count += 1;
                server.service.app().journal().settle().await;
                let caller = Caller {
                    peer: peer.ip(),
                    connection: count,
                    nth: 0,
                };
                let server = Arc::clone(&server);
                connections.spawn(connection::serve(stream, caller, server, stop.clone()));
            }
            // A waiting connection broke, or the process has no file descriptors left.
            Some(Err(_)) => real_time::sleep(Duration::from_millis(10)).await,
            None => break,
        }
    }
    listener.close();
    while connections.join_next().await.is_some() {}
}
