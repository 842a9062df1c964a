//! Finds the journal of an input, checks that it belongs to the input, and reports what it says
//! about earlier runs.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use petstore_client::Client;

use super::command::{Change, typed};
use super::input::Input;
use super::journal::{RowState, State};
use super::rows::Row;
use crate::context::Context;
use crate::error::{CliError, Kind, Result};
use crate::time::plural;

/// What to do with rows that may have been created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum UnknownAction {
    /// Leave them
    Skip,
    /// List the pets to find out
    Check,
    /// Send them again
    Retry,
}

/// What to do with rows that may have been created.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct UnknownArgs {
    /// rows that may have been created: skip, check (list the pets) or retry (may
    /// duplicate)
    #[arg(
        long,
        value_name = "ACTION",
        default_value = "skip",
        hide_possible_values = true
    )]
    unknown: UnknownAction,

    /// count rows that stay uncertain as created
    #[arg(long)]
    accept_uncertain: bool,
}

impl UnknownArgs {
    pub(super) fn action(&self) -> UnknownAction {
        self.unknown
    }

    pub(super) fn accepts_uncertain(&self) -> bool {
        self.accept_uncertain
    }
}

/// Checks that the content of a journal belongs to this input and service. Returns the rejected rows that
/// were corrected.
pub(super) fn corrected_rows(
    input: &Input,
    state: &State,
    base_url: Option<&str>,
) -> Result<Vec<usize>> {
    if let Some(run) = state.last_run()
        && let Some(base_url) = base_url
        && base_url != run.base_url
    {
        let name = input.name();
        let problem = format!("{name} was imported to {}", run.base_url);
        let hint = "`--journal FILE` keeps another journal for another service";
        return Err(CliError::usage(problem).hint(hint));
    }
    changed_rows(input, state)
}

/// Reports what an earlier run left.
pub(super) fn report_journal(
    context: &Context,
    input: &Input,
    state: &State,
    action: UnknownAction,
) -> Result<()> {
    let unknown = state.totals().unknown;
    let defect = state.defect();
    if let (Some(defect), 1.., UnknownAction::Skip) = (&defect, unknown, action) {
        let rows = plural(unknown, "row", "rows");
        let problem = format!("{defect}; {rows} may have been created");
        let command = typed(context.args(), Change::Check);
        let hint = format!("`{command}` finds out");
        return Err(CliError::new(Kind::Partial, problem).hint(hint));
    }
    if state.is_cut() && defect.is_none() {
        let rows = plural(unknown, "row is", "rows are");
        context.ui().note(&format!(
            "the journal ended in an incomplete line; {rows} unknown"
        ));
    }
    let before = state.last_run().map_or(usize::MAX, |run| run.rows);
    let appended = input.rows().len().saturating_sub(before);
    if appended > 0 {
        let rows = plural(appended, "row was", "rows were");
        let text = format!("{rows} appended since the last run");
        context.ui().note(&text);
    }
    Ok(())
}

/// Returns the rejected rows that were corrected. Fails if sent rows have changed.
fn changed_rows(input: &Input, state: &State) -> Result<Vec<usize>> {
    let rows = input.rows();
    let mut is_same_file = false;
    let mut corrected = Vec::new();
    let mut changed = None;
    for (row, row_state) in state.rows().iter().enumerate() {
        let Some(digest) = state.digest(row) else {
            continue;
        };
        let now = rows.get(row).map(Row::digest);
        if now == Some(digest) {
            is_same_file = true;
            continue;
        }
        match row_state {
            RowState::Created(_) | RowState::Unknown | RowState::Uncertain(_) => {
                changed = changed.or(Some((row, row_state)));
            }
            RowState::Rejected(_) if now.is_some() => corrected.push(row),
            RowState::Rejected(_) | RowState::Left | RowState::Announced => {}
        }
    }
    match changed {
        Some((row, row_state)) if is_same_file => Err(changed_row(input, row, row_state)),
        Some(_) => Err(other_file(input, state)),
        None => Ok(corrected),
    }
}

/// Describes a file in which no row is at its place.
fn other_file(input: &Input, state: &State) -> CliError {
    let name = input.name();
    let known: HashSet<u32> = (0..state.rows().len())
        .filter_map(|row| state.digest(row))
        .collect();
    let rows = input.rows().iter();
    let moved = rows.filter(|row| known.contains(&row.digest())).count();
    if moved > 0 {
        let rows = plural(moved, "row", "rows");
        let problem = format!("{rows} of {name} moved since the last import");
        let hint = "undo the change; under another name, pets that exist would be created again";
        return CliError::usage(problem).hint(hint);
    }
    let problem = format!("{name} is not the file of its journal: none of its rows match");
    let hint = "import the new file under another name";
    CliError::usage(problem).hint(hint)
}

fn changed_row(input: &Input, row: usize, state: &RowState) -> CliError {
    let name = input.name();
    let became = match state {
        RowState::Created(id) => format!("created as pet {id}"),
        _ => "sent".to_owned(),
    };
    let problem = match input.rows().get(row) {
        Some(row) => format!("{name} {} has changed since it was {became}", row.place()),
        None => format!("row {} of {name} is missing since it was {became}", row + 1),
    };
    let hint = "undo the change; new pets go at the end of the file";
    CliError::usage(problem).hint(hint)
}

/// Identifies the service in a journal.
pub(super) fn address(context: &Context, client: &Client) -> String {
    match context.settings().is_mock() {
        true => "mock".to_owned(),
        false => client.base_url().to_string(),
    }
}

/// Returns the journal of an input: by default next to its file. Standard input, a shell's `<(...)` and a
/// mock server have none.
pub(super) fn journal_path(
    context: &Context,
    input: &Input,
    named: Option<&Path>,
) -> Result<Option<PathBuf>> {
    if named.is_some() || context.settings().is_mock() {
        return Ok(named.map(Path::to_owned));
    }
    let Some(file) = input.file() else {
        return Ok(None);
    };
    // A link and its file are one input.
    let path = if file.is_symlink() {
        file.canonicalize().map_err(CliError::internal)?
    } else {
        file.to_owned()
    };
    let journal = beside(&path);
    if !journal.exists()
        && let Some(other) = hard_link(&path)
    {
        return Ok(Some(beside(&other)));
    }
    Ok(Some(journal))
}

/// Returns the journal next to a file.
fn beside(file: &Path) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(".petstore-journal");
    path.into()
}

/// Returns another name of the same file in its folder (a hard link) if that one was imported.
#[cfg(unix)]
fn hard_link(file: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;

    let data = file.metadata().ok()?;
    if data.nlink() < 2 {
        return None;
    }
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let is_same = entry
            .metadata()
            .is_ok_and(|other| (other.dev(), other.ino()) == (data.dev(), data.ino()));
        if is_same && beside(&entry.path()).exists() {
            return Some(entry.path());
        }
    }
    None
}

#[cfg(not(unix))]
fn hard_link(_: &Path) -> Option<PathBuf> {
    None
}
