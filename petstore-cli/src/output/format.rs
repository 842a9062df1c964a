//! The formats by name, and what each of them does.

use std::io::Write;

use serde_json::Value;

use super::column::Column;
use super::writer::Look;
use super::{csv, id, json, ndjson, table, tsv, yaml};
use crate::error::CliError;

/// A way to write records.
pub(super) trait Format: Send {
    /// Returns what it needs to know of a result before it writes.
    fn kind(&self) -> Kind {
        Kind::Stream
    }

    /// Writes records.
    fn write(&mut self, records: &Records<'_>, out: &mut dyn Write) -> Result<(), CliError>;
}

/// What a format needs to know of a result before it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A record: each is written as it comes.
    Stream,
    /// All records.
    Whole,
    /// All records, since they are one document, which is whole or not there.
    Document,
}

/// Some records of a result, or all.
pub(super) struct Records<'r> {
    pub(super) rows: &'r [Value],
    pub(super) columns: &'r [Column],
    /// Whether nothing was written before.
    pub(super) first: bool,
    /// Whether the result is one value, and no list that happens to hold one.
    pub(super) single: bool,
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OutputFormat {
    /// Aligned columns for people
    Table,
    /// One JSON document
    Json,
    /// A JSON document on each line, as they come
    Ndjson,
    /// One YAML document
    Yaml,
    /// Comma-separated values with a header (RFC 4180), as they come
    Csv,
    /// Tab-separated values without a header, as they come
    Tsv,
    /// The identifiers alone, one on each line, as they come
    Id,
}

impl OutputFormat {
    /// Returns what is used where none is asked for: a table for people, tabs for programs.
    pub(super) fn fitting(is_terminal: bool) -> Self {
        if is_terminal { Self::Table } else { Self::Tsv }
    }

    pub(super) fn format(self, look: &Look) -> Box<dyn Format> {
        match self {
            Self::Table => Box::new(table::Table::new(look)),
            Self::Json => Box::new(json::Json { color: look.color }),
            Self::Ndjson => Box::new(ndjson::Ndjson { color: look.color }),
            Self::Yaml => Box::new(yaml::Yaml),
            Self::Csv => Box::new(csv::Csv { harmless: look.is_terminal }),
            Self::Tsv => Box::new(tsv::Tsv),
            Self::Id => Box::new(id::Id),
        }
    }
}
