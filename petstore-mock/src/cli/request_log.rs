//! `-v`: one line for each request.

use std::{future::pending, sync::Arc};

use tokio::sync::watch;

use super::outcome::say;
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
    pub(super) fn new(journal: Arc<Journal>, is_verbose: bool) -> Self {
        let kept = is_verbose.then(|| journal.watch());
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
    pub(super) fn print(&mut self) {
        if self.kept.is_none() {
            return;
        }
        let (exchanges, seen) = self.journal.since(self.seen);
        self.seen = seen;
        for exchange in &exchanges {
            say(line(exchange));
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
    let length = exchange.ended.duration_since(exchange.arrived);
    let mut line = format!(
        "{} {} {key} {status} {:.1}ms",
        printable(exchange.method.as_str()),
        printable(&exchange.target),
        length.unwrap_or_default().as_secs_f64() * 1_000.0,
    );
    for fault in &exchange.faults {
        line += " fault=";
        line += &printable(fault);
    }
    line
}
