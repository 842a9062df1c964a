//! The tasks of one HTTP/2 connection, a request each. They end with it.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::rt::Executor;
use tokio::task::JoinSet;

/// Runs the requests of a connection; when its last clone is dropped, those at hand are cut.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams(Arc<Mutex<JoinSet<()>>>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Takes the remains of others away.
        while streams.try_join_next().is_some() {}
        streams.spawn(stream);
    }
}
