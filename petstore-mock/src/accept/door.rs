//! The listening socket, which can be closed from anywhere and at once: after that the port refuses
//! connections, whether or not the runtime gets to run another task.

use std::{
    future::poll_fn,
    io,
    net::SocketAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use tokio::net::{TcpListener, TcpStream};

/// A listener, until it is closed.
#[derive(Debug)]
pub(crate) struct Door(Mutex<Option<TcpListener>>);

impl Door {
    pub(crate) fn new(listener: TcpListener) -> Self {
        Self(Mutex::new(Some(listener)))
    }

    /// Closes the socket. Who waits in `accept` is not woken: it is stopped by other means.
    pub(crate) fn close(&self) {
        self.lock().take();
    }

    /// Waits for a connection; returns nothing if the door is closed.
    pub(crate) async fn accept(&self) -> Option<io::Result<(TcpStream, SocketAddr)>> {
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
