//! The files that an import writes: rejected and created rows.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::journal::State;
use super::rows::Rows;
use crate::env::System;
use crate::error::{CliError, Result};
use crate::files;

/// The files of rows.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct RowFiles {
    /// Write rejected and invalid rows, with reasons
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    rejects: Option<PathBuf>,

    /// Write created rows, with the ids of their pets
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

    /// Returns the paths for the journal. They are absolute, because a later run may be started in
    /// another folder.
    pub(super) fn paths(&self) -> Result<Vec<String>> {
        let named = self.named().into_iter();
        named.map(|(_, path)| absolute(path)).collect()
    }

    /// Checks that the files do not exist yet, or were written by an earlier run of this import.
    pub(super) fn check_own(&self, state: &State) -> Result<()> {
        for (option, path) in self.named() {
            let data = path.metadata();
            let has_content = data.is_ok_and(|data| data.is_file() && data.len() > 0);
            if has_content && !state.has_written(&absolute(path)?) {
                let shown = path.display();
                let problem = format!("{shown} exists and is not from this import");
                return Err(name_another(problem, option));
            }
        }
        Ok(())
    }

    /// Locks the files, so that nothing else of an import is written to them while the returned ones
    /// are open. They must not exist yet, or be from an earlier run of this import.
    pub(super) fn reserve(&self, state: &State, system: &System) -> Result<Vec<File>> {
        let mut reserved = Vec::new();
        for (option, path) in self.named() {
            match files::reserve(path) {
                Ok(file) => reserved.extend(file),
                Err(TryLockError::WouldBlock) => {
                    let shown = system.shown(path);
                    let problem = format!("{shown} is already being written by an import");
                    return Err(name_another(problem, option));
                }
                Err(TryLockError::Error(problem)) => {
                    return Err(files::not_written(path, system, &problem));
                }
            }
        }
        self.check_own(state)?;
        Ok(reserved)
    }

    /// Writes the files. Returns the errors of those that cannot be written.
    pub(super) fn write(&self, rows: &Rows, state: &State, system: &System) -> Vec<CliError> {
        let mut rejected = rows.reasons();
        let mut created = BTreeMap::new();
        for (row, state) in state.rows().iter().enumerate() {
            rejected.extend(state.rejected().map(|why| (row, json!(why))));
            created.extend(state.pet().map(|id| (row, json!(id))));
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

fn name_another(problem: String, option: &str) -> CliError {
    CliError::usage(problem).hint(format!("name another file with `{option}`"))
}

fn absolute(path: &Path) -> Result<String> {
    let path = std::path::absolute(path).map_err(CliError::internal)?;
    Ok(path.to_string_lossy().into_owned())
}
