//! Sends several rows at a time, and records them in the journal before and after.

use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::time::Duration;

use futures_util::future::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use petstore_client::limits::{Priority, RateLimits};
use petstore_client::{Client, Error, Pet, RequestOptions};
use tokio::time::{Instant, sleep, sleep_until};

use super::forecast::Quotas;
use super::input::Input;
use super::journal::{BLOCK, Journal, Record, RowState};
use super::pace::{Pace, is_hopeless};
use super::rows::Row;
use crate::context::Context;
use crate::env::Signals;
use crate::error::Result;
use crate::session::report_wait;
use crate::status::Progress;
use crate::time::{count, duration, plural};

/// The speed is shown after it has been measured for this long.
const MEASURED: Duration = Duration::from_secs(2);

/// A row and its outcome.
type Outcome = (usize, Result<Pet, Error>);
type Request = Pin<Box<dyn Future<Output = Outcome>>>;

/// Returns the state of a row whose request failed.
fn state_after(error: &Error) -> RowState {
    let status = error.status().map_or(0, |status| status.as_u16());
    match status {
        _ if error.may_have_been_processed() => RowState::Unknown,
        400..500 if !is_hopeless(error) => RowState::Rejected(reason(status, error)),
        _ => RowState::Announced,
    }
}

/// Returns why the service refused a row.
fn reason(status: u16, error: &Error) -> String {
    let mut reason = status.to_string();
    if let Some(code) = error.code() {
        reason += &format!(" {code}");
    }
    if let Some(message) = error.message() {
        reason += &format!(": {message}");
    }
    reason
}

/// Returns how many more rows may be sent. Rows wait here and not in the client: after a kill, a
/// row that waits here is certainly unsent, and one that waits in the client would be unknown. Few
/// rows wait in the client: their number is what it asks for if other processes share the key.
fn room(limits: &RateLimits, in_flight: usize, concurrency: usize) -> usize {
    let free = concurrency.saturating_sub(in_flight);
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let left = limits.windows.iter().map(|window| window.remaining).min();
    // Requests that wait in the client do not count as used yet.
    let queued = in_flight.saturating_sub(size(limits.in_flight.into()));
    let room = match (limits.wait_reason, left) {
        (Some(_), _) => 0,
        (None, Some(left)) => size(left).saturating_sub(queued),
        (None, None) => free,
    };
    // If nothing is in flight, allow one request: its error says why no more can be sent.
    room.max(usize::from(in_flight == 0)).min(free)
}

/// Sends the rows of an import.
pub(super) struct Sender<'a> {
    context: &'a Context,
    client: &'a Client,
    input: &'a Input,
    journal: &'a mut Journal,
    pace: Pace,
    todo: VecDeque<usize>,
    requests: FuturesUnordered<Request>,
    in_flight: BTreeSet<usize>,
    /// The first row that is not announced in the journal.
    announced: usize,
    /// The largest number of known quotas.
    quotas: usize,
    /// The number of rows to send in this run.
    total: usize,
    started: Instant,
    /// After a signal: when the rows in flight are given up.
    deadline: Option<Instant>,
}

impl<'a> Sender<'a> {
    pub(super) fn new(
        context: &'a Context,
        client: &'a Client,
        input: &'a Input,
        journal: &'a mut Journal,
        pace: Pace,
    ) -> Self {
        let todo: VecDeque<_> = journal.state().rows_where(RowState::is_left).into();
        Self {
            context,
            client,
            input,
            journal,
            pace,
            total: todo.len(),
            todo,
            requests: FuturesUnordered::new(),
            in_flight: BTreeSet::new(),
            announced: 0,
            quotas: 0,
            started: Instant::now(),
            deadline: None,
        }
    }

    /// Sends rows until none is left, all further rows would fail, or a signal arrives. Then waits
    /// for the rows in flight.
    pub(super) async fn run(mut self, signals: &mut Signals) -> Result<()> {
        let connector = self.context.connector();
        connector.before_sending(self.journal.touch());
        loop {
            let limits = self.client.limits().snapshot();
            if self.context.ui().is_live()
                || limits.blocked.is_some()
                || self.pace.pause().is_some()
            {
                self.draw(&limits);
            }
            let has_more = !self.todo.is_empty() && !self.pace.has_stopped();
            if !has_more && self.in_flight.is_empty() {
                break;
            }
            let mut wait = None;
            if has_more {
                wait = self.wait(&limits);
                if wait.is_none()
                    && let Err(error) = self.fill(&limits).await
                {
                    // The outcomes of the rows in flight still count.
                    self.pace.stop(error);
                    continue;
                }
            }
            tokio::select! {
                biased;
                Some(signal) = signals.next() => {
                    self.pace.stop(signal.into());
                    if self.deadline.is_some() {
                        break;
                    }
                    self.report_stop();
                }
                Some(first) = self.requests.next() => self.take(first),
                () = sleep(wait.unwrap_or_default()), if wait.is_some() => {}
                () = sleep_until(self.deadline.unwrap_or(self.started)), if self.deadline.is_some() => {
                    break;
                }
            }
        }
        self.finish()
    }

