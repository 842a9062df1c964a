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
use super::row_files::{Reserved, RowFiles};
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
    reserved: Reserved,
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
            Some(path) => Journal::open(path, context)?,
        };
        Ok(Self {
            context,
            input,
            journal_path,
            unknown,
            files,
            journal,
            reserved: Reserved::default(),
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
        let input = &self.input;
        let base_url = address(context, client);
        let state = self.journal.state();
        let corrected = corrected_rows(input, state, Some(&base_url))?;
        self.reserved = self.files.reserve(state, context.system())?;
        self.journal.resize(input.rows().len());
        let state = self.journal.state();
        let action = self.unknown.action();
        report_journal(context, input, state, action)?;
        let is_mock = context.settings().is_mock();
        if self.journal_path.is_none() && !is_mock {
            let name = input.kind();
            let text = format!("no journal for {name}: an interrupted run cannot continue");
            context.ui().note(&text);
        }
        self.journal.begin(Beginning {
            base_url,
            started: context.connector().clock().now(),
            limit: context.settings().values().timeout(),
            files: self.files.paths()?,
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
        let input = &self.input;
        let journal = &mut self.journal;
        let is_unknown = !journal.state().unknown().is_empty();
        let action = self.unknown.action();
        if is_unknown && action == UnknownAction::Check {
            let checked = check(context, client, input, journal);
            self.doubt = tokio::select! {
                biased;
                Some(signal) = signals.next() => return Err(signal.into()),
                doubt = checked => doubt?,
            }
        }
        if self.unknown.accepts_uncertain() {
            accept(context, journal)?;
        }
        if is_unknown && action == UnknownAction::Retry {
            retry(context, journal)?;
        }
        report::nothing_to_send(context, input, journal.state());
        let pace = Pace::new(pace);
        let sender = Sender::new(context, client, input, journal, pace);
        sender.run(signals).await
    }

    /// Writes the files of rows, prints the summary, and returns the result of the run.
    fn finish(mut self, sent: Result<()>, output: Output) -> Result<()> {
        let context = self.context;
        let ui = context.ui();
        ui.set_progress(None);
        ui.set_activity(None);
        if self.journal.is_removed() {
            let text =
                "the journal was removed during the import; another run sends all rows again";
            ui.warning(text, None);
        }
        let input = &self.input;
        let state = self.journal.state();
        let system = context.system();
        // Windows replaces no file that is open.
        if cfg!(windows) {
            self.reserved = Reserved::default();
        }
        let mut unwritten = self.files.write(input, state, system);
        let path = self.journal_path.as_deref();
        let summary = Summary::new(input, state, path, self.files);
        // The result of the run counts, also if nobody reads the summary.
        let printed = match summary.print(context, output) {
            Err(error @ CliError::Failure(_)) => {
                unwritten.push(error);
                Ok(())
            }
            printed => printed,
        };
        let result = match sent {
            Ok(()) => summary.leftovers(context, self.doubt),
            Err(stop) => Err(self.stopped(stop)),
        };
        combine(result, unwritten).and(printed)
    }
}

impl Job<'_> {
    /// Returns the error of a run that ended early, with what was done and how to continue.
    fn stopped(&self, stop: CliError) -> CliError {
        match stop {
            CliError::Failure(failure) => {
                let failure = self.ended(*failure);
                failure.into()
            }
            CliError::Client(error) => self.failed(&error).into(),
            CliError::Silent(code) => CliError::Silent(code),
        }
    }

    /// Returns how many rows are done: `12 of 30 rows`.
    fn progress(&self) -> String {
        let action = self.unknown.action();
        let checks_unknown = action == UnknownAction::Check;
        let state = self.journal.state();
        report::progress(&self.input, state, checks_unknown)
    }

    /// Returns the hint that continues the run, if it has a journal.
    fn resume(&self) -> Option<String> {
        let command = self.command()?;
        Some(format!("`{command}` continues"))
    }

    /// Returns the command that continues the run, if it has a journal.
    fn command(&self) -> Option<String> {
        self.journal_path.as_ref()?;
        // It must not repeat `--unknown retry`, which could send rows twice.
        let change = match self.unknown.action() {
            UnknownAction::Check => Change::Check,
            UnknownAction::Skip | UnknownAction::Retry => Change::Continue,
        };
        Some(typed(self.context.args(), change))
    }

    /// Describes a signal, or a failure of the program, that ended the run.
    fn ended(&self, mut failure: Failure) -> Failure {
        let message = &failure.message;
        match failure.kind {
            Kind::Interrupted | Kind::Terminated => {
                let progress = self.progress();
                failure.message = format!("{message} after {progress}");
                failure.hint = self.resume();
            }
            _ => failure.list.extend(self.unwritten()),
        }
        failure
    }

    /// Describes the error of a request that ended the run.
    fn failed(&self, error: &Error) -> Failure {
        let connector = self.context.connector();
        let mut failure = connector.explain_client(error);
        let progress = self.progress();
        let message = &failure.message;
        if let Some(blocked) = error.blocked() {
            let longer = wait_option(blocked.remaining);
            let hint = match self.command() {
                Some(command) => {
                    format!("`{command}` continues then; `--max-wait {longer}` waits for it")
                }
                None => format!("`--max-wait {longer}` waits for it"),
            };
            failure.message = format!("{progress} done; {message}");
            failure.hint = Some(hint);
        } else if failure.hint.is_none() || failure.kind != Kind::Key {
            failure.message = format!("stopped after {progress}: {message}");
            failure.hint = self.resume().or(failure.hint);
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

/// Sends unknown rows again.
fn retry(context: &Context, journal: &mut Journal) -> Result<()> {
    let unknown = journal.state().unknown();
    let number = unknown.len();
    let rows = plural(number, "unknown row", "unknown rows");
    let pets = plural(number, "pet", "pets");
    let text = format!("sending {rows} again; up to {pets} may exist twice");
    context.ui().warning(&text, None);
    let record = Record::Retry(unknown);
    journal.write(vec![record])
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
