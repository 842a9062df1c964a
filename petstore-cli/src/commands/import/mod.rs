//! `petstore pets import`: creates the pets of a file, each once. All rows are checked before the
//! first is sent, and a journal keeps what became of each, so that the same command continues.

mod forecast;
mod input;
mod journal;
mod rejects;
mod report;
mod send;
mod unknown;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use petstore_client::Client;

use self::input::Rows;
use self::journal::{Journal, JournalError, Record, RowState, State};
use self::report::nothing_to_send;
use self::send::{Counts, Ended, Sender};
use crate::context::{Context, Purpose, input_name};
use crate::env::Signals;
use crate::error::{CliError, Invalid, Kind, os_text};
use crate::escape;
use crate::files;
use crate::output::{ANY, Output, OutputFormat, Shape};
use crate::time::count;

/// The largest input.
const MAX_INPUT: u64 = 1 << 30;
const PETS: Purpose = Purpose { noun: "pet", changes: true };

/// Create the pets of a file. No row is sent twice unless you ask for it.
#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    #[arg(default_value = "-", hide_default_value = true, hide = true)]
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,

    /// check the rows and forecast the time; send nothing
    #[arg(long)]
    dry_run: bool,

    /// write rows that the service refused, with reasons
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    rejects: Option<PathBuf>,

    /// rows whose response was lost: skip, check (list pets to find out) or retry (may duplicate)
    #[arg(long, value_name = "ACTION", default_value = "skip", hide_possible_values = true)]
    unknown: UnknownAction,

    /// write rows whose response was lost
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    unknown_file: Option<PathBuf>,

    /// rows in flight, 1 to 256 [default: automatic]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = in_flight)]
    concurrency: Option<usize>,

    /// [default: FILE.petstore-journal; none for standard input]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    journal: Option<PathBuf>,
}

/// What to do with rows whose response was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum UnknownAction {
    /// Leave them
    Skip,
    /// List the pets to find out
    Check,
    /// Send them again
    Retry,
}

fn in_flight(text: &str) -> Result<usize, Invalid> {
    let number = text.parse().ok().filter(|number| (1..=256).contains(number));
    number.ok_or_else(|| Invalid::new("is not a number from 1 to 256"))
}

/// A summary for programs.
const SUMMARY: Shape = Shape { noun: "the summary", ..ANY };
const COLUMNS: [&str; 10] = [
    "rows",
    "total.created",
    "total.rejected",
    "total.unknown",
    "total.left",
    "run.created",
    "run.found",
    "run.rejected",
    "run.unknown",
    "complete",
];

/// An import whose input was read.
struct Prepared {
    name: String,
    input: Vec<u8>,
    rows: Rows,
    journal_path: Option<PathBuf>,
}

