//! The steps of an import of one input.

use std::path::{Path, PathBuf};

use futures_util::StreamExt as _;
use petstore_client::{Client, Error};

use super::check::{accept, check};
use super::command::{Change, typed};
use super::input::Input;
use super::journal::{Beginning, Journal, Record, RowState, State};
use super::pace::{Pace, PaceArgs};
use super::report::{self, Summary};
use super::row_files::RowFiles;
use super::rows::Row;
use super::send::Sender;
use crate::context::Context;
use crate::env::Signals;
use crate::error::{CliError, Failure, Kind};
use crate::output::Output;
use crate::time::{plural, wait_option};

/// What to do with rows whose response was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum UnknownAction {
    /// Leave them
    Skip,
    /// List the pets to find out
    Check,
    /// Send them again
    Retry,
}

/// What to do with rows whose response was lost.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct UnknownArgs {
    /// rows without a response: skip, check (list the pets) or retry (may duplicate)
    #[arg(
        long,
        value_name = "ACTION",
        default_value = "skip",
        hide_possible_values = true
    )]
    unknown: UnknownAction,

    /// take rows as created that the check left uncertain
    #[arg(long)]
    accept_uncertain: bool,
}

impl UnknownArgs {
    pub(super) fn action(&self) -> UnknownAction {
        self.unknown
    }
}

/// The import of one input.
pub(super) struct Job<'a> {
    context: &'a Context,
    input: Input,
    journal_path: Option<PathBuf>,
    unknown: UnknownArgs,
    files: &'a RowFiles,
    journal: Journal,
    /// Why `--unknown check` could not find out about all rows.
    doubt: Option<String>,
}

impl<'a> Job<'a> {
    /// Opens the journal of an input, and checks that its content belongs to the input.
    pub(super) fn open(
        context: &'a Context,
        input: Input,
        journal_path: Option<PathBuf>,
        unknown: UnknownArgs,
        files: &'a RowFiles,
    ) -> Result<Self, CliError> {
        let journal = match &journal_path {
            None => Journal::nowhere(),
            Some(path) => Journal::open(path, input.name(), context)?,
        };
        Ok(Self {
            context,
            input,
            journal_path,
            unknown,
            files,
            journal,
            doubt: None,
        })
    }

    /// Runs the import, and prints its summary.
    pub(super) async fn run(
        mut self,
        client: &Client,
        pace: &PaceArgs,
        signals: &mut Signals,
        output: Output,
    ) -> Result<(), CliError> {
        self.begin(client)?;
        let sent = self.work(client, pace, signals).await;
        self.finish(sent, output)
    }

    /// Starts a run in the journal.
    fn begin(&mut self, client: &Client) -> Result<(), CliError> {
        let context = self.context;
        let base_url = address(context, client);
        let corrected = resume(&self.input, self.journal.state(), Some(&base_url))?;
        self.files.check_own(self.journal.state())?;
        self.journal.resize(self.input.rows().len());
        let action = self.unknown.unknown;
        report_journal(context, &self.input, self.journal.state(), action)?;
        if self.journal_path.is_none() && !context.settings().is_mock() {
            let name = self.input.kind();
            context.ui().note(&format!(
                "no journal for {name}: an interrupted run cannot continue"
            ));
        }
        self.journal.begin(Beginning {
            base_url,
            started: context.connector().clock().now(),
            limit: context.settings().values().timeout(),
            files: self.files.paths(),
        })?;
        let corrected = Record::Rows(RowState::Announced, corrected);
        self.journal.write(vec![corrected])
    }

