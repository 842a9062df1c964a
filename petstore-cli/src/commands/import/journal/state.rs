//! The records of a journal, one JSON object on each line, and what they say about each row.

use std::num::NonZeroUsize;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::rows::Digest;
use crate::error::{CliError, Result};

/// The version of the format.
const VERSION: u32 = 6;
/// What helps if a journal is lost. A new one would create all pets again.
const LIST: &str = "`petstore pets list --all` shows which pets exist";

/// A record. Rows are counted from 0 here, and from 1 in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Record {
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

/// The start of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Run {
    pub(in super::super) base_url: String,
    /// The time limit of a request.
    pub(in super::super) timeout: Duration,
    pub(in super::super) started: String,
}

impl Record {
    /// Returns the record as a line, with its end.
    pub(in super::super) fn line(&self) -> String {
        let object = match self {
            Self::Run(run) => json!({
                "petstoreJournal": VERSION,
                "baseUrl": run.base_url,
                "timeout": crate::time::seconds(run.timeout),
                "started": run.started,
            }),
            Self::Sent(rows) => {
                let rows = rows
                    .iter()
                    .map(|(row, it)| json!([row + 1, it.to_string()]));
                json!({ "sent": rows.collect::<Value>() })
            }
            Self::Created(row, id) => json!({ "created": row + 1, "id": id }),
            Self::Found(row, id) => json!({ "found": row + 1, "id": id }),
            Self::Rejected(row, why) => json!({ "rejected": row + 1, "why": why }),
            Self::Unknown(row, why) => json!({ "unknown": row + 1, "why": why }),
            Self::Unsent(rows) => {
                let rows = rows.iter().map(|row| json!(row + 1));
                json!({ "unsent": rows.collect::<Value>() })
            }
            Self::End(at) => json!({ "end": at }),
        };
        format!("{object}\n")
    }

    /// Reads a line without its end.
    fn parse(line: &[u8]) -> Option<Self> {
        let line: Line = serde_json::from_slice(line).ok()?;
        let record = match line {
            Line {
                petstore_journal: Some(_),
                base_url: Some(base_url),
                timeout: Some(timeout),
                started: Some(started),
                ..
            } => Self::Run(Run {
                base_url,
                timeout: Duration::from_secs(timeout),
                started,
            }),
            Line {
                sent: Some(sent), ..
            } => {
                let rows = sent.into_iter().map(|(row, digest)| {
                    let digest = Digest::parse(&digest)?;
                    Some((index(row), digest))
                });
                Self::Sent(rows.collect::<Option<_>>()?)
            }
            Line {
                created: Some(row),
                id: Some(id),
                ..
            } => Self::Created(index(row), id),
            Line {
                found: Some(row),
                id: Some(id),
                ..
            } => Self::Found(index(row), id),
            Line {
                rejected: Some(row),
                why: Some(why),
                ..
            } => Self::Rejected(index(row), why),
            Line {
                unknown: Some(row),
                why: Some(why),
                ..
            } => Self::Unknown(index(row), why),
            Line {
                unsent: Some(rows), ..
            } => Self::Unsent(rows.into_iter().map(index).collect()),
            Line { end: Some(at), .. } => Self::End(at),
            _ => return None,
        };
        Some(record)
    }
}

/// A line of the file. Each kind of record has some of these fields.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    petstore_journal: Option<u32>,
    base_url: Option<String>,
    timeout: Option<u64>,
    started: Option<String>,
    sent: Option<Vec<(NonZeroUsize, String)>>,
    created: Option<NonZeroUsize>,
    found: Option<NonZeroUsize>,
    id: Option<i64>,
    rejected: Option<NonZeroUsize>,
    unknown: Option<NonZeroUsize>,
    why: Option<String>,
    unsent: Option<Vec<NonZeroUsize>>,
    end: Option<String>,
}

fn index(row: NonZeroUsize) -> usize {
    row.get() - 1
}

/// What is known of a row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in super::super) enum RowState {
    #[default]
    Unsent,
    /// Recorded before it was sent, and without an outcome.
    Sent,
    Created(i64),
    /// The check takes this pet for the row's.
    Found(i64),
    Rejected(String),
    Unknown(String),
}

impl RowState {
    /// Returns why it is unknown whether the row was created, if it is.
    pub(in super::super) fn unknown(&self) -> Option<&str> {
        match self {
            Self::Sent => Some("the import was stopped before the response"),
            Self::Unknown(why) => Some(why),
            Self::Unsent | Self::Created(_) | Self::Found(_) | Self::Rejected(_) => None,
        }
    }

    /// Returns why the row was rejected, if it was.
    pub(in super::super) fn rejected(&self) -> Option<&str> {
        match self {
            Self::Rejected(why) => Some(why),
            Self::Unsent | Self::Sent | Self::Created(_) | Self::Found(_) | Self::Unknown(_) => {
                None
            }
        }
    }

