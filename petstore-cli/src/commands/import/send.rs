//! Sends rows, some at a time, and journals before and after each what becomes of it.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use futures_util::future::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use petstore_client::operations::Call;
use petstore_client::rate_limit::{Priority, RateLimits};
use petstore_client::{Client, Error, ErrorKind, Pet, Response};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::forecast::{forecast, windows};
use super::input::Row;
use super::journal::{BLOCK, Journal, Record};
use crate::env::{Signal, Signals};
use crate::explain::Facts;
use crate::trace::report_wait;
use crate::ui::{Progress, Ui};

/// So many rows in succession without success are a service that is down.
const MAX_FAILURES: u32 = 5;
/// The most rows in flight, where their number is chosen by itself.
const MAX_CONCURRENCY: usize = 128;
const FIRST_CONCURRENCY: usize = 8;
/// How often the forecast is made anew.
const DRAW_INTERVAL: Duration = Duration::from_millis(200);

/// Why no more rows are sent.
#[derive(Debug)]
pub(crate) enum Ended {
    Complete,
    /// Other rows would fare no better.
    Failed(Box<Error>),
    Signalled(Signal),
    /// The journal can't be written any more.
    Journal(io::Error),
}

/// What a run did itself.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) created: usize,
    pub(crate) found: usize,
    pub(crate) rejected: usize,
    pub(crate) unknown: usize,
}

/// How many rows may be in flight: more with each success, half as many after a failure.
struct Concurrency {
    current: usize,
    max: usize,
}

impl Concurrency {
    fn new(fixed: Option<usize>) -> Self {
        match fixed {
            Some(number) => Self { current: number, max: number },
            None => Self { current: FIRST_CONCURRENCY, max: MAX_CONCURRENCY },
        }
    }

    fn succeeded(&mut self) {
        self.current = (self.current + 1).min(self.max);
    }

    fn failed(&mut self) {
        self.current = (self.current / 2).max(1);
    }
}

/// What a result means for the rows that follow.
enum Outlook {
    Good,
    /// They are sent, unless this goes on.
    Bad(Box<Error>),
    /// They would fare no better.
    Hopeless(Box<Error>),
}

/// How fast rows are sent, and whether they still are.
struct Pace {
    concurrency: Concurrency,
    failures: u32,
    ended: Option<Ended>,
}

impl Pace {
    fn take(&mut self, outlook: Outlook) {
        match outlook {
            Outlook::Good => {
                self.failures = 0;
                self.concurrency.succeeded();
            }
            Outlook::Hopeless(error) => {
                self.ended.get_or_insert(Ended::Failed(error));
            }
            Outlook::Bad(error) => {
                self.failures += 1;
                self.concurrency.failed();
                if self.failures >= MAX_FAILURES {
                    self.ended.get_or_insert(Ended::Failed(error));
                }
            }
        }
    }
}

/// The announcement of rows in the journal.
#[derive(Default)]
struct Announcer {
    /// Rows before this one may be sent.
    until: usize,
    /// The announcement of rows before another one is becoming durable.
    pending: Option<(JoinHandle<io::Result<()>>, usize)>,
}

impl Announcer {
    /// Announces the next rows, where those that are announced run out soon.
    fn announce(
        &mut self,
        journal: &mut Journal,
        rows: &[Row],
        todo: &VecDeque<usize>,
    ) -> io::Result<()> {
        let Some(&first) = todo.front() else { return Ok(()) };
        let soon = todo.get(BLOCK / 2).or(todo.back()).is_some_and(|row| *row >= self.until);
        if self.pending.is_some() || !soon {
            return Ok(());
        }
        let from = self.until.max(first);
        let block = rows.get(from..rows.len().min(from + BLOCK)).unwrap_or_default();
        let digests: Vec<_> = block.iter().map(Row::digest).collect();
        let sync = journal.announce(from, &digests)?;
        self.pending = Some((tokio::task::spawn_blocking(sync), from + digests.len()));
        Ok(())
    }

    /// Waits until an announcement is durable.
    async fn synced(&mut self) -> io::Result<()> {
        match &mut self.pending {
            Some((sync, until)) => {
                let until = *until;
                sync.await.map_err(io::Error::other)??;
                self.until = until;
                self.pending = None;
                Ok(())
            }
            None => std::future::pending().await,
        }
    }
}

