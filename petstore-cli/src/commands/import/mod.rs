//! `petstore pets import`: creates the pets of a file, each once. Checks all rows before it sends
//! the first. A journal keeps their outcomes, so that the same command continues.

mod check;
mod forecast;
mod input;
mod journal;
#[cfg(test)]
mod properties;
mod report;
mod rows;
mod send;

use std::path::{Path, PathBuf};

use futures_util::StreamExt as _;
use petstore_client::Client;

pub(super) use self::input::Input;
use self::journal::{Journal, Record, RowState, State, Totals};
use self::rows::Row;
use crate::context::Context;
use crate::env::Signals;
use crate::error::{CliError, Invalid, Kind};
use crate::escape;
use crate::files;
use crate::input::input_name;
use crate::output::{ANY, Output};
use crate::session::Purpose;
use crate::time::count;

/// The maximum size of an input.
const MAX_INPUT: u64 = 1 << 30;

/// Create the pets of a file. No row is sent twice, except with --unknown retry.
#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    #[arg(default_value = "-", hide_default_value = true, hide = true)]
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,

    /// check the rows and estimate the time; send nothing
    #[arg(long)]
    dry_run: bool,

    /// write rejected rows, with reasons
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    rejects: Option<PathBuf>,

    /// rows without a response: skip, check (list pets to find them) or retry (may duplicate)
    #[arg(
        long,
        value_name = "ACTION",
        default_value = "skip",
        hide_possible_values = true
    )]
    unknown: UnknownAction,

    /// write rows without a response
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
    let number = text
        .parse()
        .ok()
        .filter(|number| (1..=256).contains(number));
    number.ok_or_else(|| Invalid::new("is not a number from 1 to 256"))
}

/// The columns of a summary in CSV and TSV.
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

/// A run that has a client and a journal.
struct Job<'a> {
    import: &'a Import,
    context: &'a mut Context,
    input: Input,
    client: Client,
    journal: Journal,
    /// The outcomes of this run.
    run: Totals,
    /// The rows that were found in the list of pets.
    found: usize,
}

impl Import {
    pub(crate) async fn run(mut self, context: &mut Context) -> Result<(), CliError> {
        let mut signals = context.take_signals();
        let output = self.output(context)?;
        let bytes = tokio::select! {
            biased;
            Some(signal) = signals.next() => return Err(signal.into()),
            bytes = context.reader().read(&self.file, "pets", MAX_INPUT) => bytes?,
        };
        let input = Input::read(input_name(&self.file), bytes)?;
        for column in &input.ignored {
            context.ui().warning(
                &format!("ignoring `{column}`, which is not a field of a pet"),
                None,
            );
        }
        // Standard input, a shell's `<(...)` and a mock server have no journal by default.
        if self.journal.is_none() && self.file.is_file() && !context.settings().is_mock() {
            // A link and its file are one input.
            let path = if self.file.is_symlink() {
                self.file.canonicalize()
            } else {
                Ok(self.file.clone())
            };
            let mut path = path.map_err(CliError::internal)?.into_os_string();
            path.push(".petstore-journal");
            self.journal = Some(path.into());
        }
        self.check_files()?;
        if self.dry_run {
            return self.plan(context, output, &input).await;
        }
        let client = context.connector().connect(Purpose::CreatePet).await?;
        let journal = self.open_journal(context, &input, &client)?;
        let run = Totals::default();
        let mut job = Job {
            import: &self,
            context,
            input,
            client,
            journal,
            run,
            found: 0,
        };
        let sent = job.work(&mut signals).await;
        job.context.ui().set_progress(None);
        job.context.ui().set_activity(None);
        if job.journal.is_removed() {
            let text =
                "the journal was removed during the import; another run sends all rows again";
            job.context.ui().warning(text, None);
        }
        let written = job.write_rows();
        job.summarize(output)?;
        written?;
        job.result(sent)
    }

    fn output(&self, context: &Context) -> Result<Output, CliError> {
        context.printer().start_flat(&COLUMNS, ANY)
    }

    /// Checks that the files that the import writes differ: each would replace another.
    fn check_files(&self) -> Result<(), CliError> {
        let files = [
            ("the journal", &self.journal),
            ("`--rejects`", &self.rejects),
            ("`--unknown-file`", &self.unknown_file),
        ];
        let mut seen: Vec<(&str, PathBuf)> = Vec::new();
        for (name, path) in files {
            let Some(path) = path
                .as_ref()
                .filter(|path| path.is_file() || !path.exists())
            else {
                continue;
            };
            let path = std::fs::canonicalize(path).or_else(|_| std::path::absolute(path));
            let path = path.map_err(CliError::internal)?;
            if let Some((other, _)) = seen.iter().find(|(_, earlier)| *earlier == path) {
                return Err(
                    CliError::usage(format!("{other} and {name} are the same file"))
                        .hint("name a different file for each"),
                );
            }
            seen.push((name, path));
        }
        Ok(())
    }

