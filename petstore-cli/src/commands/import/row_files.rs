//! The files that an import writes: rejected and created rows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::journal::State;
use super::rows::Rows;
use crate::env::System;
use crate::error::CliError;
use crate::files;

/// The files of rows.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct RowFiles {
    /// Replace FILE with rejected and invalid rows
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    rejects: Option<PathBuf>,

    /// Replace FILE with created rows and their ids
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    created: Option<PathBuf>,
}

impl RowFiles {
    pub(super) fn rejects(&self) -> Option<&Path> {
        self.rejects.as_deref()
    }

    pub(super) fn created(&self) -> Option<&Path> {
        self.created.as_deref()
    }

    /// Returns the files that the user named, each with its option.
    pub(super) fn named(&self) -> Vec<(&'static str, &Path)> {
        let mut named = Vec::new();
        named.extend(self.rejects().map(|path| ("--rejects", path)));
        named.extend(self.created().map(|path| ("--created", path)));
        named
    }

    /// Writes the files. Returns the errors of those that cannot be written.
    pub(super) fn write(&self, rows: &Rows, state: &State, system: &System) -> Vec<CliError> {
        let mut rejected = BTreeMap::new();
        for (row, why) in rows.invalid().chain(state.rejected()) {
            rejected.insert(row, Value::from(why));
        }
        let mut created = BTreeMap::new();
        for (row, id) in state.pets() {
            created.insert(row, Value::from(id));
        }
        let mut errors = Vec::new();
        for (path, column, values) in [
            (&self.rejects, "reason", rejected),
            (&self.created, "petId", created),
        ] {
            let Some(path) = path else { continue };
            let text = rows.with_column(column, &values);
            let written = text.and_then(|text| files::write(path, text, system));
            errors.extend(written.err());
        }
        errors
    }
}