    /// Ends the run. The responses to rows that are still in flight are lost.
    fn finish(self) -> Result<()> {
        self.context.ui().set_activity(None);
        if !self.in_flight.is_empty() {
            let rows = self.in_flight.iter().copied().collect();
            let at = self.journal.now();
            self.journal.record(vec![Record::Lost { at, rows }])?;
        }
        let ended = self.journal.end();
        if let Some(length) = self.pace.gave_up_after() {
            let length = duration(length);
            let text = format!("gave up after {length} without success (`--retry-for`)");
            self.context.ui().note(&text);
        }
        self.pace.finish().and(ended)
    }

    /// Sends as many rows as may be sent.
    async fn fill(&mut self, limits: &RateLimits) -> Result<()> {
        if let Some(&next) = self.todo.front()
            && next >= self.announced
        {
            self.announce(next).await?;
        }
        // The first row goes alone, because its response shows the limits. So does the first row of
        // a new window, because its response shows what is left.
        self.quotas = self.quotas.max(limits.windows.len());
        let done = self.total - self.todo.len() - self.in_flight.len();
        let is_first = done == 0 || limits.windows.len() < self.quotas;
        let concurrency = match self.pace.concurrency() {
            concurrency if is_first => concurrency.min(1),
            concurrency => concurrency,
        };
        let room = room(limits, self.in_flight.len(), concurrency);
        let may_go = |row: &&usize| **row < self.announced;
        let batch = self.todo.iter().take(room).take_while(may_go).count();
        let batch: Vec<_> = self.todo.drain(..batch).collect();
        if batch.is_empty() {
            return Ok(());
        }
        let sent = Record::Sent {
            at: self.journal.now(),
            rows: batch.clone(),
        };
        self.journal.write(vec![sent])?;
        for row in batch {
            self.in_flight.insert(row);
            self.requests.push(self.request(row));
        }
        Ok(())
    }

    /// Announces the next rows in the journal.
    async fn announce(&mut self, from: usize) -> Result<()> {
        let rows = self.input.rows();
        let until = rows.len().min(from + BLOCK);
        let digests = rows[from..until].iter().map(Row::digest).collect();
        self.journal.announce(from, digests).await?;
        self.announced = until;
        Ok(())
    }

    /// Returns how long no row may be sent. If a limit lasts longer than `--max-wait`, there is no
    /// wait: the next request fails, with the reason.
    fn wait(&self, limits: &RateLimits) -> Option<Duration> {
        if let Some((rest, reason)) = self.pace.pause() {
            let until = self.context.connector().clock().now() + rest;
            let text = format!("{}; continues", reason.text);
            self.context.ui().waits(&text, &reason.short, rest, until);
            return Some(rest);
        }
        if self.pace.outage().is_some() {
            self.context.ui().set_activity(None);
        }
        let blocked = limits.blocked.as_ref()?;
        let is_over = blocked.remaining.is_zero();
        if !self.in_flight.is_empty()
            || is_over
            || blocked.remaining > self.context.settings().values().max_wait()
        {
            return None;
        }
        report_wait(self.context.ui(), blocked);
        Some(blocked.remaining)
    }

    fn report_stop(&mut self) {
        let timeout = self.context.settings().values().timeout();
        self.deadline = Some(Instant::now() + timeout);
        if self.in_flight.is_empty() {
            return;
        }
        let rows = plural(self.in_flight.len(), "row", "rows");
        let text = format!("stopping: {rows} in flight, at most {}", duration(timeout));
        let text = format!("{text}; Ctrl-C again stops at once");
        self.context.ui().note_now(&text);
    }

    /// Takes `first` and all other finished outcomes, and writes them to the journal.
    fn take(&mut self, first: Outcome) {
        let mut outcomes = vec![first];
        while let Some(Some(outcome)) = self.requests.next().now_or_never() {
            outcomes.push(outcome);
        }
        let at = self.journal.now();
        let mut records = Vec::with_capacity(outcomes.len());
        for (row, outcome) in outcomes {
            self.in_flight.remove(&row);
            records.push(self.outcome(at, row, outcome));
        }
        if let Err(error) = self.journal.record(records) {
            self.pace.stop(error);
        }
    }

    /// Returns the record of an outcome.
    fn outcome(&mut self, at: u64, row: usize, outcome: Result<Pet, Error>) -> Record {
        let error = match outcome {
            Ok(pet) => {
                self.pace.succeeded();
                return Record::Rows(RowState::Created(pet.id), vec![row]);
            }
            Err(error) => error,
        };
        let rows = vec![row];
        let record = match state_after(&error) {
            RowState::Unknown => Record::Lost { at, rows },
            state @ RowState::Rejected(_) => {
                self.pace.succeeded();
                return Record::Rows(state, rows);
            }
            state => {
                // The request was not processed, so the row is sent later.
                self.todo.push_front(row);
                Record::Rows(state, rows)
            }
        };
        if self.has_waited_in_line(&error) {
            self.pace.limit(self.in_flight.len());
        } else {
            self.pace.failed(error);
        }
        record
    }

