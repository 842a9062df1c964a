//! Sends several rows at a time. Each is recorded in the journal, and the journal is synced, before
//! the row is sent.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use futures_util::future::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use petstore_client::limits::{Priority, QuotaWindow, RateLimits};
use petstore_client::{Client, Error, ErrorKind, RequestOptions};
use tokio::time::{Instant, sleep_until};

use super::journal::Journal;
use super::outage::{Next, Outage};
use super::records::Record;
use super::rows::Row;
use crate::context::Context;
use crate::env::Signals;
use crate::error::{CliError, Result};
use crate::session::{cause, report_wait};
use crate::status::Progress;
use crate::time::{duration, elapsed, instant, plural};

/// Something that a task has come to.
enum Event {
    /// The announced rows are on the disk.
    Synced(Result<()>),
    /// The outcome of a row: the id of its pet, or an error.
    Row(usize, Result<i64, Error>),
    /// The answer to the request that asks whether the service works again.
    Answer(Result<(), Error>),
}

type Pending = Pin<Box<dyn Future<Output = Event>>>;

/// Sends the rows of an import.
pub(super) struct Sender<'a> {
    context: &'a Context,
    client: &'a Client,
    rows: &'a [Row],
    journal: &'a mut Journal,
    concurrency: usize,
    /// The most rows in flight at the moment.
    most: usize,
    outage: Outage,
    /// The number of rows to send in this run.
    total: usize,
    /// The number of rows that are created, found or rejected.
    done: usize,
    todo: VecDeque<usize>,
    /// The rows that are being announced in the journal.
    announced: Vec<usize>,
    in_flight: usize,
    is_asking: bool,
    tasks: FuturesUnordered<Pending>,
    /// Why the run ends before all rows are sent.
    stop: Option<CliError>,
    /// After a signal: when the rows in flight are given up.
    deadline: Option<Instant>,
}

impl<'a> Sender<'a> {
    pub(super) fn new(
        context: &'a Context,
        client: &'a Client,
        rows: &'a [Row],
        journal: &'a mut Journal,
        concurrency: usize,
        retry_for: Duration,
    ) -> Self {
        let mut todo = VecDeque::new();
        for (number, row) in rows.iter().enumerate() {
            if row.pet().is_some() && journal.state().is_unsent(number) {
                todo.push_back(number);
            }
        }
        let done = journal.state().totals().done();
        Self {
            context,
            client,
            rows,
            journal,
            concurrency,
            most: concurrency,
            outage: Outage::new(retry_for),
            total: todo.len(),
            done,
            todo,
            announced: Vec::new(),
            in_flight: 0,
            is_asking: false,
            tasks: FuturesUnordered::new(),
            stop: None,
            deadline: None,
        }
    }

    /// Sends rows until none is left, all further rows would fail, or a signal arrives. Then waits
    /// for the rows in flight.
    pub(super) async fn run(mut self, signals: &mut Signals) -> Result<()> {
        loop {
            self.draw();
            let wait = self.fill();
            let is_idle = self.in_flight == 0 && self.announced.is_empty();
            if is_idle && (self.todo.is_empty() || self.stop.is_some()) {
                break;
            }
            tokio::select! {
                biased;
                Some(signal) = signals.next() => {
                    self.stop.get_or_insert(signal.into());
                    if self.deadline.is_some() {
                        break;
                    }
                    self.report_stop();
                }
                Some(event) = self.tasks.next() => self.take(event),
                () = until(wait) => {}
                () = until(self.deadline) => break,
            }
        }
        self.context.ui().set_activity(None);
        let mut ended = Ok(());
        // Rows that are still in flight stay unknown.
        if self.in_flight == 0 {
            let now = self.context.clock().now();
            ended = self.journal.end(instant(now)).await;
        }
        self.stop.map_or(ended, Err)
    }

    /// Starts what may be started. Returns when to look again, if nothing may be sent until then.
    fn fill(&mut self) -> Option<Instant> {
        if self.stop.is_some() || self.todo.is_empty() || !self.announced.is_empty() {
            return None;
        }
        let most = match self.outage.next() {
            Next::Wait(until) => return Some(until),
            Next::Ask => {
                self.ask();
                return None;
            }
            Next::SendOne => 1,
            Next::Send => self.most,
        };
        self.context.ui().set_activity(None);
        // Each announcement is a sync, so rows are announced together.
        let free = most.saturating_sub(self.in_flight);
        if free * 2 < most {
            return None;
        }
        let limits = self.client.limits().snapshot();
        if let Some(blocked) = &limits.blocked
            && !blocked.remaining.is_zero()
        {
            if self.in_flight > 0 {
                return None;
            }
            if blocked.remaining <= self.max_wait() {
                report_wait(self.context.ui(), blocked);
                return Some(Instant::now() + blocked.remaining);
            }
            // One row is refused, and its error says why.
            self.announce(1);
            return None;
        }
        // The first row goes alone, because its response shows the limits.
        let is_first = self.todo.len() + self.in_flight == self.total;
        let most = if is_first { 1 } else { most };
        match room(&limits, self.in_flight, most) {
            0 => {}
            room => self.announce(room),
        }
        None
    }

