//! `petstore pets import`: creates the pets of a file, each once. All rows are checked before the
//! first is sent. A journal keeps the outcomes, so that the same command can continue.

mod check;
mod fields;
mod journal;
mod outage;
#[cfg(test)]
mod properties;
mod row_files;
mod rows;
mod send;
#[cfg(test)]
mod simulation;
mod summary;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use futures_util::StreamExt as _;
use petstore_client::limits::RateLimits;
use petstore_client::{Client, Error};

use self::check::check;
use self::journal::{Journal, Record, RowState, Run};
use self::row_files::{Reserved, RowFiles};
pub(super) use self::rows::Rows;
use self::send::Sender;
use self::summary::{Change, Summary, check_output, typed};
use crate::context::Context;
use crate::env::Signals;
use crate::error::{CliError, Failure, Invalid, Kind, Result};
use crate::input::input_name;
use crate::session::Purpose;
use crate::settings::{Seconds, parse};
use crate::time::{instant, plural, wait_option};

/// The maximum size of an input.
const MAX_INPUT: u64 = 200 << 20;

/// Create the pets of a file, each once.
///
/// All rows are checked before the first is sent. A journal next to FILE records each row: the same
/// command continues later, and sends rows appended since.
#[derive(Debug, clap::Args)]
#[command(after_long_help = examples!(
    "petstore pets import pets.csv --dry-run",
    "petstore pets import pets.csv --rejects rejects.csv --created created.csv",
    "petstore pets import pets.csv --unknown check",
    "petstore pets import pets.csv --max-wait 24h";
    "Fields: rows, total.created, total.found, total.rejected, total.unknown, total.left, \
     total.invalid, run.created, run.found, run.rejected, run.unknown, complete"
))]
pub(crate) struct Import {
    /// CSV with a header, or JSON objects, one per line or in an array, with name, categoryId and
    /// status [default: standard input]
    #[arg(
        id = "file",
        default_value = "-",
        hide_default_value = true,
        value_name = "FILE",
        value_hint = clap::ValueHint::FilePath
    )]
    inputs: Vec<PathBuf>,

    /// Separator: a character or tab [default: , or tab]
    #[arg(long, value_name = "C", value_parser = parse::<Delimiter>)]
    delimiter: Option<Delimiter>,

    /// Check the rows and say how long the quotas need; send nothing
    #[arg(long)]
    dry_run: bool,

    /// Send the valid rows although others are invalid
    #[arg(long)]
    skip_invalid: bool,

    #[command(flatten)]
    files: RowFiles,

    /// What to do with rows that may have been created
    #[arg(long, value_name = "ACTION", default_value = "skip")]
    unknown: UnknownAction,

    /// Send rejected rows again
    #[arg(long)]
    retry_rejected: bool,

    /// Rows in flight, 1 to 64 [default: 8]
    #[arg(
        long,
        value_name = "N",
        default_value = "8",
        hide_default_value = true,
        allow_negative_numbers = true,
        value_parser = in_flight
    )]
    concurrency: usize,

    /// How long the service may fail [default: 2m]
    #[arg(
        long,
        value_name = "TIME",
        default_value = "2m",
        hide_default_value = true,
        value_parser = parse::<Seconds<0>>
    )]
    retry_for: Seconds<0>,

    /// Where rows are recorded [default: FILE.petstore-journal; none for standard input]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    journal: Option<PathBuf>,
}

/// What to do with rows that may have been created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum UnknownAction {
    /// Leave them alone
    Skip,
    /// List the pets to find out
    Check,
    /// Send them again, which may duplicate them
    Retry,
}

/// The separator of CSV.
#[derive(Debug, Clone, Copy)]
struct Delimiter(u8);

impl FromStr for Delimiter {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text.as_bytes() {
            b"tab" | b"\\t" => Ok(Self(b'\t')),
            [byte] if byte.is_ascii() && !b"\"\r\n".contains(byte) => Ok(Self(*byte)),
            _ => Err(Invalid::new("is not one ASCII character, or `tab`")),
        }
    }
}

fn in_flight(text: &str) -> Result<usize, Invalid> {
    match text.parse() {
        Ok(number @ 1..=64) => Ok(number),
        _ => Err(Invalid::new("is not a number from 1 to 64")),
    }
}