impl Import {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let pending: Signals = Box::pin(futures_util::stream::pending());
        let mut signals = std::mem::replace(&mut context.env.signals, pending);
        let output = self.output(context)?;
        let prepared = self.prepare(context)?;
        if self.dry_run {
            return self.plan(context, output, &prepared).await;
        }
        let client = context.client(PETS).await?;
        let mut journal = self.open(context, &prepared, &client)?;
        let mut counts = Counts::default();
        let outcome =
            self.work(context, &prepared, &client, &mut journal, &mut counts, &mut signals);
        let ended = outcome.await?;
        context.ui.set_progress(None);
        context.ui.set_activity(None);
        let state = &journal.state;
        self.write_rows(context, &prepared, state)?;
        self.summarize(context, output, &prepared, state, counts)?;
        self.result(context, &prepared, ended, state)
    }

    fn output(&self, context: &Context) -> Result<Output, CliError> {
        let mut options = context.options.clone();
        let is_flat = matches!(options.format(), OutputFormat::Csv | OutputFormat::Tsv);
        if is_flat && options.fields.is_none() && options.jq.is_none() {
            options.fields = Some(COLUMNS.map(str::to_owned).to_vec());
        }
        context.output_with(&options, SUMMARY)
    }

    /// Reads and checks the input.
    fn prepare(&self, context: &mut Context) -> Result<Prepared, CliError> {
        let input = context.read_up_to(&self.file, "pets", MAX_INPUT)?;
        let name = input_name(&self.file);
        let rows = input::read(&input, &name)?;
        for column in &rows.ignored {
            context.ui.warning(&format!("ignoring column `{column}`"), None);
        }
        // What a shell hands over (`<(…)`) has no place beside it.
        let is_file = self.file != Path::new("-") && self.file.is_file();
        let journal_path = match &self.journal {
            Some(path) => Some(path.clone()),
            None if context.args.wants_mock() || !is_file => None,
            None => {
                let mut path = self.file.clone().into_os_string();
                path.push(".petstore-journal");
                Some(path.into())
            }
        };
        Ok(Prepared { name, input, rows, journal_path })
    }

    /// Opens the journal, and checks that it is of this file and this service.
    fn open(
        &self,
        context: &Context,
        prepared: &Prepared,
        client: &Client,
    ) -> Result<Journal, CliError> {
        let Prepared { name, rows, .. } = prepared;
        let mut journal = match &prepared.journal_path {
            None => Journal::nowhere(),
            Some(path) => {
                Journal::open(path).map_err(|error| self.unusable(context, path, name, error))?
            }
        };
        let base_url = match context.args.wants_mock() {
            true => "mock".to_owned(),
            false => client.base_url().to_string(),
        };
        let state = &mut journal.state;
        if !state.base_url.is_empty() && state.base_url != base_url {
            let problem = format!("{name} was imported to {}", state.base_url);
            return Err(CliError::new(Kind::Usage, problem)
                .hint("`--journal FILE` keeps another journal for another service"));
        }
        let corrected = check_digests(name, rows, state)?;
        state.rows.resize(rows.rows.len(), RowState::Todo);
        for path in [&self.rejects, &self.unknown_file].into_iter().flatten() {
            let is_regular =
                std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > 0);
            if is_regular && !state.files.contains(path) {
                let problem = format!("{} exists and is not from this import", path.display());
                let option = if Some(path) == self.rejects.as_ref() {
                    "--rejects"
                } else {
                    "--unknown-file"
                };
                return Err(
                    CliError::usage(problem).hint(format!("name another file with `{option}`"))
                );
            }
        }
        self.report_journal(context, prepared, state)?;
        let started = context.now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let begun = journal.begin(&base_url, started.as_secs());
        begun
            .and_then(|()| journal.write(vec![Record::Unsent(corrected)]))
            .map_err(|error| unwritable(&error))?;
        Ok(journal)
    }

    /// Says what an earlier run left.
    fn report_journal(
        &self,
        context: &Context,
        prepared: &Prepared,
        state: &State,
    ) -> Result<(), CliError> {
        let unknown = state.count(|row| *row == RowState::Unknown);
        let rows =
            |number| format!("{} {}", count(number), if number == 1 { "row" } else { "rows" });
        if let (Some(line), UnknownAction::Skip) = (state.damaged, self.unknown) {
            let problem =
                format!("journal line {line} is damaged; {} may have been created", rows(unknown));
            let command =
                format!("petstore pets import {} --unknown check", escape::shell(&prepared.name));
            return Err(
                CliError::new(Kind::Partial, problem).hint(format!("`{command}` finds out"))
            );
        }
        if state.is_cut {
            let is = if unknown == 1 { "is" } else { "are" };
            let text = format!("the journal ended in half a line; {} {is} unknown", rows(unknown));
            context.ui.note(&text);
        }
        let known = state.digests.iter().flatten().count();
        let appended = prepared.rows.rows.len().saturating_sub(state.digests.len());
        if known > 0
            && appended > 0
            && state.rows_where(|row| *row == RowState::Todo).len() == appended
        {
            let were = if appended == 1 { "was" } else { "were" };
            context.ui.note(&format!("{} {were} appended since the last run", rows(appended)));
        }
        if prepared.journal_path.is_none() && !context.args.wants_mock() {
            let name = if self.file == Path::new("-") { "standard input" } else { "a pipe" };
            context.ui.note(&format!("no journal for {name}: an interrupted run cannot continue"));
        }
        Ok(())
    }

    fn unusable(
        &self,
        context: &Context,
        path: &Path,
        name: &str,
        error: JournalError,
    ) -> CliError {
        let shown = context.env.shown(path);
        match error {
            JournalError::Busy(run) => {
                let who = match &run {
                    Some(run) => {
                        let started = SystemTime::UNIX_EPOCH + Duration::from_secs(run.started);
                        let since = context.facts.clock.instant(started);
                        format!("process {} has been importing {name} since {since}", run.pid)
                    }
                    None => format!("another process is importing {name}"),
                };
                CliError::usage(who)
                    .hint("wait until it ends; the same command then sends what is left")
            }
            JournalError::NotAJournal => {
                CliError::usage(format!("{shown} exists and is not a journal of an import"))
                    .hint("name another file with `--journal`")
            }
            JournalError::Io(error) => unwritable(&error),
        }
    }

    /// Does what was asked about unknown rows, and sends what is left.
    async fn work(
        &self,
        context: &mut Context,
        prepared: &Prepared,
        client: &Client,
        journal: &mut Journal,
        counts: &mut Counts,
        signals: &mut Signals,
    ) -> Result<Ended, CliError> {
        use futures_util::StreamExt as _;

        let rows = &prepared.rows.rows;
        let unknown = journal.state.rows_where(|row| *row == RowState::Unknown);
        match self.unknown {
            UnknownAction::Retry if !unknown.is_empty() => {
                let n = count(unknown.len());
                let text =
                    format!("sending {n} unknown rows again; up to {n} pets may exist twice");
                context.ui.warning(&text, None);
                journal.write(vec![Record::Unsent(unknown)]).map_err(|error| unwritable(&error))?;
            }
            UnknownAction::Check if !unknown.is_empty() => {
                let checked = tokio::select! {
                    biased;
                    Some(signal) = signals.next() => return Ok(Ended::Signalled(signal)),
                    checked = self.check(context, prepared, client, journal, unknown.len()) => checked?,
                };
                counts.found = checked;
            }
            _ => {}
        }
        let files = [&self.rejects, &self.unknown_file].into_iter().flatten();
        let files = files.map(|path| Record::Writes(path.clone())).collect();
        journal.write(files).map_err(|error| unwritable(&error))?;
        let todo = journal.state.rows_where(|row| *row == RowState::Todo);
        if rows.is_empty() {
            context.ui.note(&format!("{} has no rows", prepared.name));
        } else if todo.is_empty() && counts.found == 0 {
            context.ui.note(&nothing_to_send(context, prepared, &journal.state));
        }
        let done_before = rows.len() - todo.len();
        let (ui, facts) = (context.ui.clone(), context.facts.clone());
        let mut sender =
            Sender { client, journal, rows, ui: &ui, facts: &facts, counts: *counts, done_before };
        let ended = sender.run(todo, self.concurrency, signals).await;
        *counts = sender.counts;
        if !matches!(ended, Ended::Journal(_)) {
            // Rows in flight that were given up stay unknown.
            journal.end().map_err(|error| unwritable(&error))?;
        }
        Ok(ended)
    }

    /// Writes the files of rejected and unknown rows.
    fn write_rows(
        &self,
        context: &Context,
        prepared: &Prepared,
        state: &State,
    ) -> Result<(), CliError> {
        let reason = |is: fn(&RowState) -> Option<&str>| {
            let rows = state.rows.iter().enumerate();
            rows.filter_map(move |(row, state)| Some((row, is(state)?.to_owned())))
                .collect::<Vec<_>>()
        };
        let rejected = reason(|state| match state {
            RowState::Rejected(reason) => Some(reason),
            _ => None,
        });
        let unknown = reason(|state| (*state == RowState::Unknown).then_some("response lost"));
        for (path, reasons) in [(&self.rejects, rejected), (&self.unknown_file, unknown)] {
            let Some(path) = path else { continue };
            let rows = rejects::select(&prepared.rows, &reasons);
            let text = rejects::text(&prepared.input, &prepared.rows.layout, rows);
            // What is no file, such as a pipe, is written to as it is.
            let written = match std::fs::metadata(path) {
                Ok(there) if !there.is_file() => std::fs::write(path, text),
                _ => files::write(path, text),
            };
            written.map_err(|error| {
                let path = context.env.shown(path);
                CliError::new(Kind::Internal, format!("cannot write {path}: {}", os_text(&error)))
            })?;
        }
        Ok(())
    }
}

