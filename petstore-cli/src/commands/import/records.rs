//! The records of a journal, one JSON object on each line, and what they say of each row.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use petstore_client::url::Url;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rows::Digest;
use crate::error::{CliError, Result};

/// The version of the format.
const VERSION: u32 = 7;

/// A record. Rows are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Record {
    #[serde(rename = "petstoreJournal")]
    Run(Run),
    /// These rows may be sent as soon as this record is on the disk.
    Sent(Vec<(usize, Digest)>),
    Created(usize, i64),
    Found(usize, i64),
    Rejected(usize, String),
    /// These rows were certainly not processed, or are to be sent again.
    Unsent(Vec<usize>),
    Unknown(usize, String),
    /// Nothing that was sent before this record can still arrive.
    End(String),
}

impl Record {
    /// Returns records as lines.
    pub(super) fn lines(records: &[Self]) -> io::Result<Vec<u8>> {
        let mut lines = Vec::new();
        for record in records {
            serde_json::to_writer(&mut lines, record)?;
            lines.push(b'\n');
        }
        Ok(lines)
    }
}

/// The start of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run {
    version: u32,
    base_url: String,
    /// The time limit of a request, in seconds.
    timeout: u64,
    started: String,
}

impl Run {
    pub(super) fn new(base_url: &Url, timeout: Duration, started: String) -> Self {
        Self {
            version: VERSION,
            base_url: base_url.to_string(),
            timeout: crate::time::seconds(timeout),
            started,
        }
    }

    /// Returns the time limit of a request.
    pub(super) fn limit(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

/// What is known of a row that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RowState {
    /// It has no outcome.
    Sent,
    Created(i64),
    /// The check takes this pet for the row's.
    Found(i64),
    Rejected(String),
    Unknown(String),
}

/// The content of a journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    /// The rows that were sent, with their content. All others may be sent.
    rows: BTreeMap<usize, (Digest, RowState)>,
    base_url: Option<String>,
    /// How long requests of runs that did not end by themselves may still arrive.
    restless: Duration,
}

impl State {
    /// Reads a journal. Returns it with the number of bytes before an unreadable end, which a crash
    /// leaves.
    pub(super) fn read(name: &str, bytes: &[u8]) -> Result<(Self, usize)> {
        check_first_line(name, bytes)?;
        let mut state = Self::default();
        let mut whole = 0;
        let mut unreadable = None;
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        for (line, number) in lines.zip(1_usize..) {
            let text = line.strip_suffix(b"\n").unwrap_or_default();
            let Ok(record) = serde_json::from_slice(text) else {
                unreadable.get_or_insert(number);
                continue;
            };
            if let Some(number) = unreadable {
                return Err(damaged(name, number));
            }
            if !state.apply(record) {
                return Err(damaged(name, number));
            }
            whole += line.len();
        }
        Ok((state, whole))
    }

    /// Applies a record. Returns whether it can be true: only a row that was sent has an outcome.
    pub(super) fn apply(&mut self, record: Record) -> bool {
        let (row, outcome) = match record {
            Record::Run(run) => {
                self.restless = self.restless.max(run.limit());
                self.base_url = Some(run.base_url);
                return true;
            }
            Record::Sent(rows) => {
                for (row, digest) in rows {
                    self.rows.insert(row, (digest, RowState::Sent));
                }
                return true;
            }
            Record::Unsent(rows) => {
                for row in rows {
                    self.rows.remove(&row);
                }
                return true;
            }
            Record::End(_) => {
                self.restless = Duration::ZERO;
                return true;
            }
            Record::Created(row, id) => (row, RowState::Created(id)),
            Record::Found(row, id) => (row, RowState::Found(id)),
            Record::Rejected(row, why) => (row, RowState::Rejected(why)),
            Record::Unknown(row, why) => (row, RowState::Unknown(why)),
        };
        match self.rows.get_mut(&row) {
            Some((_, state)) => {
                *state = outcome;
                true
            }
            None => false,
        }
    }