/// Returns what to journal of a row, and whether to go on.
fn classify(row: usize, result: Result<Response<Pet>, Error>) -> (Record, Outlook) {
    let error = match result {
        Ok(pet) => return (Record::Created(row, pet.id), Outlook::Good),
        Err(error) => error,
    };
    let unsent = Record::Unsent(vec![row]);
    let status = error.status().map_or(0, |status| status.as_u16());
    match (error.kind(), status) {
        (ErrorKind::RateLimited | ErrorKind::Config | ErrorKind::InvalidRequest, _) => {
            (unsent, Outlook::Hopeless(error.into()))
        }
        // The key, or the address: the same for every row.
        (_, 401 | 403 | 404 | 405 | 410) => (unsent, Outlook::Hopeless(error.into())),
        (_, 400..=499) if !error.may_have_been_processed() => {
            let code = error.code().map(|code| format!(" {code}")).unwrap_or_default();
            let said = error.message().map(|said| format!(": {said}")).unwrap_or_default();
            (Record::Rejected(row, format!("{status}{code}{said}")), Outlook::Good)
        }
        _ if error.may_have_been_processed() => (Record::Unknown(row), Outlook::Bad(error.into())),
        _ => (unsent, Outlook::Bad(error.into())),
    }
}

/// Returns how many more rows may be sent. A row that waits here was not sent, for certain; one
/// that is handed to the client may have been, should the program be killed.
fn room(limits: &RateLimits, in_flight: usize, has_response: bool, most: usize) -> usize {
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let free = most.saturating_sub(in_flight);
    let queued = in_flight.saturating_sub(size(limits.in_flight.into()));
    let left = limits.windows.iter().map(|window| window.remaining).min();
    let room = match (limits.wait_reason, left) {
        (None, Some(left)) => size(left).saturating_sub(queued),
        (None, None) if has_response => free,
        // Where nothing is known, the first response shows the limits.
        _ => 0,
    };
    match in_flight {
        0 => room.clamp(1, free.max(1)),
        _ => room.min(free),
    }
}

/// An import that is under way.
pub(crate) struct Sender<'a> {
    pub(crate) client: &'a Client,
    pub(crate) journal: &'a mut Journal,
    pub(crate) rows: &'a [Row],
    pub(crate) ui: &'a Ui,
    pub(crate) facts: &'a Facts,
    pub(crate) counts: Counts,
    /// Rows that were done before this run, for the bar.
    pub(crate) done_before: usize,
}