    /// Handles unknown rows as the user chose, and sends the remaining rows.
    async fn work(
        &mut self,
        client: &Client,
        pace: &PaceArgs,
        signals: &mut Signals,
    ) -> Result<(), CliError> {
        let context = self.context;
        let is_unknown = !self.journal.state().unknown().is_empty();
        if is_unknown && self.unknown.unknown == UnknownAction::Check {
            tokio::select! {
                biased;
                Some(signal) = signals.next() => return Err(signal.into()),
                doubt = check(context, client, &self.input, &mut self.journal) => self.doubt = doubt?,
            }
        }
        if self.unknown.accept_uncertain {
            accept(context, &mut self.journal)?;
        }
        if is_unknown && self.unknown.unknown == UnknownAction::Retry {
            self.retry()?;
        }
        report::nothing_to_send(context, &self.input, self.journal.state());
        let pace = Pace::new(pace);
        let sender = Sender::new(context, client, &self.input, &mut self.journal, pace);
        sender.run(signals).await
    }

    /// Sends unknown rows again.
    fn retry(&mut self) -> Result<(), CliError> {
        let unknown = self.journal.state().unknown();
        let rows = plural(unknown.len(), "unknown row", "unknown rows");
        let pets = plural(unknown.len(), "pet", "pets");
        let text = format!("sending {rows} again; up to {pets} may exist twice");
        self.context.ui().warning(&text, None);
        self.journal.write(vec![Record::Retry(unknown)])
    }

    /// Writes the files of rows, prints the summary, and returns the result of the run.
    fn finish(self, sent: Result<(), CliError>, output: Output) -> Result<(), CliError> {
        let context = self.context;
        context.ui().set_progress(None);
        context.ui().set_activity(None);
        if self.journal.is_removed() {
            let text =
                "the journal was removed during the import; another run sends all rows again";
            context.ui().warning(text, None);
        }
        let state = self.journal.state();
        let unwritten = self.files.write(&self.input, state, context.system());
        let summary = Summary::new(&self.input, state, self.journal_path.as_deref(), self.files);
        summary.print(context, output)?;
        let result = match sent {
            Ok(()) => summary.leftovers(context, self.doubt),
            Err(stop) => Err(self.stopped(stop)),
        };
        combine(result, unwritten)
    }
}

impl Job<'_> {
    /// Returns the error of a run that ended early, with the command that continues.
    fn stopped(&self, stop: CliError) -> CliError {
        let context = self.context;
        let progress = report::progress(&self.input, self.journal.state());
        // After a retry, another one could send rows twice.
        let change = match self.unknown.unknown {
            UnknownAction::Check => Change::Check,
            UnknownAction::Skip | UnknownAction::Retry => Change::Continue,
        };
        let command = typed(context.args(), change);
        let resume = self.journal_path.as_ref();
        let resume = resume.map(|_| format!("`{command}` continues"));
        let failure = match stop {
            CliError::Failure(mut failure) => {
                match failure.kind {
                    Kind::Interrupted | Kind::Terminated => {
                        failure.message = format!("{} after {progress}", failure.message);
                        failure.hint = resume;
                    }
                    _ => failure.list.extend(self.unwritten()),
                }
                *failure
            }
            CliError::Client(error) => self.failed(&error, &progress, resume),
            CliError::Silent(code) => return CliError::Silent(code),
        };
        CliError::Failure(Box::new(failure))
    }

    /// Describes the error of a request that ended the run.
    fn failed(&self, error: &Error, progress: &str, resume: Option<String>) -> Failure {
        let mut failure = self.context.connector().explain_client(error);
        if let Some(blocked) = error.blocked() {
            let longer = wait_option(blocked.remaining);
            let hint = format!("run the command again then, or now with `--max-wait {longer}`");
            failure.message = format!("{progress} done; {}", failure.message);
            failure.hint = Some(hint);
        } else if failure.hint.is_none() || failure.kind != Kind::Key {
            failure.message = format!("stopped after {progress}: {}", failure.message);
            failure.hint = resume.or(failure.hint);
        }
        failure
    }

    /// Describes outcomes that the journal does not contain.
    fn unwritten(&self) -> Option<String> {
        let unwritten = self.journal.unwritten();
        let rows = plural(unwritten, "outcome is", "outcomes are");
        let text = format!("{rows} not in the journal; `--unknown check` finds them");
        (unwritten > 0).then_some(text)
    }
}