/// An input, and where its outcomes are kept.
struct Task {
    rows: Rows,
    journal: Option<PathBuf>,
    /// Whether the input can be read only once.
    is_stream: bool,
}

/// A task with its files, which no other process may use meanwhile.
struct Job {
    rows: Rows,
    journal: Journal,
    run: Run,
    /// The rejected rows that were corrected in the input.
    mended: Vec<usize>,
    reserved: Reserved,
}

impl Import {
    pub(crate) async fn run(self, context: &mut Context) -> Result<()> {
        let mut signals = context.take_signals();
        check_output(context)?;
        self.check_options()?;
        let tasks = self.read(context, &mut signals).await?;
        if self.dry_run {
            return self.plan(context, &tasks).await;
        }
        let client = context.connector().connect(Purpose::CreatePet).await?;
        let mut jobs = Vec::new();
        for task in tasks {
            jobs.push(self.open(context, &client, task)?);
        }
        self.run_all(context, &client, jobs, &mut signals).await
    }

    /// Refuses options that name one file for several inputs.
    fn check_options(&self) -> Result<()> {
        let journal = self.journal.as_ref().map(|_| "--journal");
        match journal.or(self.files.option()) {
            Some(option) if self.inputs.len() > 1 => {
                let problem = format!("`{option}` names one file, but there are several inputs");
                Err(CliError::usage(problem).hint("import them one after the other"))
            }
            _ => Ok(()),
        }
    }

    /// Reads and checks all inputs.
    async fn read(&self, context: &mut Context, signals: &mut Signals) -> Result<Vec<Task>> {
        let mut tasks = Vec::new();
        let mut seen = HashSet::new();
        for input in &self.inputs {
            let bytes = tokio::select! {
                biased;
                Some(signal) = signals.next() => return Err(signal.into()),
                bytes = context.reader().read(input, "pets", MAX_INPUT) => bytes?,
            };
            let delimiter = self.delimiter.map(|delimiter| delimiter.0);
            let rows = Rows::read(&input_name(input), bytes, delimiter)?;
            if !self.skip_invalid {
                rows.check()?;
            }
            for warning in rows.warnings() {
                context.ui().warning(&warning, None);
            }
            // A link and its file are one input.
            let target = input.canonicalize().unwrap_or_else(|_| input.clone());
            if !seen.insert(target) {
                let problem = format!("{} is named twice", rows.name());
                return Err(CliError::usage(problem));
            }
            let journal = self.journal_path(context, input)?;
            self.files.check_different(journal.as_deref())?;
            tasks.push(Task {
                rows,
                journal,
                is_stream: !input.is_file(),
            });
        }
        Ok(tasks)
    }

    /// Returns the journal of an input: by default next to its file. Standard input, a shell's
    /// `<(…)` and a mock server have none.
    fn journal_path(&self, context: &Context, input: &Path) -> Result<Option<PathBuf>> {
        if self.journal.is_some() {
            return Ok(self.journal.clone());
        }
        if !input.is_file() || context.settings().is_mock() {
            return Ok(None);
        }
        // A link and its file are one input.
        let mut path = match input.is_symlink() {
            true => input.canonicalize().map_err(CliError::internal)?,
            false => input.to_owned(),
        }
        .into_os_string();
        path.push(".petstore-journal");
        Ok(Some(path.into()))
    }

    /// Shows what an import of each input would do.
    async fn plan(&self, context: &Context, tasks: &[Task]) -> Result<()> {
        let client = context.connector().connect(Purpose::CreatePet).await.ok();
        let limits = match &client {
            Some(client) => client.limits().exchange().await,
            None => RateLimits::default(),
        };
        let mut invalid = Ok(());
        for Task { rows, journal, .. } in tasks {
            let mut state = match journal {
                Some(path) => journal::read(path, context.system())?,
                None => journal::State::default(),
            };
            if let Some(client) = &client {
                check_address(context, rows, &state, &address(context, client))?;
            }
            let mended = journal::compare(rows, &state)?;
            self.files.check_own(&state)?;
            state.resize(rows.all().len());
            state.apply(&Record::Unsent(self.again(&state, mended)));
            let summary = Summary::of_state(rows, &state, &self.files);
            summary.print_plan(context, &limits)?;
            if rows.invalid() > 0 {
                let number = plural(rows.invalid(), "row is", "rows are");
                let problem = format!("{number} invalid in {}", rows.name());
                invalid = Err(CliError::new(Kind::Partial, problem).list(rows.problems()));
            }
        }
        invalid
    }

