//! The journal: a file next to the input with the outcome of each row, so that no row is sent
//! twice, however the program ends.
//!
//! A row is recorded as sent, and the file is synced, before the row is sent. So a row without that
//! record was not sent, whatever happens. Outcomes are written without a sync: a lost one leaves an
//! unknown row.

mod log;
mod state;

use std::path::Path;

use tokio::time::Instant;

use self::log::Log;
use self::state::RowState;
pub(super) use self::state::{Record, Run, State, Totals};
use super::rows::{Digest, Row, Rows};
use crate::env::System;
use crate::error::{CliError, Result};

/// A journal that is open for writing, with its content.
pub(super) struct Journal {
    /// `None` if nothing is kept.
    log: Option<Log>,
    state: State,
    /// The first record of this run, until it is written.
    start: Option<Record>,
    /// The outcomes of this run.
    run: Totals,
    /// Until then, requests of earlier runs may still arrive.
    quiet_at: Instant,
}

impl Journal {
    /// Returns a journal without a file.
    pub(super) fn nowhere() -> Self {
        Self {
            log: None,
            state: State::default(),
            start: None,
            run: Totals::default(),
            quiet_at: Instant::now(),
        }
    }

    /// Opens and locks a journal, or creates it. Leaves an existing file as it is.
    pub(super) fn open(path: &Path, run: Run, system: &System) -> Result<Self> {
        let first = Record::Run(run);
        let (log, state) = Log::open(path, &first, system)?;
        let mut journal = Self::nowhere();
        journal.log = Some(log);
        if let Some(state) = state {
            journal.quiet_at += state.restless();
            journal.state = state;
            journal.start = Some(first);
        }
        Ok(journal)
    }

    /// Reads a journal without opening it for writing.
    pub(super) fn read(path: &Path, system: &System) -> Result<Self> {
        let mut journal = Self::nowhere();
        journal.state = log::read(path, system)?;
        Ok(journal)
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Returns the outcomes of this run.
    pub(super) fn run(&self) -> Totals {
        self.run
    }

    /// Returns the path of the file, if there is one.
    pub(super) fn path(&self) -> Option<&Path> {
        self.log.as_ref().map(Log::path)
    }

    /// Returns when no request of an earlier run can arrive any more.
    pub(super) fn quiet_at(&self) -> Instant {
        self.quiet_at
    }

    /// Starts a run. Its rows must have been compared with the journal.
    pub(super) async fn begin(&mut self) -> Result<()> {
        if let Some(start) = self.start.take() {
            self.record(vec![start])?;
            self.sync().await?;
        }
        Ok(())
    }

    /// Records rows that are to be sent. They may be sent when the returned future has ended.
    pub(super) fn announce(
        &mut self,
        rows: Vec<(usize, Digest)>,
    ) -> Result<impl Future<Output = Result<()>> + use<>> {
        let sent = Record::Sent(rows);
        self.write(std::slice::from_ref(&sent))?;
        self.state.apply(sent);
        Ok(self.sync())
    }

    /// Writes records. If that fails, they still count in this run, but the next run does not know
    /// them.
    pub(super) fn record(&mut self, records: Vec<Record>) -> Result<()> {
        let written = self.write(&records);
        for record in records {
            match record {
                Record::Created(..) => self.run.created += 1,
                Record::Found(..) => self.run.found += 1,
                Record::Rejected(..) => self.run.rejected += 1,
                Record::Unknown(..) => self.run.unknown += 1,
                Record::Run(_) | Record::Sent(_) | Record::Unsent(_) | Record::End(_) => {}
            }
            self.state.apply(record);
        }
        written
    }

    /// Ends a run without requests in flight.
    pub(super) async fn end(&mut self, at: String) -> Result<()> {
        if self.quiet_at <= Instant::now() {
            self.record(vec![Record::End(at)])?;
        }
        self.sync().await
    }

    fn write(&mut self, records: &[Record]) -> Result<()> {
        match &mut self.log {
            Some(log) => log.append(records),
            None => Ok(()),
        }
    }

    fn sync(&self) -> impl Future<Output = Result<()>> + use<> {
        let synced = self.log.as_ref().map(Log::sync);
        async move {
            match synced {
                Some(synced) => synced.await,
                None => Ok(()),
            }
        }
    }
}

/// Compares the rows of an input with a journal. Returns the rejected rows that were mended.
pub(super) fn compare(rows: &Rows, state: &State) -> Result<Vec<usize>> {
    let mut mended = Vec::new();
    for (row, digest, state) in state.sent() {
        let now = rows.all().get(row);
        if now.and_then(Row::digest).as_ref() == Some(digest) {
            continue;
        }
        let became = match state {
            RowState::Rejected(_) => {
                mended.push(row);
                continue;
            }
            RowState::Created(id) | RowState::Found(id) => format!("became pet {id}"),
            RowState::Sent | RowState::Unknown(_) => "was sent".to_owned(),
        };
        let (name, place) = (rows.name(), rows.place(row));
        let problem = match now {
            Some(_) => format!("{name} {place} has changed since it {became}"),
            None => format!("{place} of {name} is missing since it {became}"),
        };
        return Err(CliError::input(problem)
            .hint("undo the change; add other pets at the end, or in a file of their own"));
    }
    Ok(mended)
}
