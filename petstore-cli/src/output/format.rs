//! The formats by name, and what each of them does.

use std::io::{self, Write};

use super::json::Json;
use super::records::Records;
use super::table::Table;
use super::tsv::Tsv;

/// A way to write records.
pub(crate) trait Format {
    fn write(&self, records: &Records, out: &mut dyn Write) -> io::Result<()>;
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OutputFormat {
    /// Aligned columns for people
    Table,
    /// One JSON document
    Json,
    /// Tab-separated values without a header
    Tsv,
}

impl OutputFormat {
    /// Returns what is used where none is asked for: a table for people, tabs for programs.
    pub(crate) fn fitting(is_terminal: bool) -> Self {
        if is_terminal { Self::Table } else { Self::Tsv }
    }

    pub(crate) fn format(self) -> &'static dyn Format {
        match self {
            Self::Table => &Table,
            Self::Json => &Json,
            Self::Tsv => &Tsv,
        }
    }
}