    /// Records the next rows. They are sent as soon as the record is on the disk.
    fn announce(&mut self, room: usize) {
        let rows: Vec<_> = self.todo.drain(..room.min(self.todo.len())).collect();
        let digest = |row: &usize| Some((*row, self.rows[*row].digest()?));
        let digests = rows.iter().filter_map(digest).collect();
        match self.journal.announce(digests) {
            Ok(synced) => {
                self.announced = rows;
                self.tasks.push(Box::pin(synced.map(Event::Synced)));
            }
            Err(error) => self.stop_with(error),
        }
    }

    /// Asks whether the service works again.
    fn ask(&mut self) {
        if self.is_asking {
            return;
        }
        self.is_asking = true;
        let once = RequestOptions::new().max_attempts(1);
        let answer = self.client.pets().list().limit(1).options(&once).send();
        self.tasks
            .push(Box::pin(async { Event::Answer(answer.await.map(drop)) }));
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Synced(synced) => self.send(synced),
            Event::Row(row, outcome) => {
                self.in_flight -= 1;
                let record = self.outcome(row, outcome);
                self.record(record);
            }
            Event::Answer(answer) => self.answered(answer),
        }
    }

    fn record(&mut self, record: Record) {
        if let Err(error) = self.journal.record(vec![record]) {
            self.stop_with(error);
        }
    }

    /// Sends the announced rows, unless the run has ended in the meantime.
    fn send(&mut self, synced: Result<()>) {
        if let Err(error) = synced {
            self.stop_with(error);
        }
        let rows = std::mem::take(&mut self.announced);
        if self.stop.is_some() {
            return self.record(Record::Unsent(rows));
        }
        // The import itself waits and tries again. Other commands with the same key go first.
        let once = RequestOptions::new()
            .max_attempts(1)
            .priority(Priority::Low);
        for row in rows {
            let Some(pet) = self.rows[row].pet() else {
                continue;
            };
            self.in_flight += 1;
            let created = self.client.pets().create(pet).options(&once).send();
            self.tasks.push(Box::pin(async move {
                let id = created.await.map(|pet| pet.id);
                Event::Row(row, id)
            }));
        }
    }

    fn answered(&mut self, answer: Result<(), Error>) {
        self.is_asking = false;
        match answer {
            Err(error) if is_failure(&error) => self.failed(error),
            _ => self.outage.answered(),
        }
    }

    /// Returns the record of an outcome.
    fn outcome(&mut self, row: usize, outcome: Result<i64, Error>) -> Record {
        let error = match outcome {
            Ok(id) => {
                self.outage.succeeded();
                self.done += 1;
                self.most = self.concurrency.min(self.most + 1);
                return Record::Created(row, id);
            }
            Err(error) => error,
        };
        let is_refused = error
            .status()
            .is_some_and(|status| status.is_client_error());
        let record = if error.may_have_been_processed() {
            // Behind a gateway that gave up, the service may still process the row.
            if matches!(error.status().map(|it| it.as_u16()), None | Some(502..=504)) {
                self.journal.expect_late();
            }
            Record::Unknown(row, why(&error))
        } else if is_refused && !self.ends_run(&error) && !error.is_transient() {
            self.outage.succeeded();
            self.done += 1;
            return Record::Rejected(row, why(&error));
        } else {
            self.todo.push_front(row);
            Record::Unsent(vec![row])
        };
        // Until a row succeeds, none is sent in place of this one: a service that is away makes no
        // more rows unknown than are in flight.
        self.most = self.in_flight.max(1);
        if !self.must_only_wait(&error) {
            self.failed(error);
        }
        record
    }

    fn failed(&mut self, error: Error) {
        if self.stop.is_some() {
            return;
        }
        if self.ends_run(&error) {
            return self.stop_for(error);
        }
        // The client knows the end of a 429, and `fill` waits for it.
        let told = match error.is_rate_limited() {
            true => None,
            false => error.retry_after(),
        };
        let ui = self.context.ui();
        if let Some(length) = self.outage.failed(told) {
            if !length.is_zero() {
                let length = elapsed(length);
                ui.note(&format!(
                    "gave up after {length} without success (`--retry-for`)"
                ));
            }
            self.stop_for(error);
        } else if let Next::Wait(until) = self.outage.next() {
            let rest = until.saturating_duration_since(Instant::now());
            let at = self.context.clock().now() + rest;
            let paused = format!("paused ({})", cause(&error));
            ui.waits(&format!("{paused}; continues"), &paused, rest, at);
        }
    }

    /// Returns whether the client refused a row only because others go before it, or until a limit
    /// resets. A service that refuses row after row fails.
    fn must_only_wait(&self, error: &Error) -> bool {
        if !error.is_rate_limited() || error.status().is_some() {
            return false;
        }
        match error.blocked() {
            Some(blocked) => blocked.remaining <= self.max_wait(),
            None => self.in_flight > 0,
        }
    }

    /// Returns whether all further rows would fail too: because of the key, the URL, or a limit that
    /// the run does not wait for.
    fn ends_run(&self, error: &Error) -> bool {
        if let Some(blocked) = error.blocked() {
            return blocked.remaining > self.max_wait();
        }
        let is_kind = matches!(
            error.kind(),
            ErrorKind::Config | ErrorKind::Credentials | ErrorKind::InvalidRequest | ErrorKind::Tls
        );
        let status = error.status().map_or(0, |status| status.as_u16());
        is_kind || matches!(status, 300..=399 | 401 | 403 | 404 | 405 | 410)
    }

    fn max_wait(&self) -> Duration {
        self.context.settings().values().max_wait()
    }

    /// Ends the run because of a request.
    fn stop_for(&mut self, error: Error) {
        self.stop_with(error.into());
        self.release();
    }

    /// Has the rows that wait in the client end without being sent.
    fn release(&self) {
        let client = self.client.clone();
        tokio::spawn(async move { client.close().await });
    }

    /// Ends the run. The first reason counts.
    fn stop_with(&mut self, error: CliError) {
        self.stop.get_or_insert(error);
    }

    fn report_stop(&mut self) {
        self.release();
        let timeout = self.context.settings().values().timeout();
        self.deadline = Some(Instant::now() + timeout);
        if self.in_flight > 0 {
            let rows = plural(self.in_flight, "row", "rows");
            let most = duration(timeout);
            self.context.ui().note_now(&format!(
                "stopping: {rows} in flight, at most {most}; Ctrl-C again stops at once"
            ));
        }
    }

    fn draw(&self) {
        let (done, all) = (self.done, self.rows.len());
        self.context
            .ui()
            .set_progress(Some(Progress::Bar { done, all }));
    }
}