    /// Opens the journal, and starts a run.
    fn open_journal(
        &self,
        context: &Context,
        input: &Input,
        client: &Client,
    ) -> Result<Journal, CliError> {
        let mut journal = match &self.journal {
            None => Journal::nowhere(),
            Some(path) => Journal::open(path, &input.name, context)?,
        };
        let base_url = address(context, client);
        let corrected = self.resume(context, input, &mut journal.state, Some(&base_url))?;
        if self.journal.is_none() && !context.settings().is_mock() {
            let name = if self.file == Path::new("-") {
                "standard input"
            } else {
                "a pipe"
            };
            context.ui().note(&format!(
                "no journal for {name}: an interrupted run cannot continue"
            ));
        }
        let files = [&self.rejects, &self.unknown_file]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        journal.begin(base_url, context.connector().clock().now(), files)?;
        journal.write(vec![Record::Rows(RowState::Announced, corrected)])?;
        Ok(journal)
    }

    /// Checks that the content of a journal belongs to this input and service, and reports what an
    /// earlier run left. Returns the rejected rows that were corrected.
    fn resume(
        &self,
        context: &Context,
        input: &Input,
        state: &mut State,
        base_url: Option<&str>,
    ) -> Result<Vec<usize>, CliError> {
        let before = state.last_run.as_ref().map(|run| &*run.base_url);
        if let Some((before, _)) = before.zip(base_url).filter(|(before, now)| before != now) {
            let problem = format!("{} was imported to {before}", input.name);
            return Err(CliError::usage(problem)
                .hint("`--journal FILE` keeps another journal for another service"));
        }
        let corrected = changed_rows(input, state)?;
        for (option, path) in [
            ("--rejects", &self.rejects),
            ("--unknown-file", &self.unknown_file),
        ] {
            let Some(path) = path else { continue };
            let is_used =
                std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > 0);
            if is_used && !state.files.contains(path) {
                let problem = format!("{} exists and is not from this import", path.display());
                let hint = format!("name another file with `{option}`");
                return Err(CliError::usage(problem).hint(hint));
            }
        }
        state.resize(input.rows.len());
        self.report_journal(context, input, state)?;
        Ok(corrected)
    }

    /// Reports what an earlier run left.
    fn report_journal(
        &self,
        context: &Context,
        input: &Input,
        state: &State,
    ) -> Result<(), CliError> {
        let unknown = state.totals().unknown;
        let defect = match state.damaged.first() {
            Some(line) => Some(format!("journal line {line} is damaged")),
            None if state.is_truncated => Some(format!(
                "the journal was cut off after line {}",
                state.lines
            )),
            None => None,
        };
        if let (Some(defect), 1.., UnknownAction::Skip) = (defect, unknown, self.unknown) {
            let rows = plural(unknown, "row", "rows");
            let problem = format!("{defect}; {rows} may have been created");
            let hint = format!("`{}` finds out", typed(context, UnknownAction::Check));
            return Err(CliError::new(Kind::Partial, problem).hint(hint));
        }
        if state.is_cut && !state.is_truncated {
            let rows = plural(unknown, "row is", "rows are");
            context.ui().note(&format!(
                "the journal ended in an incomplete line; {rows} unknown"
            ));
        }
        let before = state.last_run.as_ref().map(|run| run.rows);
        if let Some(appended @ 1..) = before.and_then(|rows| input.rows.len().checked_sub(rows)) {
            let rows = plural(appended, "row was", "rows were");
            context
                .ui()
                .note(&format!("{rows} appended since the last run"));
        }
        Ok(())
    }
}

