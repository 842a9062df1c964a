//! Sends several rows at a time, and records them in the journal before and after.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::future::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use petstore_client::operations::Call;
use petstore_client::rate_limit::{Priority, RateLimits};
use petstore_client::{Error, ErrorKind, Pet, Response};
use tokio::time::{Instant, sleep, sleep_until};

use super::forecast::Quotas;
use super::journal::BLOCK;
use super::journal::{Record, RowState};
use super::rows::Row;
use super::{Job, plural};
use crate::env::Signals;
use crate::error::CliError;
use crate::session::report_wait;
use crate::status::Progress;

/// Consecutive failures before giving up.
const MAX_FAILURES: u32 = 5;
/// The initial and maximum number of rows in flight, unless `--concurrency` sets it.
const FIRST_CONCURRENCY: usize = 8;
const MAX_CONCURRENCY: usize = 128;

/// A row and its outcome.
type Outcome = (usize, Result<Response<Pet>, Error>);

/// The number of rows that may be in flight: one more after each success, half after a failure.
struct Pace {
    concurrency: usize,
    max: usize,
    failures: u32,
    /// Why the run ends before all rows are sent.
    stop: Option<CliError>,
}

impl Pace {
    fn new(fixed: Option<usize>) -> Self {
        let (first, max) = fixed.map_or((FIRST_CONCURRENCY, MAX_CONCURRENCY), |one| (one, one));
        Self {
            concurrency: first,
            max,
            failures: 0,
            stop: None,
        }
    }

    fn succeeded(&mut self) {
        self.failures = 0;
        self.concurrency = self.max.min(self.concurrency + 1);
    }

    fn failed(&mut self, error: Error) {
        self.failures += 1;
        self.concurrency = (self.concurrency / 2).max(1);
        if self.failures >= MAX_FAILURES || is_hopeless(&error) {
            self.stop.get_or_insert(error.into());
        }
    }
}

/// Returns whether all further rows would fail too: because of the key, the URL or a limit.
fn is_hopeless(error: &Error) -> bool {
    let status = error.status().map_or(0, |status| status.as_u16());
    matches!(
        error.kind(),
        ErrorKind::RateLimited | ErrorKind::Config | ErrorKind::InvalidRequest
    ) || matches!(status, 401 | 403 | 404 | 405 | 410)
}

/// Returns the state of a row whose request failed.
fn state_after(error: &Error) -> RowState {
    let status = error.status().map_or(0, |status| status.as_u16());
    match status {
        _ if error.may_have_been_processed() => RowState::Unknown,
        400..500 if !is_hopeless(error) => {
            let code = error
                .code()
                .map(|code| format!(" {code}"))
                .unwrap_or_default();
            let message = error
                .message()
                .map(|message| format!(": {message}"))
                .unwrap_or_default();
            RowState::Rejected(format!("{status}{code}{message}"))
        }
        _ => RowState::Announced,
    }
}

/// Returns how many more rows may be sent. A row that waits here has certainly not been sent. A row
/// that waits in the client would be unknown after a kill.
fn room(limits: &RateLimits, in_flight: usize, concurrency: usize) -> usize {
    let free = concurrency.saturating_sub(in_flight);
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let left = limits
        .windows
        .iter()
        .map(|window| size(window.remaining))
        .min();
    // Requests that wait in the client do not count as used yet.
    let queued = in_flight.saturating_sub(size(limits.in_flight.into()));
    let room = match limits.wait_reason {
        None => left.map_or(free, |left| left.saturating_sub(queued)),
        Some(_) => 0,
    };
    // At least one request, whose error says why no more can be sent.
    room.max(usize::from(in_flight == 0)).min(free)
}