    /// Returns whether a row may go later: others were before it for as long as `--max-wait`. A
    /// limit that lasts longer than that, or the requests of other processes, would hold up the
    /// next row, too.
    fn has_waited_in_line(&self, error: &Error) -> bool {
        if !error.is_rate_limited() || error.status().is_some() {
            return false;
        }
        match error.blocked() {
            Some(blocked) => blocked.remaining <= self.context.settings().values().max_wait(),
            None => !self.in_flight.is_empty(),
        }
    }

    fn request(&self, row: usize) -> Request {
        let pets = self.client.pets();
        // Other commands with the same key go first.
        let call = pets.create(self.input.rows()[row].pet());
        let low = RequestOptions::new().priority(Priority::Low);
        let response = call.options(&low).send();
        Box::pin(async move { (row, response.await) })
    }

    fn draw(&self, limits: &RateLimits) {
        let left = self.todo.len() + self.in_flight.len();
        let clock = self.context.connector().clock();
        let max_wait = self.context.settings().values().max_wait();
        let now = limits.service_time.unwrap_or_else(|| clock.now());
        let forecast = Quotas::new(limits, now).forecast(left);
        let forecast = forecast.map(|forecast| forecast.short(clock, max_wait));
        let forecast = match forecast {
            Some(forecast) if !forecast.is_empty() => forecast,
            _ => speed(self.total - left, left, self.started.elapsed()),
        };
        let all = self.input.rows().len();
        self.context.ui().set_progress(Some(Progress::Bar {
            done: all - left,
            all,
            forecast,
        }));
    }
}

/// Describes the speed so far, and how long the remaining rows take.
fn speed(done: usize, left: usize, elapsed: Duration) -> String {
    if done == 0 {
        return "starting".to_owned();
    }
    if elapsed < MEASURED {
        return String::new();
    }
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let done = done as f64;
    let left = left as f64;
    let each = elapsed.as_secs_f64() / done;
    let rest = duration(Duration::from_secs_f64((left * each).min(1e9)));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate, which is positive"
    )]
    let amount = |seconds: f64| count((seconds / each).round() as u64);
    if each <= 1.0 {
        format!("{} a second, {rest} left", amount(1.0))
    } else {
        format!("{} a minute, {rest} left", amount(60.0))
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use petstore_client::limits::{Quota, QuotaWindow, WaitReason};

    use super::*;

    #[test]
    fn one_row_is_sent_while_the_limits_are_unknown() {
        let limits = RateLimits::default();
        assert_eq!(room(&limits, 0, 1), 1);
        assert_eq!(room(&limits, 1, 1), 0);
        assert_eq!(room(&limits, 0, 16), 16, "a service that shows no limit");
        assert_eq!(room(&limits, 5, 16), 11);
        assert_eq!(room(&limits, 0, 0), 0, "in a pause");
    }

    fn limits(left: u64, in_flight: u32) -> RateLimits {
        let reset = SystemTime::UNIX_EPOCH;
        let mut limits = RateLimits::default();
        limits.windows = vec![
            QuotaWindow::new(Quota::Day, 1_000, 900, reset),
            QuotaWindow::new(Quota::Minute, 60, left, reset),
        ];
        limits.in_flight = in_flight;
        limits
    }

    #[test]
    fn rows_that_wait_in_the_client_take_room_too() {
        // Five rows are in flight, and the service has counted all of them, or two.
        assert_eq!(room(&limits(10, 5), 5, 16), 10);
        assert_eq!(room(&limits(10, 2), 5, 16), 7);
        assert_eq!(room(&limits(3, 2), 5, 16), 0, "all of it is taken");
        assert_eq!(room(&limits(3, 0), 5, 16), 0, "more than that is taken");
        assert_eq!(room(&limits(100, 2), 5, 16), 11, "the concurrency decides");
        // Requests of other calls of this client take no row's room.
        assert_eq!(room(&limits(10, 9), 5, 16), 10);
        assert_eq!(room(&limits(0, 0), 0, 16), 1, "its error says why");
    }

    #[test]
    fn no_row_goes_while_the_client_waits_unless_none_is_in_flight() {
        let mut limits = limits(10, 1);
        limits.wait_reason = Some(WaitReason::OtherProcesses);
        assert_eq!([room(&limits, 1, 16), room(&limits, 0, 16)], [0, 1]);
    }

    #[test]
    fn the_speed_is_shown_once_it_is_measured() {
        let speed = |done, left, millis| speed(done, left, Duration::from_millis(millis));
        assert_eq!([speed(0, 9, 9_000), speed(5, 5, 1_000)], ["starting", ""]);
        assert_eq!(speed(4_000, 20_000, 10_000), "400 a second, 50 s left");
        assert_eq!(speed(5, 10, 10_000), "30 a minute, 20 s left");
    }
}
