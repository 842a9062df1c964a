//! The listening socket and the accept loop. It accepts connections until `stop`, and then waits
//! for the existing ones. Dropping it closes them all.

use std::{
    collections::BTreeSet,
    future::poll_fn,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use super::connection::{self, ServeContext};
use crate::{
    clock::real_time,
    journal::{Caller, OpenConnection},
};

/// Listens on an address. A free port is one that no earlier server of this process had, if there is one
/// among 64. Otherwise clients would apply what they know of a key's limits to the new
/// server.
pub(super) async fn bind(addr: SocketAddr) -> io::Result<TcpListener> {
    static USED: Mutex<BTreeSet<SocketAddr>> = Mutex::new(BTreeSet::new());

    for _ in 0..64 {
        let listener = TcpListener::bind(addr).await?;
        let is_new = USED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(listener.local_addr()?);
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
        self.lock().take();
    }

    /// Waits for a connection; `None` if the socket is closed.
    async fn accept(&self) -> Option<io::Result<(TcpStream, SocketAddr)>> {
        poll_fn(|context| match &*self.lock() {
            Some(listener) => listener.poll_accept(context).map(Some),
            None => Poll::Ready(None),
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, Option<TcpListener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
                let journal = &server.service.app().journal();
                journal.settle().await;
                let open = OpenConnection::new(Arc::clone(journal), count);
                let caller = Caller {
                    peer: peer.ip(),
                    connection: count,
                    nth: 0,
                };
                let server = Arc::clone(&server);
                connections.spawn(connection::serve(
                    stream,
                    caller,
                    open,
                    server,
                    stop.clone(),
                ));
            }
            Some(Err(error)) if is_of_one_connection(&error) => {}
            // Usually the process has no file descriptors left.
            Some(Err(_)) => real_time::sleep(Duration::from_millis(100)).await,
            None => break,
        }
    }
    listener.close();
    while connections.join_next().await.is_some() {}
}

/// Whether accepting failed only because a waiting connection broke. Then no pause is needed.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_only_for_errors_that_concern_all_connections() {
        assert!(is_of_one_connection(
            &io::ErrorKind::ConnectionAborted.into()
        ));
        let too_many_open_files = io::Error::from_raw_os_error(24);
        assert!(!is_of_one_connection(&too_many_open_files));
    }
}
