//! `GET /_mock/events`: exchanges as they end, and what is changed otherwise, as server-sent events.
//! A slow reader holds nobody up: it misses what the journal forgets meanwhile.

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
    changes::What, clock, exchange::Exchange, journal::Journal, real_time, state::AppState,
};

/// How often something is sent to a reader that hears of nothing, so that neither it nor what lies
/// between takes the connection for dead. Real time: it is about the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Answers a stream that begins with what was missed since `Last-Event-ID`, if that is sent.
pub(super) async fn events(
    State(app): State<Arc<AppState>>,
    headers: HeaderMap,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let feed = Feed::new(&app, last);
    Sse::new(stream::unfold(feed, |mut feed| async {
        let event = feed.next().await?;
        Some((Ok(event), feed))
    }))
}

struct Feed {
    journal: Arc<Journal>,
    kept: watch::Receiver<u64>,
    /// How many exchanges were kept when it looked last.
    seen: u64,
    changes: broadcast::Receiver<What>,
    clock: clock::Watch,
    ready: VecDeque<Event>,
}

impl Feed {
    fn new(app: &AppState, last: Option<u64>) -> Self {
        let journal = Arc::clone(app.journal());
        // From now on it is woken; what came before is looked for only then.
        let kept = journal.watch();
        let (missed, seen) = journal.since(last.map_or(u64::MAX, |_| 0));
        let is_missed = |exchange: &&Exchange| last.is_some_and(|last| exchange.number > last);
        let ready = missed.iter().filter(is_missed).map(of_exchange).collect();
        let (changes, clock) = (app.listen(), app.clock().watch());
        Self { journal, kept, seen, changes, clock, ready }
    }

    /// Returns the next event; nothing once the server stops.
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
                    // Whatever it was, it has to be looked at anew.
                    Err(RecvError::Lagged(_)) => self.ready.extend(What::ALL.map(of_change)),
                    Err(RecvError::Closed) => return None,
                },
                () = self.clock.changed() => self.ready.push_back(of_change(What::Clock)),
                () = real_time::sleep(KEEP_ALIVE) => {
                    self.ready.push_back(Event::default().comment("still here"));
                }
            }
        }
        self.ready.pop_front()
    }
}

fn of_exchange(exchange: &Exchange) -> Event {
    let event = Event::default().event("exchange").id(exchange.number.to_string());
    // Texts and numbers: there is nothing in it that JSON can't say.
    event.data(serde_json::to_string(exchange).unwrap_or_default())
}

fn of_change(what: What) -> Event {
    let event = Event::default().event("changed");
    event.data(json!({ "what": what.name() }).to_string())
}
