//! `petstore pets import`: creates the pets of a file, each once. All rows are checked before the
//! first is sent. A journal keeps the outcomes, so that the same command can continue.

mod cells;
mod check;
mod checker;
mod command;
mod forecast;
mod input;
mod job;
mod journal;
mod pace;
#[cfg(test)]
mod properties;
mod report;
mod resume;
mod row_files;
mod rows;
mod send;

use std::path::PathBuf;

use petstore_client::Client;

pub(super) use self::input::Input;
use self::input::InputArgs;
use self::job::Job;
use self::journal::{Record, RowState};
use self::pace::PaceArgs;
use self::report::Summary;
use self::resume::{UnknownAction, UnknownArgs};
use self::row_files::RowFiles;
use crate::context::Context;
use crate::env::Signals;
use crate::error::{CliError, Kind, Result};
use crate::session::Purpose;

/// Create the pets of a file. A row that may exist is sent again only on request.
#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    #[command(flatten)]
    input: InputArgs,

    /// check the rows and estimate the time; send nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    files: RowFiles,

    #[command(flatten)]
    unknown: UnknownArgs,

    #[command(flatten)]
    pace: PaceArgs,

    /// where rows are recorded [default: FILE.petstore-journal; none for standard input]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    journal: Option<PathBuf>,
}

/// An input, and where its outcomes are kept.
struct Task {
    input: Input,
    journal: Option<PathBuf>,
}

impl Import {
    pub(crate) async fn run(self, context: &mut Context) -> Result<()> {
        let mut signals = context.take_signals();
        // An invalid `--jq` is an error before anything is sent.
        report::output(context)?;
        self.check_options()?;
        let inputs = self.input.read(context, &mut signals).await?;
        let mut tasks = Vec::new();
        for input in inputs {
            let journal = resume::journal_path(context, &input, self.journal.as_deref())?;
            self.files.check_different(journal.as_deref())?;
            tasks.push(Task { input, journal });
        }
        if self.dry_run {
            return self.plan_all(context, tasks).await;
        }
        let client = context.connector().connect(Purpose::CreatePet).await?;
        self.run_all(context, &client, tasks, &mut signals).await
    }

    /// Refuses options that name one file for several inputs.
    fn check_options(&self) -> Result<()> {
        let journal = self.journal.as_ref().map(|_| "--journal");
        let option = journal.or(self.files.option());
        match option {
            Some(option) if self.input.has_several() => {
                let problem = format!("`{option}` names one file, but there are several inputs");
                Err(CliError::usage(problem).hint("import them one after the other"))
            }
            _ => Ok(()),
        }
    }

    /// Shows what an import of each input would do.
    async fn plan_all(&self, context: &mut Context, tasks: Vec<Task>) -> Result<()> {
        let client = context.connector().connect(Purpose::CreatePet).await.ok();
        for Task { input, journal } in tasks {
            let mut state = report::read_journal(context, journal.as_deref())?;
            let base_url = client
                .as_ref()
                .map(|client| resume::address(context, client));
            let corrected = resume::corrected_rows(&input, &state, base_url.as_deref())?;
            self.files.check_own(&state)?;
            state.resize(input.rows().len());
            let action = self.unknown.action();
            resume::report_journal(context, &input, &state, action)?;
            state.apply(Record::Rows(RowState::Announced, corrected));
            if action == UnknownAction::Retry {
                let unknown = state.unknown();
                state.apply(Record::Retry(unknown));
            }
            let summary = Summary::new(&input, &state, journal.as_deref(), &self.files);
            let output = report::output(context)?;
            report::plan(context, client.as_ref(), summary, output).await?;
        }
        Ok(())
    }

    /// Imports each input. The command ends with the last error. If rows of one input were rejected
    /// or are unknown, or the reader of the summaries has gone, the next input is imported all the
    /// same.
    async fn run_all(
        &self,
        context: &mut Context,
        client: &Client,
        tasks: Vec<Task>,
        signals: &mut Signals,
    ) -> Result<()> {
        let mut partial = Ok(());
        let mut printed = Ok(());
        for Task { input, journal } in tasks {
            if let Err(CliError::Failure(failure)) = &partial {
                context.ui().error(failure);
                partial = Err(CliError::Silent(failure.kind.code()));
            }
            let unknown = self.unknown.clone();
            let output = report::output(context)?;
            let job = Job::open(context, input, journal, unknown, &self.files)?;
            match job.run(client, &self.pace, signals, output).await {
                Ok(()) => {}
                Err(CliError::Failure(failure)) if failure.kind == Kind::Partial => {
                    partial = Err(CliError::Failure(failure));
                }
                // The rows are sent, and only the summary has no reader.
                Err(CliError::Silent(0)) => printed = Err(CliError::Silent(0)),
                Err(error) => return Err(error),
            }
        }
        partial.and(printed)
    }
}
