//! The steps of an import of one input.

use std::path::PathBuf;

use futures_util::StreamExt as _;
use petstore_client::{Client, Error};

use super::check::{accept, check};
use super::command::{Change, typed};
use super::input::Input;
use super::journal::{Beginning, Journal, Record, RowState};
use super::pace::{Pace, PaceArgs};
use super::report::{self, Summary};
use super::resume::{UnknownAction, UnknownArgs, address, corrected_rows, report_journal};
use super::row_files::RowFiles;
use super::send::Sender;
use crate::context::Context;
use crate::env::Signals;
use crate::error::{CliError, Failure, Kind, Result};
use crate::output::Output;
use crate::time::{plural, wait_option};

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
    ) -> Result<Self> {
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
    ) -> Result<()> {
        self.begin(client)?;
        let sent = self.work(client, pace, signals).await;
        self.finish(sent, output)
    }

    /// Starts a run in the journal.
    fn begin(&mut self, client: &Client) -> Result<()> {
        let context = self.context;
        let base_url = address(context, client);
        let corrected = corrected_rows(&self.input, self.journal.state(), Some(&base_url))?;
        self.files.check_own(self.journal.state())?;
        self.journal.resize(self.input.rows().len());
        let action = self.unknown.action();
        report_journal(context, &self.input, self.journal.state(), action)?;
        if self.journal_path.is_none() && !context.settings().is_mock() {
            let name = self.input.kind();
            let text = format!("no journal for {name}: an interrupted run cannot continue");
            context.ui().note(&text);
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
    ) -> Result<()> {
        let context = self.context;
        let is_unknown = !self.journal.state().unknown().is_empty();
        if is_unknown && self.unknown.action() == UnknownAction::Check {
            tokio::select! {
                biased;
                Some(signal) = signals.next() => return Err(signal.into()),
                doubt = check(context, client, &self.input, &mut self.journal) => self.doubt = doubt?,
            }
        }
        if self.unknown.accepts_uncertain() {
            accept(context, &mut self.journal)?;
        }
        if is_unknown && self.unknown.action() == UnknownAction::Retry {
            self.retry()?;
        }
        report::nothing_to_send(context, &self.input, self.journal.state());
        let pace = Pace::new(pace);
        let sender = Sender::new(context, client, &self.input, &mut self.journal, pace);
        sender.run(signals).await
    }

    /// Sends unknown rows again.
    fn retry(&mut self) -> Result<()> {
        let unknown = self.journal.state().unknown();
        let rows = plural(unknown.len(), "unknown row", "unknown rows");
        let pets = plural(unknown.len(), "pet", "pets");
        let text = format!("sending {rows} again; up to {pets} may exist twice");
        self.context.ui().warning(&text, None);
        self.journal.write(vec![Record::Retry(unknown)])
    }

    /// Writes the files of rows, prints the summary, and returns the result of the run.
    fn finish(self, sent: Result<()>, output: Output) -> Result<()> {
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
        let checks_unknown = self.unknown.action() == UnknownAction::Check;
        let state = self.journal.state();
        let progress = report::progress(&self.input, state, checks_unknown);
        // The hint must not repeat `--unknown retry`, which could send rows twice.
        let change = match self.unknown.action() {
            UnknownAction::Check => Change::Check,
            UnknownAction::Skip | UnknownAction::Retry => Change::Continue,
        };
        let resume = self.resume(change);
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

    /// Returns the hint that continues the run, if it has a journal.
    fn resume(&self, change: Change) -> Option<String> {
        self.journal_path.as_ref()?;
        let command = typed(self.context.args(), change);
        Some(format!("`{command}` continues"))
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
        if unwritten == 0 {
            return None;
        }
        let rows = plural(unwritten, "outcome is", "outcomes are");
        Some(format!(
            "{rows} not in the journal; `--unknown check` finds them"
        ))
    }
}

/// Returns whether a file could not be written.
fn is_unwritten(error: &CliError) -> bool {
    match error {
        CliError::Failure(failure) => failure.kind == Kind::Internal,
        CliError::Client(_) | CliError::Silent(_) => false,
    }
}

/// Combines the error of a run with those of files that could not be written.
fn combine(result: Result<()>, mut unwritten: Vec<CliError>) -> Result<()> {
    let (mut first, others) = match result {
        Err(error) if is_unwritten(&error) => (error, unwritten),
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