/// Ends at a time; never if there is none.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Returns how many more rows may be announced. Rows beyond a known quota wait here: after a kill,
/// those that wait in the client would be unknown.
fn room(limits: &RateLimits, in_flight: usize, most: usize) -> usize {
    let free = most.saturating_sub(in_flight);
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    // Requests that wait in the client do not count as used yet.
    let queued = in_flight.saturating_sub(size(limits.in_flight.into()));
    let left = |window: &QuotaWindow| size(window.remaining).saturating_sub(queued);
    // No request counts as used in the successor of a window that has ended.
    let next = |window: &QuotaWindow| size(window.limit).saturating_sub(in_flight);
    let current = limits.windows.iter().map(left);
    let room = current.chain(limits.ended.iter().map(next)).min();
    // If nothing is in flight, one row goes: its error says why no more can be sent.
    let least = usize::from(in_flight == 0);
    room.unwrap_or(free).max(least).min(free)
}

/// Returns whether an error shows that the service fails.
fn is_failure(error: &Error) -> bool {
    match error.status() {
        Some(status) => status.is_server_error(),
        None => !error.is_rate_limited(),
    }
}

/// Returns why a row was rejected, or why it is unknown whether it was created.
fn why(error: &Error) -> String {
    if error.status().is_some_and(|status| status.is_success()) {
        return error.problem().to_owned();
    }
    let mut why = cause(error);
    if let Some(code) = error.code() {
        why += &format!(" {code}");
    }
    if let Some(message) = error.message() {
        why += &format!(": {message}");
    }
    why
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use petstore_client::limits::Quota;

    use super::*;

    #[test]
    fn one_row_goes_alone_although_nothing_seems_left() {
        let mut limits = RateLimits::default();
        limits.windows = vec![QuotaWindow::new(
            Quota::Minute,
            60,
            0,
            SystemTime::UNIX_EPOCH,
        )];
        assert_eq!(room(&limits, 0, 8), 1);
        assert_eq!(room(&limits, 1, 8), 0);
    }
}