    /// Returns the rows that were sent, with the content and what is known of each.
    pub(super) fn sent(&self) -> impl Iterator<Item = (usize, &Digest, &RowState)> {
        let rows = self.rows.iter();
        rows.map(|(row, (digest, state))| (*row, digest, state))
    }

    /// Returns whether a row is to be sent.
    pub(super) fn is_unsent(&self, row: usize) -> bool {
        !self.rows.contains_key(&row)
    }

    /// Returns the rows that may have been created, each with the reason why this is unknown.
    pub(super) fn unknown(&self) -> impl Iterator<Item = (usize, &str)> {
        self.sent().filter_map(|(row, _, state)| match state {
            RowState::Sent => Some((row, "the import was stopped before the response")),
            RowState::Unknown(why) => Some((row, &**why)),
            RowState::Created(_) | RowState::Found(_) | RowState::Rejected(_) => None,
        })
    }

    /// Returns the rejected rows, each with the reason.
    pub(super) fn rejected(&self) -> impl Iterator<Item = (usize, &str)> {
        self.sent().filter_map(|(row, _, state)| match state {
            RowState::Rejected(why) => Some((row, &**why)),
            _ => None,
        })
    }

    /// Returns the rows that were found, each with the id of its pet.
    pub(super) fn found(&self) -> impl Iterator<Item = (usize, i64)> {
        self.sent().filter_map(|(row, _, state)| match state {
            RowState::Found(id) => Some((row, *id)),
            _ => None,
        })
    }

    /// Returns the rows that were created or found, each with the id of its pet.
    pub(super) fn pets(&self) -> impl Iterator<Item = (usize, i64)> {
        self.sent().filter_map(|(row, _, state)| match state {
            RowState::Created(id) | RowState::Found(id) => Some((row, *id)),
            RowState::Sent | RowState::Rejected(_) | RowState::Unknown(_) => None,
        })
    }

    /// Returns the service of the rows that were sent.
    pub(super) fn base_url(&self) -> Option<&str> {
        self.base_url.as_deref().filter(|_| !self.rows.is_empty())
    }

    pub(super) fn restless(&self) -> Duration {
        self.restless
    }

    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for (_, _, state) in self.sent() {
            match state {
                RowState::Created(_) => totals.created += 1,
                RowState::Found(_) => totals.found += 1,
                RowState::Rejected(_) => totals.rejected += 1,
                RowState::Sent | RowState::Unknown(_) => totals.unknown += 1,
            }
        }
        totals
    }
}

/// The numbers of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Totals {
    pub(super) created: usize,
    pub(super) found: usize,
    pub(super) rejected: usize,
    pub(super) unknown: usize,
}

impl Totals {
    /// Returns how many rows have an outcome that is known.
    pub(super) fn done(self) -> usize {
        self.created + self.found + self.rejected
    }
}

/// Checks that this version of the program wrote the journal.
fn check_first_line(name: &str, bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() {
        let problem = format!("{name} is empty: what it recorded is lost");
        return Err(CliError::input(problem));
    }
    let first = bytes.split(|byte| *byte == b'\n').next();
    let first: Value = serde_json::from_slice(first.unwrap_or_default()).unwrap_or_default();
    let Some(run) = first.get("petstoreJournal") else {
        return Err(foreign(name));
    };
    // Until version 6, the version stood in place of the run.
    let version = run.get("version").unwrap_or(run);
    if *version == VERSION {
        return Ok(());
    }
    let problem = format!("{name} has version {version}, not {VERSION}");
    Err(CliError::input(problem).hint("finish this import with the program that began it"))
}

/// Describes a file that is not a journal.
pub(super) fn foreign(name: &str) -> CliError {
    CliError::input(format!("{name} exists, and is not a journal of an import"))
}

fn damaged(name: &str, line: usize) -> CliError {
    CliError::input(format!("{name} is damaged: line {line} cannot be read"))
}