    /// Returns the recorded rows that are sent again.
    fn again(&self, state: &journal::State, mended: Vec<usize>) -> Vec<usize> {
        let mut rows = mended;
        if self.retry_rejected {
            rows.extend(state.rows_where(|row| matches!(row, RowState::Rejected(_))));
        }
        if self.unknown == UnknownAction::Retry {
            rows.extend(state.rows_where(|row| row.unknown().is_some()));
        }
        rows
    }

    /// Opens and locks the journal of an input, and checks that it belongs to the input.
    fn open(&self, context: &Context, client: &Client, task: Task) -> Result<Job> {
        let Task {
            rows,
            journal,
            is_stream,
        } = task;
        let run = Run {
            base_url: address(context, client),
            timeout: context.settings().values().timeout(),
            started: instant(context.connector().clock().now()),
            files: self.files.paths()?,
        };
        let journal = match journal {
            Some(path) => Journal::open(&path, &run, context.system())?,
            None => Journal::nowhere(),
        };
        if is_stream && journal.path().is_none() && !context.settings().is_mock() {
            let text = "no journal: an interrupted run cannot continue";
            context.ui().note(&format!("{} has {text}", rows.name()));
        }
        check_address(context, &rows, journal.state(), &run.base_url)?;
        let mended = journal::compare(&rows, journal.state())?;
        let reserved = self.files.reserve(journal.state(), context.system())?;
        Ok(Job {
            rows,
            journal,
            run,
            mended,
            reserved,
        })
    }