impl Job<'_> {
    /// Sends rows until none is left, all further rows would fail, or a signal arrives. Then waits
    /// for the rows in flight.
    pub(super) async fn send(
        &mut self,
        mut todo: VecDeque<usize>,
        signals: &mut Signals,
    ) -> Result<(), CliError> {
        let mut pace = Pace::new(self.import.concurrency);
        let mut in_flight = FuturesUnordered::new();
        let mut deadline = None;
        // The first row that is not announced in the journal.
        let mut announced = 0;
        let mut quotas = 0;
        let total = todo.len();
        loop {
            let limits = self.client.rate_limits();
            let done = total - todo.len() - in_flight.len();
            if self.context.ui().is_live() || limits.blocked.is_some() {
                self.draw(total - done, &limits);
            }
            let mut wait = None;
            if let (Some(&next), None) = (todo.front(), &pace.stop) {
                if in_flight.is_empty() {
                    wait = self.wait(&limits);
                }
                if next >= announced {
                    announced = self.announce(next).await?;
                }
                // The first row goes alone: it shows the limits, and gets the lowest id. So does the first
                // row of a new window, which shows what is left.
                quotas = quotas.max(limits.windows.len());
                let is_first = done == 0 || limits.windows.len() < quotas;
                let concurrency = if is_first { 1 } else { pace.concurrency };
                let room = if wait.is_some() {
                    0
                } else {
                    room(&limits, in_flight.len(), concurrency)
                };
                let batch = todo
                    .iter()
                    .take(room)
                    .take_while(|row| **row < announced)
                    .count();
                let batch: Vec<_> = todo.drain(..batch).collect();
                if !batch.is_empty() {
                    let sent = Record::Rows(RowState::Unknown, batch.clone());
                    self.journal.write(vec![sent])?;
                }
                in_flight.extend(batch.into_iter().map(|row| self.request(row)));
            } else if in_flight.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                Some(signal) = signals.next() => {
                    pace.stop = Some(signal.into());
                    if deadline.is_some() {
                        break;
                    }
                    deadline = Some(Instant::now() + self.context.settings().values().timeout());
                    self.report_stop(in_flight.len());
                }
                Some(first) = in_flight.next() => {
                    let mut outcomes = vec![first];
                    while let Some(Some(outcome)) = in_flight.next().now_or_never() {
                        outcomes.push(outcome);
                    }
                    self.record(outcomes, &mut pace)?;
                }
                () = sleep(wait.unwrap_or_default()), if wait.is_some() => {}
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    break;
                }
            }
        }
        // Dropped rows stay unknown.
        self.journal.end()?;
        pace.stop.map_or(Ok(()), Err)
    }

    /// Announces the next rows in the journal, and returns the first unannounced one.
    async fn announce(&mut self, from: usize) -> Result<usize, CliError> {
        let until = self.input.rows.len().min(from + BLOCK);
        let digests = self.input.rows[from..until]
            .iter()
            .map(Row::digest)
            .collect();
        self.journal.announce(from, digests).await?;
        Ok(until)
    }

    /// Returns how long a limit blocks all rows. If that exceeds `--max-wait`, the next request
    /// fails with the reason instead.
    fn wait(&self, limits: &RateLimits) -> Option<Duration> {
        let blocked = limits.blocked.as_ref()?;
        if blocked.remaining.is_zero()
            || blocked.remaining > self.context.settings().values().max_wait()
        {
            return None;
        }
        report_wait(self.context.ui(), blocked);
        Some(blocked.remaining)
    }

    fn report_stop(&self, in_flight: usize) {
        if in_flight > 0 {
            let rows = plural(in_flight, "row", "rows");
            let limit = crate::time::duration(self.context.settings().values().timeout());
            let text = format!("stopping: {rows} in flight, at most {limit}");
            self.context
                .ui()
                .note_now(&format!("{text}; Ctrl-C again stops at once"));
        }
    }

    /// Writes outcomes to the journal, and counts them.
    fn record(&mut self, outcomes: Vec<Outcome>, pace: &mut Pace) -> Result<(), CliError> {
        let mut records = Vec::with_capacity(outcomes.len());
        for (row, outcome) in outcomes {
            let state = match &outcome {
                Ok(pet) => RowState::Created(pet.id),
                Err(error) => state_after(error),
            };
            self.run.count(&state);
            match outcome {
                Err(error) if !matches!(state, RowState::Rejected(_)) => pace.failed(error),
                _ => pace.succeeded(),
            }
            records.push(Record::Rows(state, vec![row]));
        }
        self.journal.write(records)
    }

    fn request(&self, row: usize) -> impl Future<Output = Outcome> + use<> {
        let pets = self.client.pets();
        // Other commands with the key go first.
        let call: Call<Pet> = pets
            .create(&self.input.rows[row].pet)
            .priority(Priority::Low);
        let response = call.send();
        async move { (row, response.await) }
    }

    fn draw(&self, left: usize, limits: &RateLimits) {
        let clock = self.context.connector().clock();
        let max_wait = self.context.settings().values().max_wait();
        let now = limits.service_time.unwrap_or_else(|| clock.now());
        let forecast = Quotas::new(limits, now).forecast(left);
        let forecast = forecast.map(|forecast| forecast.short(clock, max_wait));
        let forecast = match forecast {
            None if self.run.created == 0 => "starting".to_owned(),
            forecast => forecast.unwrap_or_default(),
        };
        let all = self.input.rows.len();
        self.context.ui().set_progress(Some(Progress::Bar {
            done: all - left,
            all,
            forecast,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_is_sent_while_the_limits_are_unknown() {
        let limits = RateLimits::default();
        assert_eq!(room(&limits, 0, 1), 1);
        assert_eq!(room(&limits, 1, 1), 0);
        assert_eq!(room(&limits, 0, 16), 16, "a service that shows no limit");
        assert_eq!(room(&limits, 5, 16), 11);
    }

    #[test]
    fn concurrency_grows_with_success_and_halves_with_failure() {
        let mut pace = Pace::new(None);
        (0..500).for_each(|_| pace.succeeded());
        assert_eq!(pace.concurrency, MAX_CONCURRENCY);
        let mut fixed = Pace::new(Some(4));
        fixed.succeeded();
        assert_eq!(fixed.concurrency, 4);
    }
}
