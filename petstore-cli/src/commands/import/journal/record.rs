//! The records of a journal: one on each line, with its checksum.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// The first line.
pub(crate) const HEADER: &[u8] = b"journal of petstore pets import, version 5\n";

/// A record. Rows are numbered from 0, and times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Record {
    Run(Run),
    /// A block of rows, beginning with this number, may be sent from now on. It has their digests.
    Block {
        from: usize,
        digests: Vec<u32>,
    },
    /// These rows are about to be sent.
    Sent {
        at: u64,
        rows: Vec<usize>,
    },
    /// These rows may have been created: no response came, or an error of the service.
    Lost {
        at: u64,
        rows: Vec<usize>,
    },
    Rows(RowState, Vec<usize>),
    /// These unknown rows are sent again, although they may have been created.
    Retry(Vec<usize>),
    Checked(Checked),
    /// Uncertain rows that the user takes as created.
    Accepted(Vec<(usize, i64)>),
    /// The run ended normally, so no record is missing.
    End,
}

/// A run of the import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Run {
    pub(crate) pid: u32,
    pub(crate) started: SystemTime,
    /// Identifies the boot of the machine. What was written since then is not lost.
    pub(crate) boot: Option<String>,
    pub(crate) base_url: String,
    /// The longest time that a request may take to arrive.
    pub(crate) limit: Duration,
    /// The number of rows of the input.
    pub(crate) rows: usize,
    /// The absolute paths of the files of rejected, unknown and created rows.
    pub(crate) files: Vec<PathBuf>,
    /// The earlier damaged lines that have been handled.
    pub(crate) damaged: Vec<usize>,
}

/// What a list of the pets says about unknown rows. It is one record, so that all of it counts or
/// nothing.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Checked {
    /// Rows that were created, with their pets.
    pub(crate) found: Vec<(usize, i64)>,
    /// Rows that were not created.
    pub(crate) not_found: Vec<usize>,
    /// Rows that may have been created, with the pets that may be theirs.
    pub(crate) uncertain: Vec<(usize, Vec<i64>)>,
}

/// The state of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum RowState {
    Left,
    /// Will be sent in this run.
    Announced,
    /// May have been sent, and the outcome is not known.
    Unknown,
    /// Unknown, and one of these pets may be its own.
    Uncertain(Vec<i64>),
    Created(i64),
    Rejected(String),
}

impl RowState {
    pub(crate) fn is_left(&self) -> bool {
        matches!(self, Self::Left | Self::Announced)
    }

    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown | Self::Uncertain(_))
    }
}

/// Returns a time in milliseconds since 1970.
pub(super) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn line(record: &Record) -> io::Result<String> {
    let text = serde_json::to_string(record)?;
    Ok(format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes())))
}

pub(crate) fn parse(line: &[u8]) -> Option<Record> {
    let (checksum, text) = line.split_at_checked(9)?;
    let expected = format!("{:08x} ", crc32fast::hash(text));
    if checksum != expected.as_bytes() {
        return None;
    }
    serde_json::from_slice(text).ok()
}
