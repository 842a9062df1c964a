//! `GET /_mock/events`: exchanges and changes as server-sent events. A slow reader delays nobody.
//! It misses the exchanges that the journal drops in the meantime.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::State,
    response::{Sse, sse::Event},
};
use futures_util::{Stream, stream};
use tokio::sync::watch;

use crate::{
    clock::ClockState, clock::real_time, exchange::Exchange, journal::Journal, state::AppState,
};

/// The interval of comments while there are no events, in real time. They keep the reader or a
/// proxy from closing the connection.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Answers with a stream of the events from now on.
pub(super) async fn events(
    State(app): State<Arc<AppState>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    Sse::new(stream::unfold(Feed::new(&app), |mut feed| async {
        let event = feed.next().await?;
        Some((Ok(event), feed))
    }))
}

struct Feed {
    journal: Arc<Journal>,
    kept: watch::Receiver<u64>,
    /// The number of exchanges in the journal when it was last read.
    seen: u64,
    changes: watch::Receiver<()>,
    clock: watch::Receiver<ClockState>,
    ready: VecDeque<Event>,
}

impl Feed {
    fn new(app: &AppState) -> Self {
        let journal = Arc::clone(app.journal());
        // Start watching before the journal is counted, so that no exchange is missed in between.
        let kept = journal.watch();
        let (_, seen) = journal.since(u64::MAX);
        Self {
            journal,
            kept,
            seen,
            changes: app.changes().listen(),
            clock: app.clock().subscribe(),
            ready: VecDeque::new(),
        }
    }

    /// Returns the next event; `None` when the server stops.
    async fn next(&mut self) -> Option<Event> {
        while self.ready.is_empty() {
            if self.journal.is_closed() {
                return None;
            }
            tokio::select! {
                kept = self.kept.changed() => {
                    kept.ok()?;
                    let (new, seen) = self.journal.since(self.seen);
                    self.seen = seen;
                    self.ready.extend(new.iter().map(of_exchange));
                }
                changed = self.changes.changed() => {
                    changed.ok()?;
                    self.ready.push_back(of_change());
                }
                moved = self.clock.changed() => {
                    moved.ok()?;
                    self.ready.push_back(of_change());
                }
                () = real_time::sleep(KEEP_ALIVE_INTERVAL) => {
                    self.ready.push_back(Event::default().comment("still here"));
                }
            }
        }
        self.ready.pop_front()
    }
}

fn of_exchange(exchange: &Exchange) -> Event {
    let event = Event::default().event("exchange");
    // Texts and numbers can always be serialized.
    event.data(serde_json::to_string(exchange).unwrap_or_default())
}

fn of_change() -> Event {
    Event::default().event("changed").data("{}")
}