/// Returns the error of a run and of files that could not be written as one.
fn combine(result: Result<(), CliError>, mut unwritten: Vec<CliError>) -> Result<(), CliError> {
    let is_io = |error: &CliError| matches!(error, CliError::Failure(failure) if failure.kind == Kind::Internal);
    let (mut first, others) = match result {
        Err(error) if is_io(&error) => (error, unwritten),
        result if unwritten.is_empty() => return result,
        result => {
            let first = unwritten.remove(0);
            unwritten.extend(result.err());
            (first, unwritten)
        }
    };
    if let CliError::Failure(first) = &mut first {
        for other in others {
            if let CliError::Failure(other) = other {
                first.list.push(other.message);
                first.list.extend(other.list);
            }
        }
    }
    Err(first)
}

/// Checks that the content of a journal belongs to this input and service. Returns the rejected rows that
/// were corrected.
pub(super) fn resume(
    input: &Input,
    state: &State,
    base_url: Option<&str>,
) -> Result<Vec<usize>, CliError> {
    if let Some(run) = state.last_run()
        && let Some(base_url) = base_url
        && base_url != run.base_url
    {
        let problem = format!("{} was imported to {}", input.name(), run.base_url);
        return Err(CliError::usage(problem)
            .hint("`--journal FILE` keeps another journal for another service"));
    }
    changed_rows(input, state)
}

/// Reports what an earlier run left.
pub(super) fn report_journal(
    context: &Context,
    input: &Input,
    state: &State,
    action: UnknownAction,
) -> Result<(), CliError> {
    let unknown = state.totals().unknown;
    let defect = state.defect();
    if let (Some(defect), 1.., UnknownAction::Skip) = (&defect, unknown, action) {
        let rows = plural(unknown, "row", "rows");
        let problem = format!("{defect}; {rows} may have been created");
        let hint = format!("`{}` finds out", typed(context.args(), Change::Check));
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
fn changed_rows(input: &Input, state: &State) -> Result<Vec<usize>, CliError> {
    let rows = input.rows();
    let (mut is_same_file, mut corrected, mut changed) = (false, Vec::new(), None);
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
        Some((row, row_state)) => Err(changed_row(input, row, row_state, is_same_file)),
        None => Ok(corrected),
    }
}

fn changed_row(input: &Input, row: usize, state: &RowState, is_same_file: bool) -> CliError {
    let name = input.name();
    if !is_same_file {
        let problem = format!("{name} is not the file of its journal: none of its rows match");
        return CliError::usage(problem).hint("import the new file under another name");
    }
    let became = match state {
        RowState::Created(id) => format!("created as pet {id}"),
        _ => "sent".to_owned(),
    };
    let problem = match input.rows().get(row) {
        Some(row) => format!("{name} {} has changed since it was {became}", row.place()),
        None => format!("row {} of {name} is missing since it was {became}", row + 1),
    };
    CliError::usage(problem).hint("undo the change; new pets go at the end of the file")
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
) -> Result<Option<PathBuf>, CliError> {
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

/// Returns another name of a file in the same folder, which was imported.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_names_every_file_that_could_not_be_written() {
        let failed = |name: &str| CliError::new(Kind::Internal, format!("cannot write {name}"));
        let text = |error: CliError| match error {
            CliError::Failure(failure) => [vec![failure.message], failure.list].concat().join(", "),
            _ => String::new(),
        };
        let files = || vec![failed("no.csv"), failed("new.csv")];
        let all = combine(Err(failed("the journal")), files()).unwrap_err();
        let expected = "cannot write the journal, cannot write no.csv, cannot write new.csv";
        assert_eq!(text(all), expected);
        let partial = CliError::new(Kind::Partial, "1 row was rejected");
        let two = combine(Err(partial), files()).unwrap_err();
        let expected = "cannot write no.csv, cannot write new.csv, 1 row was rejected";
        assert_eq!(text(two), expected);
        assert!(combine(Ok(()), vec![]).is_ok());
    }
}