    /// Returns the id of the row's pet, if it is known.
    pub(in super::super) fn pet(&self) -> Option<i64> {
        match self {
            Self::Created(id) | Self::Found(id) => Some(*id),
            Self::Unsent | Self::Sent | Self::Rejected(_) | Self::Unknown(_) => None,
        }
    }
}

/// The content of a journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in super::super) struct State {
    rows: Vec<RowState>,
    /// The content of each row that was sent.
    digests: Vec<Option<Digest>>,
    last_run: Option<Run>,
    /// How long requests of runs that did not end by themselves may still arrive.
    restless: Duration,
}

impl State {
    /// Reads a journal. Returns it with the number of bytes before an unreadable end, which a crash
    /// leaves.
    pub(in super::super) fn read(name: &str, bytes: &[u8]) -> Result<(Self, usize)> {
        check_first_line(name, bytes)?;
        let mut state = Self::default();
        let mut whole = 0;
        let mut unreadable = None;
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        for (number, line) in lines.enumerate() {
            let record = line.strip_suffix(b"\n").and_then(Record::parse);
            match (record, unreadable) {
                (Some(_), Some(line)) => {
                    let problem = format!("{name} is damaged: line {line} cannot be read");
                    return Err(CliError::input(problem).hint(LIST));
                }
                (Some(record), None) => {
                    state.apply(record);
                    whole += line.len();
                }
                (None, _) => unreadable = unreadable.or(Some(number + 1)),
            }
        }
        Ok((state, whole))
    }

    /// Applies a record.
    pub(in super::super) fn apply(&mut self, record: Record) {
        match record {
            Record::Run(run) => {
                self.restless = self.restless.max(run.timeout);
                self.last_run = Some(run);
            }
            Record::Sent(rows) => {
                for (row, digest) in rows {
                    self.set(row, RowState::Sent);
                    self.digests[row] = Some(digest);
                }
            }
            Record::Created(row, id) => self.set(row, RowState::Created(id)),
            Record::Found(row, id) => self.set(row, RowState::Found(id)),
            Record::Rejected(row, why) => self.set(row, RowState::Rejected(why)),
            Record::Unknown(row, why) => self.set(row, RowState::Unknown(why)),
            Record::Unsent(rows) => {
                for row in rows {
                    self.set(row, RowState::Unsent);
                }
            }
            Record::End(_) => self.restless = Duration::ZERO,
        }
    }

    fn set(&mut self, row: usize, state: RowState) {
        if row >= self.rows.len() {
            self.resize(row + 1);
        }
        self.rows[row] = state;
    }

    /// Fits the states to the rows of the input.
    pub(in super::super) fn resize(&mut self, rows: usize) {
        self.rows.resize(rows, RowState::Unsent);
        self.digests.resize(rows, None);
    }

    pub(in super::super) fn rows(&self) -> &[RowState] {
        &self.rows
    }

    /// Returns the content with which a row was sent.
    pub(super) fn digest(&self, row: usize) -> Option<Digest> {
        self.digests[row]
    }

    /// Returns the rows with certain states.
    pub(in super::super) fn rows_where(&self, is_wanted: fn(&RowState) -> bool) -> Vec<usize> {
        (0..self.rows.len())
            .filter(|row| is_wanted(&self.rows[*row]))
            .collect()
    }

    pub(in super::super) fn last_run(&self) -> Option<&Run> {
        self.last_run.as_ref()
    }

    pub(in super::super) fn restless(&self) -> Duration {
        self.restless
    }

    pub(in super::super) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for row in &self.rows {
            match row {
                RowState::Unsent => totals.left += 1,
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in super::super) struct Totals {
    pub(in super::super) created: usize,
    pub(in super::super) found: usize,
    pub(in super::super) rejected: usize,
    pub(in super::super) unknown: usize,
    pub(in super::super) left: usize,
}

/// Checks that this version of the program wrote the journal.
fn check_first_line(name: &str, bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() {
        let problem = format!("{name} is empty: what it recorded is lost");
        return Err(CliError::input(problem).hint(LIST));
    }
    let first = bytes.split(|byte| *byte == b'\n').next();
    let header: Value = serde_json::from_slice(first.unwrap_or_default()).unwrap_or_default();
    match header.get("petstoreJournal") {
        None => Err(foreign(name)),
        Some(version) if *version == VERSION => Ok(()),
        Some(version) => {
            let problem = format!("{name} has version {version}, not {VERSION}");
            Err(CliError::input(problem).hint("finish this import with the program that began it"))
        }
    }
}

/// Describes a file that is not a journal.
pub(super) fn foreign(name: &str) -> CliError {
    CliError::input(format!("{name} exists, and is not a journal of an import"))
}