impl Job<'_> {
    /// Handles unknown rows as the user chose, and sends the remaining rows.
    async fn work(&mut self, signals: &mut Signals) -> Result<(), CliError> {
        let ui = self.context.ui().clone();
        let unknown = self.journal.state.unknown();
        match self.import.unknown {
            UnknownAction::Retry if !unknown.is_empty() => {
                let rows = plural(unknown.len(), "unknown row", "unknown rows");
                let pets = plural(unknown.len(), "pet", "pets");
                let text = format!("sending {rows} again; up to {pets} may exist twice");
                ui.warning(&text, None);
                self.journal
                    .write(vec![Record::Rows(RowState::Announced, unknown)])?;
            }
            UnknownAction::Check if !unknown.is_empty() => tokio::select! {
                biased;
                Some(signal) = signals.next() => return Err(signal.into()),
                checked = self.check(unknown.len()) => checked?,
            },
            _ => {}
        }
        let name = &self.input.name;
        let todo = self.journal.state.rows_where(RowState::is_left);
        if self.input.rows.is_empty() {
            ui.note(&format!("{name} has no rows"));
        } else if todo.is_empty() && self.found == 0 {
            let state = &self.journal.state;
            let imported = state.imported.filter(|_| state.totals().unknown == 0);
            let at = imported.map(|at| self.context.connector().clock().instant(at));
            let at = at.map(|at| format!("; {name} was imported before ({at})"));
            ui.note(&format!("nothing to send{}", at.unwrap_or_default()));
        }
        self.send(todo.into(), signals).await
    }

    /// Writes the files of rejected and of unknown rows.
    fn write_rows(&self) -> Result<(), CliError> {
        let rejected: fn(&RowState) -> Option<&str> = |state| match state {
            RowState::Rejected(reason) => Some(reason),
            _ => None,
        };
        let unknown = |state: &RowState| (*state == RowState::Unknown).then_some("response lost");
        let files = [
            (&self.import.rejects, rejected),
            (&self.import.unknown_file, unknown),
        ];
        for (path, reason) in files {
            let Some(path) = path else { continue };
            let rows = self.journal.state.rows.iter().enumerate();
            let reasons = rows
                .filter_map(|(row, state)| Some((row, reason(state)?)))
                .collect();
            let rows = self.input.with_reasons(&reasons)?;
            files::write(path, rows, self.context.system())?;
        }
        Ok(())
    }
}

/// Returns the rejected rows that were corrected. Fails if sent rows have changed.
fn changed_rows(input: &Input, state: &State) -> Result<Vec<usize>, CliError> {
    let Input { name, rows, .. } = input;
    let (mut is_same_file, mut corrected, mut changed) = (false, Vec::new(), None);
    for (row, (row_state, digest)) in state.rows.iter().zip(&state.digests).enumerate() {
        let Some(digest) = digest else { continue };
        let now = rows.get(row).map(Row::digest);
        match row_state {
            _ if now == Some(*digest) => is_same_file = true,
            RowState::Created(_) | RowState::Unknown => {
                changed = changed.or(Some((row, row_state)));
            }
            RowState::Rejected(_) if now.is_some() => corrected.push(row),
            _ => {}
        }
    }
    let Some((row, row_state)) = changed else {
        return Ok(corrected);
    };
    if !is_same_file {
        let problem = format!("{name} is not the file of its journal: none of its rows match");
        return Err(CliError::usage(problem).hint("import the new file under another name"));
    }
    let became = match row_state {
        RowState::Created(id) => format!("created as pet {id}"),
        _ => "sent".to_owned(),
    };
    let problem = match rows.get(row) {
        Some(row) => format!("{name} {} has changed since it was {became}", row.place),
        None => format!("row {} of {name} is missing since it was {became}", row + 1),
    };
    Err(CliError::usage(problem).hint("undo the change; new pets go at the end of the file"))
}

/// Identifies the service in a journal.
fn address(context: &Context, client: &Client) -> String {
    match context.settings().is_mock() {
        true => "mock".to_owned(),
        false => client.base_url().to_string(),
    }
}

/// Returns the command as typed, with its journal and profile, and with another `--unknown`.
fn typed(context: &Context, unknown: UnknownAction) -> String {
    let args: Vec<_> = context
        .args()
        .iter()
        .skip(1)
        .map(|arg| arg.to_string_lossy())
        .collect();
    let end = args
        .iter()
        .position(|arg| arg == "--")
        .unwrap_or(args.len());
    let (options, files) = args.split_at(end);
    let mut words = vec!["petstore".to_owned()];
    let mut is_value = false;
    for option in options {
        let is_name = !is_value && option == "--unknown";
        if !is_value && !is_name && !option.starts_with("--unknown=") {
            words.push(escape::shell(option));
        }
        is_value = is_name;
    }
    if unknown == UnknownAction::Check {
        words.push("--unknown check".to_owned());
    }
    words.extend(files.iter().map(|file| escape::shell(file)));
    words.join(" ")
}

/// Returns a number with the singular or plural: `1 row`, `1,204 rows`.
fn plural(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}