/// Checks that rows that were sent are still what they were, and returns the rejected rows that
/// were corrected.
fn check_digests(name: &str, rows: &Rows, state: &State) -> Result<Vec<usize>, CliError> {
    let mut corrected = Vec::new();
    let mut matches = false;
    let mut changed = None;
    for (row, digest) in state.digests.iter().enumerate() {
        let (Some(digest), Some(row_state)) = (digest, state.rows.get(row)) else { continue };
        let now = rows.rows.get(row);
        if now.is_some_and(|row| row.digest() == *digest) {
            matches = true;
        } else if matches!(row_state, RowState::Created(_) | RowState::Unknown) {
            changed = changed.or(Some((row, row_state)));
        } else if matches!(row_state, RowState::Rejected(_)) && now.is_some() {
            corrected.push(row);
        }
    }
    let Some((row, row_state)) = changed else { return Ok(corrected) };
    if !matches {
        return Err(CliError::usage(format!(
            "{name} is not the file of its journal: none of its rows match"
        ))
        .hint("import the new file under a name of its own"));
    }
    let became = match row_state {
        RowState::Created(id) => format!("created as pet {id}"),
        _ => "sent".to_owned(),
    };
    let problem = match rows.rows.get(row) {
        Some(row) => format!("{name} line {} has changed since it was {became}", row.line),
        None => format!("row {} of {name} is missing since it was {became}", row + 1),
    };
    Err(CliError::usage(problem).hint("undo the change; new pets go at the end of the file"))
}

fn unwritable(error: &std::io::Error) -> CliError {
    let problem = format!("cannot write the journal: {}", os_text(error));
    let hint = match error.kind() {
        std::io::ErrorKind::StorageFull => {
            "free some space and run the command again; it continues"
        }
        _ => "`--journal FILE` names another file for it",
    };
    CliError::new(Kind::Internal, problem).hint(hint)
}
