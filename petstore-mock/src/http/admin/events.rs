//! `GET /_mock/events`: exchanges and changes as server-sent events. A slow reader delays nobody.
//! It misses the exchanges that the journal drops in the meantime.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::State,
    response::{Sse, sse::Event},
};
use futures_util::{Stream, stream};
use http::HeaderMap;
use serde_json::json;
use tokio::sync::{
    broadcast::{self, error::RecvError},
    watch,
};

use crate::{
    changes::ChangeKind, clock::ClockState, clock::real_time, exchange::Exchange, journal::Journal,
    state::AppState,
};

/// The interval of comments while there are no events, in real time. They keep the reader or a
/// proxy from closing the connection.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Answers with a stream of events. If `Last-Event-ID` is given, it starts with the events since
/// then.
pub(super) async fn events(
    State(app): State<Arc<AppState>>,
    headers: HeaderMap,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let last = headers
        .get("last-event-id")
        .and_then(|id| id.to_str().ok()?.parse().ok());
    let feed = Feed::new(&app, last);
    Sse::new(stream::unfold(feed, |mut feed| async {
        let event = feed.next().await?;
        Some((Ok(event), feed))
    }))
}

struct Feed {
    journal: Arc<Journal>,
    kept: watch::Receiver<u64>,
    /// The number of exchanges in the journal when it was last read.
    seen: u64,
    changes: broadcast::Receiver<ChangeKind>,
    clock: watch::Receiver<ClockState>,
    ready: VecDeque<Event>,
}

impl Feed {
    fn new(app: &AppState, last: Option<u64>) -> Self {
        let journal = Arc::clone(app.journal());
        // Start watching before the journal is read, so that no exchange is missed in between.
        let kept = journal.watch();
        let (missed, seen) = journal.since(last.map_or(u64::MAX, |_| 0));
        let is_missed = |exchange: &&Exchange| last.is_some_and(|last| exchange.number > last);
        let ready = missed.iter().filter(is_missed).map(of_exchange).collect();
        let (changes, clock) = (app.changes().listen(), app.clock().subscribe());
        Self {
            journal,
            kept,
            seen,
            changes,
            clock,
            ready,
        }
    }

    /// Returns the next event; `None` when the server stops.
    async fn next(&mut self) -> Option<Event> {
        while self.ready.is_empty() {
            if self.journal.is_closed() {
                return None;
            }
            tokio::select! {
                woken = self.kept.changed() => {
                    woken.ok()?;
                    let (new, seen) = self.journal.since(self.seen);
                    self.seen = seen;
                    self.ready.extend(new.iter().map(of_exchange));
                }
                change = self.changes.recv() => match change {
                    Ok(what) => self.ready.push_back(of_change(what)),
                    // Some changes were missed, so report that anything may have changed.
                    Err(RecvError::Lagged(_)) => {
                        self.ready.extend(ChangeKind::ALL.map(of_change));
                    }
                    Err(RecvError::Closed) => return None,
                },
                set = self.clock.changed() => {
                    set.ok()?;
                    self.ready.push_back(of_change(ChangeKind::Clock));
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
    let event = Event::default()
        .event("exchange")
        .id(exchange.number.to_string());
    // Texts and numbers can always be serialized.
    event.data(serde_json::to_string(exchange).unwrap_or_default())
}

fn of_change(what: ChangeKind) -> Event {
    let event = Event::default().event("changed");
    event.data(json!({ "what": what }).to_string())
}
