//! The records of a journal, one JSON object on each line, and what they say about each row.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::rows::Digest;

/// The version of the format.
const VERSION: u32 = 6;
/// The start of the first line up to version 5.
const OLD_HEADER: &str = "journal of petstore pets import, version ";

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
    /// The absolute paths of the files of rejected and created rows.
    pub(in super::super) files: Vec<String>,
}

/// A record as it is written.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Written {
    #[serde(skip_serializing_if = "Option::is_none")]
    petstore_journal: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<Vec<(usize, String)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unsent: Option<Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<String>,
}

impl Record {
    /// Returns the record as a line, with its end.
    pub(in super::super) fn line(&self) -> String {
        let mut line = Written::default();
        match self.clone() {
            Self::Run(run) => {
                line.petstore_journal = Some(VERSION);
                line.base_url = Some(run.base_url);
                line.timeout = Some(crate::time::seconds(run.timeout));
                line.started = Some(run.started);
                line.files = run.files;
            }
            Self::Sent(rows) => {
                let sent = rows.iter().map(|(row, it)| (row + 1, it.to_string()));
                line.sent = Some(sent.collect());
            }
            Self::Created(row, id) => (line.created, line.id) = (Some(row + 1), Some(id)),
            Self::Found(row, id) => (line.found, line.id) = (Some(row + 1), Some(id)),
            Self::Rejected(row, why) => (line.rejected, line.why) = (Some(row + 1), Some(why)),
            Self::Unknown(row, why) => (line.unknown, line.why) = (Some(row + 1), Some(why)),
            Self::Unsent(rows) => line.unsent = Some(rows.iter().map(|row| row + 1).collect()),
            Self::End(at) => line.end = Some(at),
        }
        let mut text = serde_json::to_string(&line).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Reads a line without its end.
    fn parse(line: &[u8]) -> Option<Self> {
        let line: Written = serde_json::from_slice(line).ok()?;
        let row = |number: usize| number.checked_sub(1);
        if line.petstore_journal.is_some() {
            return Some(Self::Run(Run {
                base_url: line.base_url?,
                timeout: Duration::from_secs(line.timeout?),
                started: line.started?,
                files: line.files,
            }));
        }
        if let Some(rows) = line.sent {
            let sent = rows
                .into_iter()
                .map(|(number, digest)| Some((row(number)?, Digest::parse(&digest)?)));
            return sent.collect::<Option<_>>().map(Self::Sent);
        }
        if let Some(rows) = line.unsent {
            let rows = rows.into_iter().map(row);
            return rows.collect::<Option<_>>().map(Self::Unsent);
        }
        Some(match line {
            Written {
                created: Some(number),
                ..
            } => Self::Created(row(number)?, line.id?),
            Written {
                found: Some(number),
                ..
            } => Self::Found(row(number)?, line.id?),
            Written {
                rejected: Some(number),
                ..
            } => Self::Rejected(row(number)?, line.why?),
            Written {
                unknown: Some(number),
                ..
            } => Self::Unknown(row(number)?, line.why?),
            _ => Self::End(line.end?),
        })
    }
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

    /// Returns the id of the row's pet, if it is known.
    pub(in super::super) fn pet(&self) -> Option<i64> {
        match self {
            Self::Created(id) | Self::Found(id) => Some(*id),
            Self::Unsent | Self::Sent | Self::Rejected(_) | Self::Unknown(_) => None,
        }
    }
}

/// Why a journal cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Unreadable {
    /// The file has no content.
    Empty,
    /// Another version of the program wrote it.
    Version(String),
    /// It is not a journal.
    Foreign,
    /// This line, from 1, cannot be read, but a later one can.
    Line(usize),
}

/// The content of a journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in super::super) struct State {
    rows: Vec<RowState>,
    /// The content of each row that was sent.
    digests: Vec<Option<Digest>>,
    last_run: Option<Run>,
    /// The files of rows that earlier runs may have written.
    files: Vec<String>,
    /// How long requests of runs that did not end by themselves may still arrive.
    restless: Duration,
}

impl State {
    /// Reads a journal. Returns it with the number of bytes before an unreadable end, which a crash
    /// leaves.
    pub(in super::super) fn read(bytes: &[u8]) -> Result<(Self, usize), Unreadable> {
        check_first_line(bytes)?;
        let mut state = Self::default();
        let mut whole = 0;
        let mut unreadable = None;
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        for (number, line) in lines.enumerate() {
            let record = line.strip_suffix(b"\n").and_then(Record::parse);
            match (record, unreadable) {
                (Some(_), Some(line)) => return Err(Unreadable::Line(line)),
                (Some(record), None) => {
                    state.apply(&record);
                    whole += line.len();
                }
                (None, _) => unreadable = unreadable.or(Some(number + 1)),
            }
        }
        Ok((state, whole))
    }

    /// Applies a record.
    pub(in super::super) fn apply(&mut self, record: &Record) {
        match record {
            Record::Run(run) => {
                self.restless = self.restless.max(run.timeout);
                self.files.extend(run.files.iter().cloned());
                self.last_run = Some(run.clone());
            }
            Record::Sent(rows) => {
                for (row, digest) in rows {
                    self.set(*row, RowState::Sent);
                    self.digests[*row] = Some(*digest);
                }
            }
            Record::Created(row, id) => self.set(*row, RowState::Created(*id)),
            Record::Found(row, id) => self.set(*row, RowState::Found(*id)),
            Record::Rejected(row, why) => self.set(*row, RowState::Rejected(why.clone())),
            Record::Unknown(row, why) => self.set(*row, RowState::Unknown(why.clone())),
            Record::Unsent(rows) => {
                for row in rows {
                    self.set(*row, RowState::Unsent);
                }
            }
            Record::End(_) => self.restless = Duration::ZERO,
        }
    }

    fn set(&mut self, row: usize, state: RowState) {
        self.resize(self.rows.len().max(row + 1));
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
        let rows = self.rows.iter().enumerate();
        let wanted = rows.filter(|(_, state)| is_wanted(state));
        wanted.map(|(row, _)| row).collect()
    }

    pub(in super::super) fn last_run(&self) -> Option<&Run> {
        self.last_run.as_ref()
    }

    /// Returns whether a run of this import may have written a file.
    pub(in super::super) fn has_written(&self, file: &str) -> bool {
        self.files.iter().any(|other| other == file)
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(in super::super) struct Totals {
    pub(in super::super) created: usize,
    pub(in super::super) found: usize,
    pub(in super::super) rejected: usize,
    pub(in super::super) unknown: usize,
    pub(in super::super) left: usize,
}

impl Totals {
    /// Returns the rows whose pets exist.
    pub(in super::super) fn done(&self) -> usize {
        self.created + self.found
    }
}

/// Checks that this version of the program wrote the journal.
fn check_first_line(bytes: &[u8]) -> Result<(), Unreadable> {
    if bytes.is_empty() {
        return Err(Unreadable::Empty);
    }
    let first = bytes.split(|byte| *byte == b'\n').next();
    let first = std::str::from_utf8(first.unwrap_or_default()).unwrap_or_default();
    if let Some(version) = first.strip_prefix(OLD_HEADER) {
        return Err(Unreadable::Version(version.to_owned()));
    }
    let header: serde_json::Value = serde_json::from_str(first).unwrap_or_default();
    match header.get("petstoreJournal") {
        None => Err(Unreadable::Foreign),
        Some(version) if *version == VERSION => Ok(()),
        Some(version) => Err(Unreadable::Version(version.to_string())),
    }
}
