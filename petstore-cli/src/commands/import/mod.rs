//! `petstore pets import`: creates the pets of a file, each once. All rows are checked before the
//! first is sent, and a journal keeps what became of each, so that the same command continues.

mod forecast;
mod input;
mod journal;
mod rejects;
mod send;
mod unknown;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use petstore_client::rate_limit::{Quota, RateLimits};
use petstore_client::{Client, RequestOptions};
use serde_json::{Value, json};

use self::forecast::{forecast, windows};
use self::input::Rows;
use self::journal::{Journal, JournalError, Record, RowState, State};
use self::send::{Counts, Ended, Sender};
use crate::context::{Context, Purpose, input_name};
use crate::env::{Signal, Signals};
use crate::error::{CliError, Invalid, Kind, os_text};
use crate::escape;
use crate::files;
use crate::output::{Cell, Head, Output, OutputFormat, Shape, Table};
use crate::screen::{BOLD, GREEN, RED, YELLOW};
use crate::time::{count, instant};
use crate::ui::Activity;

/// The largest input.
const MAX_INPUT: u64 = 1 << 30;
/// So many rejected rows are listed.
const MAX_LISTED: usize = 3;
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
const SUMMARY: Shape = Shape { noun: "the summary", fields: &[] };
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

    /// Finds out which unknown rows were created, and returns how many were.
    async fn check(
        &self,
        context: &Context,
        prepared: &Prepared,
        client: &Client,
        journal: &mut Journal,
        unknown: usize,
    ) -> Result<usize, CliError> {
        let ui = &context.ui;
        let highest = journal.state.rows.iter().filter_map(|row| match row {
            RowState::Created(id) => Some(*id),
            _ => None,
        });
        let price = highest.max().map(|id| match id / 100 {
            0 => ", about 1 request".to_owned(),
            pages => format!(", about {} requests", count(pages + 1)),
        });
        let rows = if unknown == 1 { "row" } else { "rows" };
        let price = price.unwrap_or_default();
        ui.note_now(&format!(
            "checking {} unknown {rows}: listing all pets{price}",
            count(unknown)
        ));
        self.await_stragglers(context, journal).await;
        let pets = unknown::list(client, &prepared.rows.rows, &journal.state, ui).await?;
        let found = unknown::matched(&prepared.rows.rows, &journal.state, pets);
        journal.write(found.entries).map_err(|error| unwritable(&error))?;
        let left = unknown - found.found;
        let were = if found.found == 1 { "row was" } else { "rows were" };
        ui.note_now(&format!(
            "{} of {} {were} created, by content and count; {} were not, sent now",
            count(found.found),
            count(unknown),
            count(left)
        ));
        let is_shared = client.rate_limits().shared.is_some_and(|shared| shared.members > 1);
        if (is_shared || journal.state.first_id.is_none()) && found.found > 0 {
            let n = count(found.found);
            ui.warning(&format!("{n} matches are by content, not proved"), None);
        }
        if let Some((pet, more)) = found.surplus {
            let (name, category) = (&pet.name, pet.category_id);
            let text = format!(
                "{} more pets than rows read `{name}`, category {category}; they were not claimed",
                count(more)
            );
            ui.warning(&text, None);
        }
        Ok(found.found)
    }

    /// Waits until no request of an earlier run can still arrive.
    async fn await_stragglers(&self, context: &Context, journal: &Journal) {
        let since = journal.opened_after;
        let limit = context.facts.timeout;
        let Some(rest) =
            since.and_then(|since| limit.checked_sub(since)).filter(|rest| !rest.is_zero())
        else {
            return;
        };
        let rows = journal.state.count(|row| *row == RowState::Unknown);
        let text = format!("{} rows may still arrive; listing begins", count(rows));
        let end = tokio::time::Instant::now() + rest;
        context.ui.set_activity(Some(Activity {
            short: text.clone(),
            text,
            end: Some((end, None)),
        }));
        tokio::time::sleep_until(end).await;
        context.ui.set_activity(None);
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

    fn summarize(
        &self,
        context: &mut Context,
        output: Output,
        prepared: &Prepared,
        state: &State,
        counts: Counts,
    ) -> Result<(), CliError> {
        let created = state.count(|row| matches!(row, RowState::Created(_)));
        let rejected = state.count(|row| matches!(row, RowState::Rejected(_)));
        let unknown = state.count(|row| *row == RowState::Unknown);
        let left = state.count(|row| *row == RowState::Todo);
        if !context.options.is_table() {
            return output.document(&self.document(
                prepared,
                &json!({
                    "created": counts.created,
                    "found": counts.found,
                    "rejected": counts.rejected,
                    "unknown": counts.unknown,
                }),
                &json!({ "created": created, "rejected": rejected, "unknown": unknown, "left": left }),
                &Value::Null,
            ));
        }
        let amount = |number: usize, style| {
            let cell = Cell::new(count(number));
            if number > 0 { cell.styled(style) } else { cell }
        };
        let mut rows =
            vec![vec![Cell::new("created"), amount(counts.created, GREEN), amount(created, BOLD)]];
        if counts.found > 0 {
            rows.push(vec![Cell::new("found"), amount(counts.found, GREEN), Cell::new("")]);
        }
        rows.extend([
            vec![Cell::new("rejected"), amount(counts.rejected, RED), amount(rejected, RED)],
            vec![Cell::new("unknown"), amount(counts.unknown, YELLOW), amount(unknown, YELLOW)],
            vec![Cell::new("left"), Cell::new(""), amount(left, YELLOW)],
        ]);
        let head = vec![
            Head::new("ROWS"),
            Head::new("THIS RUN").amount().dropped(1),
            Head::new("TOTAL").amount(),
        ];
        let text = Table { head, rows }.render(&context.options.screen);
        context.print(&text)
    }

    fn document(&self, prepared: &Prepared, run: &Value, total: &Value, forecast: &Value) -> Value {
        let rows = prepared.rows.rows.len();
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        json!({
            "file": prepared.name,
            "rows": rows,
            "complete": total["created"] == json!(rows),
            "run": run,
            "total": total,
            "journal": path(&prepared.journal_path),
            "rejects": path(&self.rejects),
            "unknownFile": path(&self.unknown_file),
            "forecast": forecast,
        })
    }

    /// Returns how the run ended, and what to do about it.
    fn result(
        &self,
        context: &Context,
        prepared: &Prepared,
        ended: Ended,
        state: &State,
    ) -> Result<(), CliError> {
        let resume =
            || prepared.journal_path.as_ref().map(|_| format!("`{}` continues", typed(context)));
        let hinted = |error: CliError, hint: Option<String>| match hint {
            Some(hint) => error.hint(hint),
            None => error,
        };
        let (done, all) =
            (state.rows.len() - state.count(|row| *row == RowState::Todo), state.rows.len());
        let progress = format!("{} of {} rows", count(done), count(all));
        match ended {
            Ended::Signalled(signal) => {
                let (kind, word) = match signal {
                    Signal::Interrupt => (Kind::Interrupted, "interrupted"),
                    Signal::Terminate => (Kind::Terminated, "terminated"),
                };
                Err(hinted(CliError::new(kind, format!("{word} after {progress}")), resume()))
            }
            Ended::Failed(error) => {
                let mut failure = context.facts.client(&error);
                if let Some(blocked) = error.blocked() {
                    let longer = crate::explain::wait_option(blocked.remaining);
                    failure.message = format!("{progress} done; {}", failure.message);
                    failure.hint = Some(format!(
                        "run the command again then, or now with `--max-wait {longer}`"
                    ));
                } else if failure.hint.is_none() || failure.kind != Kind::Key {
                    failure.message = format!("stopped after {progress}: {}", failure.message);
                    failure.hint = resume().or(failure.hint);
                }
                Err(CliError::Failure(Box::new(failure)))
            }
            Ended::Journal(error) => Err(unwritable(&error)),
            Ended::Complete => self.leftovers(prepared, state),
        }
    }

    /// Returns the error of rows that were rejected or are unknown.
    fn leftovers(&self, prepared: &Prepared, state: &State) -> Result<(), CliError> {
        let unknown = state.count(|row| *row == RowState::Unknown);
        let states = state.rows.iter().zip(&prepared.rows.rows);
        let rejected = states.filter_map(|(state, row)| match state {
            RowState::Rejected(reason) => Some(format!("line {}: {reason}", row.line)),
            _ => None,
        });
        let rejected: Vec<_> = rejected.collect();
        let rows = if rejected.len() == 1 { "row was" } else { "rows were" };
        let are = if unknown == 1 { "is" } else { "are" };
        let (refused, lost) = (count(rejected.len()), count(unknown));
        let message = match (rejected.len(), unknown) {
            (0, 0) => return Ok(()),
            (_, 0) => format!("{refused} {rows} rejected"),
            (0, _) => {
                format!("{lost} {} unknown", if unknown == 1 { "row is" } else { "rows are" })
            }
            _ => format!("{refused} {rows} rejected; {lost} {are} unknown"),
        };
        let mut list = Vec::new();
        match &self.rejects {
            Some(path) if !rejected.is_empty() => {
                list.push(format!("rejected rows are in {}", path.display()));
            }
            _ => {
                list.extend(rejected.iter().take(MAX_LISTED).cloned());
                if rejected.len() > MAX_LISTED {
                    list.push(format!("{} more", count(rejected.len() - MAX_LISTED)));
                }
            }
        }
        if let (Some(path), 1..) = (&self.unknown_file, unknown) {
            list.push(format!("unknown rows are in {}", path.display()));
        }
        let error = CliError::new(Kind::Partial, message).list(list);
        let name = escape::shell(&prepared.name);
        Err(match (unknown, &self.rejects) {
            (1.., _) if prepared.journal_path.is_some() => error.hint(format!(
                "`petstore pets import {name} --unknown check` finds out about the {lost}"
            )),
            (0, None) => error.hint("`--rejects FILE` writes the rejected rows"),
            _ => error,
        })
    }

    /// Shows what a run would do. It needs no key and no network: quotas come from earlier
    /// responses.
    async fn plan(
        &self,
        context: &mut Context,
        output: Output,
        prepared: &Prepared,
    ) -> Result<(), CliError> {
        let total = prepared.rows.rows.len();
        let state = match &prepared.journal_path {
            Some(path) if path.exists() => {
                let opened = Journal::open(path);
                opened.map_err(|error| self.unusable(context, path, &prepared.name, error))?.state
            }
            _ => State::default(),
        };
        check_digests(&prepared.name, &prepared.rows, &state)?;
        let todo = total - state.rows.len() + state.count(|row| *row == RowState::Todo);
        let limits = self.known_limits(context).await;
        let now = limits.service_time.unwrap_or_else(|| context.now());
        let forecast = forecast(todo, windows(&limits, now));
        if !context.options.is_table() {
            let forecast = forecast.as_ref().map(|forecast| {
                json!({
                    "completeAt": instant(now + forecast.length),
                    "limitedBy": forecast.limited_by,
                    "rowsToday": forecast.today.0,
                })
            });
            let none = json!({ "created": 0, "found": 0, "rejected": 0, "unknown": 0 });
            let created = state.count(|row| matches!(row, RowState::Created(_)));
            let rejected = state.count(|row| matches!(row, RowState::Rejected(_)));
            let unknown = state.count(|row| *row == RowState::Unknown);
            let total = json!({ "created": created, "rejected": rejected, "unknown": unknown, "left": todo });
            return output.document(&self.document(prepared, &none, &total, &json!(forecast)));
        }
        let clock = crate::time::Clock {
            zone: Some(context.env.time_zone()),
            ..context.facts.clock.clone()
        };
        let mut pairs = vec![
            ("file", format!("{}: {} rows, all valid", prepared.name, count(total))),
            ("to send", format!("{} rows", count(todo))),
            ("quotas", quotas(&limits)),
        ];
        if let Some(forecast) = &forecast {
            pairs.push(("forecast", forecast.text(&clock, todo)));
            if forecast.ends_today(context.facts.max_wait) {
                let end = clock.minute(clock.now() + forecast.today.1);
                let text = format!("at this --max-wait the run ends at {end}, with the day quota");
                let hint = "`--max-wait 24h` waits for the next day; or run the command again then";
                context.ui.note_with_hint(&text, Some(hint));
            }
        } else {
            context.ui.note_with_hint(
                "no forecast",
                Some("`petstore limits --refresh` asks for the quotas"),
            );
        }
        let text = context.options.screen.pairs(&pairs);
        context.print(&text)
    }

    /// Returns what earlier responses said, where there is a key.
    async fn known_limits(&self, context: &mut Context) -> RateLimits {
        let once = RequestOptions::new();
        match context.client_with(PETS, &once).await {
            Ok(client) => client.synchronize_rate_limits().await,
            Err(_) => RateLimits::default(),
        }
    }
}

