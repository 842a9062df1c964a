//! A thread with a runtime, for a server that is started without one.

use std::{
    io,
    sync::mpsc,
    thread::{self, JoinHandle},
};

use tokio::sync::oneshot;

/// The thread. Dropping it stops its runtime with all tasks, and waits for that.
pub(super) struct ServerThread {
    thread: Option<JoinHandle<()>>,
    stop: Option<oneshot::Sender<()>>,
}

impl ServerThread {
    /// Runs `start` on a new thread, and returns its result. Spawned tasks continue.
    pub(super) fn run<T: Send + 'static>(
        start: impl Future<Output = T> + Send + 'static,
    ) -> io::Result<(T, Self)> {
        let (tell, told) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("petstore-mock".to_owned()).spawn(move || {
            // Created here, because a runtime can't be dropped within another.
            match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime.block_on(async {
                    // If nobody waits for the result, `stop` was dropped too.
                    let _ = tell.send(Ok(start.await));
                    let _ = stopped.await;
                }),
                Err(error) => drop(tell.send(Err(error))),
            }
        })?;
        let thread = Self { thread: Some(thread), stop: Some(stop) };
        match told.recv() {
            Ok(result) => result.map(|value| (value, thread)),
            Err(_) => Err(io::Error::other("the thread of the server has panicked")),
        }
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // The thread has ended even if it panicked.
            let _ = thread.join();
        }
    }
}