impl Sender<'_> {
    /// Sends rows until there are none, sending is hopeless, or a signal comes; then waits for those
    /// in flight.
    pub(crate) async fn run(
        &mut self,
        todo: Vec<usize>,
        fixed: Option<usize>,
        signals: &mut Signals,
    ) -> Ended {
        let concurrency = Concurrency::new(fixed);
        let mut pace = Pace { concurrency, failures: 0, ended: None };
        match self.send(todo.into(), &mut pace, signals).await {
            Ok(()) => pace.ended.unwrap_or(Ended::Complete),
            Err(error) => Ended::Journal(error),
        }
    }

    async fn send(
        &mut self,
        mut todo: VecDeque<usize>,
        pace: &mut Pace,
        signals: &mut Signals,
    ) -> io::Result<()> {
        let mut in_flight = FuturesUnordered::new();
        let mut announcer = Announcer::default();
        let mut deadline = None;
        let mut next_draw = Instant::now();
        let total = todo.len();
        loop {
            let limits = self.client.rate_limits();
            let done = total - todo.len() - in_flight.len();
            if Instant::now() >= next_draw {
                self.draw(done, total, &limits);
                next_draw = Instant::now() + DRAW_INTERVAL;
            }
            let mut wait = None;
            if pace.ended.is_none() && !todo.is_empty() {
                announcer.announce(self.journal, self.rows, &todo)?;
                if in_flight.is_empty() {
                    wait = self.wait(&limits, (done, total));
                }
                // The first row goes alone: its identifier is the lowest of all.
                let sent = self.journal.state.sent();
                let alone = sent == 0 || sent == 1 && !in_flight.is_empty();
                let most = if alone { 1 } else { pace.concurrency.current };
                let room = room(&limits, in_flight.len(), done > 0, most);
                let batch = todo.iter().take(if wait.is_some() { 0 } else { room });
                let batch = batch.take_while(|row| **row < announcer.until).count();
                let batch: Vec<_> = todo.drain(..batch).collect();
                if !batch.is_empty() {
                    self.journal.write(vec![Record::Sending(batch.clone())])?;
                    in_flight.extend(batch.into_iter().map(|row| self.call(row)));
                }
            }
            if in_flight.is_empty() && (pace.ended.is_some() || todo.is_empty()) {
                return Ok(());
            }
            let mut results = tokio::select! {
                biased;
                Some(signal) = signals.next() => {
                    let is_second = deadline.is_some();
                    pace.ended = Some(Ended::Signalled(signal));
                    if is_second || in_flight.is_empty() {
                        return Ok(());
                    }
                    self.report_stop(in_flight.len());
                    deadline = Some(Instant::now() + self.facts.timeout);
                    continue;
                }
                Some(result) = in_flight.next() => vec![result],
                synced = announcer.synced() => {
                    synced?;
                    continue;
                }
                () = sleep(wait.unwrap_or_default()), if wait.is_some() => continue,
                () = sleep_until(deadline.unwrap_or(next_draw)), if deadline.is_some() => {
                    return Ok(());
                }
                () = sleep_until(next_draw), if self.ui.is_live() => continue,
            };
            while let Some(Some(result)) = in_flight.next().now_or_never() {
                results.push(result);
            }
            self.record(results, pace)?;
        }
    }

    /// Returns how long a limit blocks all rows, where that is waited for. Where the wait is longer,
    /// the call that is made instead fails with the reason.
    fn wait(&self, limits: &RateLimits, (done, total): (usize, usize)) -> Option<Duration> {
        let blocked = limits.blocked.as_ref()?;
        if blocked.remaining.is_zero() || blocked.remaining > self.facts.max_wait {
            return None;
        }
        self.draw(done, total, limits);
        report_wait(self.ui, blocked);
        Some(blocked.remaining)
    }

    fn report_stop(&self, count: usize) {
        let rows = if count == 1 { "row" } else { "rows" };
        let limit = crate::time::duration(self.facts.timeout);
        let text = "Ctrl-C again stops at once";
        self.ui.text(&format!("stopping: {count} {rows} in flight, at most {limit}; {text}\n"));
    }

    /// Journals results, and counts them.
    fn record(
        &mut self,
        results: Vec<(usize, Result<Response<Pet>, Error>)>,
        pace: &mut Pace,
    ) -> io::Result<()> {
        let mut entries = Vec::with_capacity(results.len());
        for (row, result) in results {
            let (entry, outlook) = classify(row, result);
            match entry {
                Record::Created(..) => self.counts.created += 1,
                Record::Rejected(..) => self.counts.rejected += 1,
                Record::Unknown(_) => self.counts.unknown += 1,
                _ => {}
            }
            entries.push(entry);
            pace.take(outlook);
        }
        self.journal.write(entries)
    }

    fn call(
        &self,
        row: usize,
    ) -> impl Future<Output = (usize, Result<Response<Pet>, Error>)> + use<> {
        // Other commands with the key go first.
        let call: Call<Pet> =
            self.client.pets().create(&self.rows[row].pet).priority(Priority::Low);
        let future = call.send();
        async move { (row, future.await) }
    }

    fn draw(&self, done: usize, total: usize, limits: &RateLimits) {
        let now = limits.service_time.unwrap_or_else(|| self.facts.clock.now());
        let forecast = forecast(total - done, windows(limits, now));
        let forecast =
            forecast.map(|forecast| forecast.short(&self.facts.clock, self.facts.max_wait));
        let forecast = match forecast {
            None if done == 0 => "starting".to_owned(),
            forecast => forecast.unwrap_or_default(),
        };
        let (done, all) = (self.done_before + done, self.rows.len());
        self.ui.set_progress(Some(Progress::Bar { done, all, forecast }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_asks_for_all_until_something_is_known() {
        let limits = RateLimits::default();
        assert_eq!(room(&limits, 0, false, 16), 1);
        assert_eq!(room(&limits, 1, false, 16), 0);
        // A service that shows no limit.
        assert_eq!(room(&limits, 0, true, 16), 16);
        assert_eq!(room(&limits, 5, true, 16), 11);
    }

    #[test]
    fn concurrency_grows_with_success_and_halves_with_failure() {
        let mut concurrency = Concurrency::new(None);
        (0..500).for_each(|_| concurrency.succeeded());
        assert_eq!(concurrency.current, MAX_CONCURRENCY);
        (0..20).for_each(|_| concurrency.failed());
        assert_eq!(concurrency.current, 1);
        let mut fixed = Concurrency::new(Some(4));
        fixed.succeeded();
        assert_eq!(fixed.current, 4);
    }
}