/// Says that an import is complete, or what keeps it from being so.
fn nothing_to_send(context: &Context, prepared: &Prepared, state: &State) -> String {
    let last = state.count(|row| *row == RowState::Unknown);
    let name = &prepared.name;
    let modified = prepared
        .journal_path
        .as_ref()
        .and_then(|path| std::fs::metadata(path).ok()?.modified().ok());
    match modified {
        Some(at) if last == 0 => {
            format!("nothing to send; {name} was imported on {}", context.facts.clock.instant(at))
        }
        _ => "nothing to send".to_owned(),
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

/// Returns what is left of the quotas.
fn quotas(limits: &RateLimits) -> String {
    let find = |quota| limits.windows.iter().find(|window| window.quota == quota);
    let left = |quota, period: &str| match find(quota) {
        Some(window) => {
            format!("{} of {} left {period}", count(window.remaining), count(window.limit))
        }
        None => String::new(),
    };
    match (left(Quota::Minute, "this minute"), left(Quota::Day, "today")) {
        (minute, day) if minute.is_empty() && day.is_empty() => "not known".to_owned(),
        (minute, day) if day.is_empty() => minute + "; day quota not reported yet",
        (minute, day) if minute.is_empty() => day,
        (minute, day) => format!("{minute}, {day}"),
    }
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

/// Returns the command as it was typed.
fn typed(context: &Context) -> String {
    let args = context.env.args.iter().skip(1).map(|arg| escape::shell(&arg.to_string_lossy()));
    std::iter::once("petstore".to_owned()).chain(args).collect::<Vec<_>>().join(" ")
}
