//! The files that an import writes: rejected, unknown and created rows.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::journal::{RowState, State};
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

    fn named(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let files = [("--rejects", &self.rejects), ("--created", &self.created)];
        files.into_iter().filter_map(|(option, path)| {
            let path = path.as_deref()?;
            Some((option, path))
        })
    }

    /// Returns the paths for the journal. They are absolute, because a later run may be started in
    /// another folder.
    pub(super) fn paths(&self) -> Result<Vec<String>> {
        self.named().map(|(_, path)| absolute(path)).collect()
    }

    /// Returns one of the options that name a file, if any is given.
    pub(super) fn option(&self) -> Option<&'static str> {
        self.named().map(|(option, _)| option).next()
    }

    /// Checks that the import writes different files, because otherwise one would replace another.
    pub(super) fn check_different(&self, journal: Option<&Path>) -> Result<()> {
        let mut files = Vec::new();
        if let Some(path) = journal {
            files.push(("the journal".to_owned(), path));
        }
        for (option, path) in self.named() {
            files.push((format!("`{option}`"), path));
        }
        let mut seen = BTreeMap::new();
        for (name, path) in files {
            if path.exists() && !path.is_file() {
                continue;
            }
            let path = full_path(path).map_err(CliError::internal)?;
            if let Some(other) = seen.get(&path) {
                let problem = format!("{other} and {name} are the same file");
                let hint = "name a different file for each";
                return Err(CliError::usage(problem).hint(hint));
            }
            seen.insert(path, name);
        }
        Ok(())
    }

    /// Checks that the files do not exist yet, or were written by an earlier run of this import.
    pub(super) fn check_own(&self, state: &State) -> Result<()> {
        for (option, path) in self.named() {
            if is_used(path) && !state.has_written(&absolute(path)?) {
                let shown = path.display();
                let problem = format!("{shown} exists and is not from this import");
                let hint = format!("name another file with `{option}`");
                return Err(CliError::usage(problem).hint(hint));
            }
        }
        Ok(())
    }

    /// Reserves the files, so that no other import writes them until this one has ended. They must
    /// not exist yet, or be from an earlier run of this import.
    pub(super) fn reserve(&self, state: &State, system: &System) -> Result<Reserved> {
        self.check_own(state)?;
        let mut files = Vec::new();
        for (option, path) in self.named() {
            match files::reserve(path) {
                Ok(file) => files.extend(file),
                Err(TryLockError::WouldBlock) => {
                    let shown = system.shown(path);
                    let problem = format!("{shown} is being written by another import");
                    let hint = format!("name another file with `{option}`");
                    return Err(CliError::usage(problem).hint(hint));
                }
                Err(TryLockError::Error(problem)) => {
                    return Err(files::not_written(path, system, &problem));
                }
            }
        }
        // Another import may have written one of them just before.
        self.check_own(state)?;
        Ok(Reserved { _files: files })
    }

    /// Writes the files. Returns the errors of those that cannot be written.
    pub(super) fn write(&self, rows: &Rows, state: &State, system: &System) -> Vec<CliError> {
        let mut rejected = rows.reasons();
        let mut created = BTreeMap::new();
        for (row, state) in state.rows().iter().enumerate() {
            if let RowState::Rejected(why) = state {
                rejected.insert(row, json!(why));
            }
            if let Some(id) = state.pet() {
                created.insert(row, json!(id));
            }
        }
        let files = [
            (&self.rejects, "reason", rejected),
            (&self.created, "petId", created),
        ];
        let mut errors = Vec::new();
        for (path, column, values) in files {
            let Some(path) = path else { continue };
            let text = rows.with_column(column, &values);
            let written = text.and_then(|text| files::write(path, text, system));
            errors.extend(written.err());
        }
        errors
    }
}

/// The files of rows, reserved for one import.
#[derive(Default)]
pub(super) struct Reserved {
    /// They are locked while they are open.
    _files: Vec<File>,
}

fn absolute(path: &Path) -> Result<String> {
    let path = std::path::absolute(path).map_err(CliError::internal)?;
    Ok(path.to_string_lossy().into_owned())
}

/// Returns the path without links, also if the file does not exist yet.
fn full_path(path: &Path) -> io::Result<PathBuf> {
    match std::fs::canonicalize(path) {
        Ok(path) => Ok(path),
        Err(_) => std::path::absolute(path),
    }
}

/// Returns whether there is a file with content.
fn is_used(path: &Path) -> bool {
    match std::fs::metadata(path) {
        Ok(file) => file.is_file() && file.len() > 0,
        Err(_) => false,
    }
}