    /// Imports each input. The command ends with the last error. If rows of one input were rejected
    /// or are unknown, or the reader of the summaries has gone, the next input is imported all the
    /// same.
    async fn run_all(
        &self,
        context: &Context,
        client: &Client,
        jobs: Vec<Job>,
        signals: &mut Signals,
    ) -> Result<()> {
        let mut partial = Ok(());
        let mut printed = Ok(());
        for job in jobs {
            if let Err(CliError::Failure(failure)) = &partial {
                context.ui().error(failure);
                partial = Err(CliError::Silent(failure.kind.code()));
            }
            match self.run_one(context, client, job, signals).await {
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

    /// Imports an input, and prints its summary.
    async fn run_one(
        &self,
        context: &Context,
        client: &Client,
        mut job: Job,
        signals: &mut Signals,
    ) -> Result<()> {
        let sent = self.send(context, client, &mut job, signals).await;
        // Windows replaces no file that is open.
        if cfg!(windows) {
            job.reserved = Reserved::default();
        }
        let ui = context.ui();
        ui.set_progress(None);
        ui.set_activity(None);
        let Job { rows, journal, .. } = &job;
        if journal.is_removed() {
            let text =
                "the journal was removed during the import; another run sends all rows again";
            ui.warning(text, None);
        }
        let mut failed = self.files.write(rows, journal.state(), context.system());
        let summary = Summary::new(rows, journal, &self.files);
        let printed = match summary.print(context) {
            Err(error @ CliError::Failure(_)) => {
                // Without a journal, another run would create all pets again.
                failed.push(error.hint_if(None));
                Ok(())
            }
            printed => printed,
        };
        let result = match sent {
            Ok(doubt) => summary.leftovers(context, doubt.as_deref()),
            Err(stop) => Err(self.stopped(context, &summary, journal, stop)),
        };
        combine(result, failed).and(printed)
    }

    /// Treats unknown rows as the user chose, and sends what is left. Returns why the check did not
    /// settle all unknown rows.
    async fn send(
        &self,
        context: &Context,
        client: &Client,
        job: &mut Job,
        signals: &mut Signals,
    ) -> Result<Option<String>> {
        let Job {
            rows,
            journal,
            run,
            mended,
            ..
        } = job;
        journal.begin(run.clone(), rows.all().len())?;
        let again = self.again(journal.state(), std::mem::take(mended));
        let unknown = journal.state().totals().unknown;
        if self.unknown == UnknownAction::Retry && unknown > 0 {
            let rows = plural(unknown, "unknown row", "unknown rows");
            let pets = plural(unknown, "pet", "pets");
            let text = format!("sending {rows} again; up to {pets} may exist twice");
            context.ui().warning(&text, None);
        }
        if !again.is_empty() {
            journal.record(&[Record::Unsent(again)])?;
        }
        let mut doubt = None;
        if self.unknown == UnknownAction::Check && unknown > 0 {
            doubt = tokio::select! {
                biased;
                Some(signal) = signals.next() => return Err(signal.into()),
                doubt = check(context, client, rows.all(), journal) => doubt?,
            };
        }
        if rows.all().is_empty() {
            context.ui().note(&format!("{} has no rows", rows.name()));
        }
        let retry_for = self.retry_for.0;
        let sender = Sender::new(
            context,
            client,
            rows.all(),
            journal,
            self.concurrency,
            retry_for,
        );
        sender.run(signals).await.map(|()| doubt)
    }

    /// Returns the error of a run that ended early, with what was done and how to continue.
    fn stopped(
        &self,
        context: &Context,
        summary: &Summary<'_>,
        journal: &Journal,
        stop: CliError,
    ) -> CliError {
        let change = match self.unknown {
            UnknownAction::Check => Change::Check,
            // It must not repeat `--unknown retry`, which could send rows twice.
            UnknownAction::Skip | UnknownAction::Retry => Change::Continue,
        };
        let command = journal.path().map(|_| typed(context.args(), change));
        let progress = summary.progress(self.unknown == UnknownAction::Check);
        match stop {
            CliError::Failure(failure) => {
                let mut failure = *failure;
                failure.message = format!("{} after {progress}", failure.message);
                failure.hint = command.map(|command| format!("`{command}` continues"));
                if journal.unwritten() > 0 {
                    let outcomes = plural(journal.unwritten(), "outcome is", "outcomes are");
                    let text =
                        format!("{outcomes} not in the journal; `--unknown check` finds them");
                    failure.list.push(text);
                }
                failure.into()
            }
            CliError::Client(error) => failed(context, &error, &progress, command).into(),
            CliError::Silent(code) => CliError::Silent(code),
        }
    }
}

/// Describes the error of a request that ended the run. Without a journal, there is no command that
/// continues, and another run would create all pets again. So no hint may suggest one.
fn failed(context: &Context, error: &Error, progress: &str, command: Option<String>) -> Failure {
    let mut failure = context.connector().explain_client(error);
    let message = &failure.message;
    if let Some(blocked) = error.blocked() {
        failure.message = format!("{progress} done; {message}");
        failure.hint = command.map(|command| {
            let longer = wait_option(blocked.remaining);
            format!("`{command}` continues then; `--max-wait {longer}` waits for it")
        });
    } else if failure.hint.is_none() || failure.kind != Kind::Key {
        failure.message = format!("stopped after {progress}: {message}");
        failure.hint = command.map(|command| format!("`{command}` continues"));
    }
    failure
}

/// Identifies the service in a journal.
fn address(context: &Context, client: &Client) -> String {
    match context.settings().is_mock() {
        true => "mock".to_owned(),
        false => client.base_url().to_string(),
    }
}

/// Checks that rows that may have been created were sent to this service.
fn check_address(
    context: &Context,
    rows: &Rows,
    state: &journal::State,
    base_url: &str,
) -> Result<()> {
    let Some(run) = state.last_run() else {
        return Ok(());
    };
    if run.base_url == base_url || state.rows().iter().all(|row| *row == RowState::Unsent) {
        return Ok(());
    }
    let other = &run.base_url;
    let command = typed(context.args(), Change::Continue);
    let problem = format!("{} was imported to {other}", rows.name());
    Err(CliError::usage(problem).hint(format!("`{command} --base-url {other}` continues there")))
}

/// Combines the result of a run with the errors of output that could not be written. Then the
/// command is partly done.
fn combine(result: Result<()>, failed: Vec<CliError>) -> Result<()> {
    let mut failures = Vec::new();
    for error in failed {
        if let CliError::Failure(failure) = error {
            failures.push(*failure);
        }
    }
    let kind = match result {
        _ if failures.is_empty() => return result,
        Ok(()) => Kind::Partial,
        Err(CliError::Failure(failure)) => {
            let kind = failure.kind;
            failures.push(*failure);
            kind
        }
        Err(other) => return Err(other),
    };
    let mut first = failures.remove(0);
    for other in failures {
        first.list.push(other.message);
        first.list.extend(other.list);
        first.hint = other.hint.or(first.hint);
    }
    first.kind = kind;
    Err(first.into())
}
