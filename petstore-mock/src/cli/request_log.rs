//! `-v`: one line for each request.

use std::{
    fmt::Write as _,
    future::pending,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::sync::watch;

use super::outcome::Io;
use crate::{exchange::Exchange, journal::Journal, text::printable};

/// The requests that were not logged yet.
pub(super) struct RequestLog {
    journal: Arc<Journal>,
    /// `None` if requests are not logged.
    kept: Option<watch::Receiver<u64>>,
    /// The number of exchanges that were logged, or dropped before they could be.
    seen: u64,
}

impl RequestLog {
    pub(super) fn new(journal: Arc<Journal>, io: &Io<'_>) -> Self {
        let kept = io.is_verbose.then(|| journal.watch());
        Self {
            journal,
            kept,
            seen: 0,
        }
    }

    /// Waits for requests to end. Never returns if they are not logged.
    pub(super) async fn changed(&mut self) {
        let Some(kept) = &mut self.kept else {
            return pending().await;
        };
        if kept.changed().await.is_err() {
            // The journal is gone, so nothing follows.
            self.kept = None;
        }
    }

    /// Prints the requests that ended since the last call.
    pub(super) fn print(&mut self, io: &mut Io<'_>) {
        if self.kept.is_none() {
            return;
        }
        let (exchanges, seen) = self.journal.since(self.seen);
        self.seen = seen;
        for exchange in &exchanges {
            // It is not an error if the reader has closed the stream.
            let _ = writeln!(io.err, "{}", line(exchange));
        }
    }
}

/// Returns the line of a request: method, path, key, status, duration on the mock's clock, faults.
fn line(exchange: &Exchange) -> String {
    let key = match &exchange.key {
        Some(label) => label.name(),
        None => "-".to_owned(),
    };
    let status = match exchange.status {
        Some(status) => status.to_string(),
        None => "-".to_owned(),
    };
    let milliseconds = length(exchange.arrived, exchange.ended).as_secs_f64() * 1_000.0;
    let mut line = format!(
        "{} {} {key} {status} {milliseconds:.1}ms",
        printable(exchange.method.as_str()),
        printable(&exchange.target),
    );
    for fault in &exchange.faults {
        // Writing to a string cannot fail.
        let _ = write!(line, " fault={}", printable(fault));
    }
    line
}

fn length(from: SystemTime, to: SystemTime) -> Duration {
    to.duration_since(from).unwrap_or_default()
}
