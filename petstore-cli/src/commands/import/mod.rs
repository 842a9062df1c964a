//! `petstore pets import`: creates the pets of a file, each once. All rows are checked before the
//! first is sent. A journal keeps the outcomes, so that the same command can continue.

mod check;
mod journal;
mod outage;
#[cfg(test)]
mod properties;
mod records;
mod rows;
mod send;
#[cfg(test)]
mod simulation;
mod summary;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use petstore_client::Client;
use petstore_client::limits::RateLimits;
use petstore_client::url::Url;

use self::check::check;
use self::journal::Journal;
use self::records::{Run, State};
use self::rows::Rows;
use self::send::Sender;
use self::summary::{Summary, again, check_output};
use crate::context::Context;
use crate::env::{Signals, until_signal};
use crate::error::{CliError, Kind, Result};
use crate::files;
use crate::input::{input_name, is_stdin};
use crate::session::Purpose;
use crate::settings::Seconds;
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
    "Fields: file, rows, complete, run, total, found, rejected, unknown, journal, rejects, \
     createdFile"
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

    /// Separator of CSV [default: found in the header]
    #[arg(long, value_name = "C", value_parser = delimiter)]
    delimiter: Option<u8>,

    /// Check the rows and say how long the quotas need; send nothing
    #[arg(long)]
    dry_run: bool,

    /// Send the valid rows although others are invalid
    #[arg(long)]
    skip_invalid: bool,

    /// Replace FILE with rejected and invalid rows
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    rejects: Option<PathBuf>,

    /// Replace FILE with created rows and their ids
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    created: Option<PathBuf>,

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
        value_parser = clap::value_parser!(u8).range(1..=64)
    )]
    concurrency: u8,

    /// How long the service may fail [default: 2m]
    #[arg(
        long,
        value_name = "TIME",
        default_value = "2m",
        hide_default_value = true
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

/// Reads the separator of CSV.
fn delimiter(text: &str) -> Result<u8, &'static str> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !b"\"\r\n".contains(byte) => Ok(*byte),
        _ => Err("give one ASCII character, or `tab`"),
    }
}

impl Import {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let mut signals = context.take_signals();
        check_output(context)?;
        self.check_options(context.settings().is_mock())?;
        let inputs = self.read(context, &mut signals).await?;
        if self.dry_run {
            return until_signal(&mut signals, self.plan(context, &inputs)).await;
        }
        let connecting = context.connect(Purpose::CreatePet);
        let client = until_signal(&mut signals, connecting).await?;
        let mut jobs = Vec::new();
        for (rows, journal) in inputs {
            jobs.push(self.open(context, &client, rows, journal)?);
        }
        let ids = |journal: &Journal| journal.state().pets().map(|(_, id)| id).collect::<Vec<_>>();
        let mut taken: HashSet<i64> = jobs.iter().flat_map(|(_, journal)| ids(journal)).collect();
        let mut ended = Ok(());
        for (rows, mut journal) in jobs {
            ended = reported(context, ended);
            let imported = self
                .import(context, &client, &rows, &mut journal, &taken, &mut signals)
                .await;
            taken.extend(ids(&journal));
            match imported {
                Ok(()) => {}
                // Rows that were rejected or are unknown do not keep the next input back.
                Err(error) if is_partial(&error) => ended = Err(error),
                Err(error) => return Err(error),
            }
        }
        ended
    }

    /// Refuses options that name one file for several inputs, and a journal of what no later run
    /// finds.
    fn check_options(&self, is_mock: bool) -> Result<()> {
        if is_mock && self.journal.is_some() {
            let problem = "`--journal` does not apply to `--mock`, whose pets end with the command";
            return Err(CliError::usage(problem));
        }
        let options = [
            ("--journal", &self.journal),
            ("--rejects", &self.rejects),
            ("--created", &self.created),
        ];
        match options.iter().find(|(_, file)| file.is_some()) {
            Some((option, _)) if self.inputs.len() > 1 => {
                let problem = format!("`{option}` names one file, but there are several inputs");
                Err(CliError::usage(problem).hint("import them one after the other"))
            }
            _ => Ok(()),
        }
    }

    /// Reads and checks all inputs. Returns each with the place of its journal.
    async fn read(
        &self,
        context: &Context,
        signals: &mut Signals,
    ) -> Result<Vec<(Rows, Option<PathBuf>)>> {
        let mut inputs = Vec::new();
        let mut seen = HashSet::new();
        let mut checked = Ok(());
        for path in &self.inputs {
            checked = reported(context, checked);
            let reading = context.reader().read(path, "pets", MAX_INPUT);
            let bytes = until_signal(signals, reading).await?;
            let rows = Rows::read(&input_name(path), bytes, self.delimiter)?;
            if !self.skip_invalid
                && let Err(invalid) = rows.check()
            {
                checked = Err(invalid);
                continue;
            }
            for name in rows.ignored() {
                let text = format!("ignoring `{name}`, which is not a field of a pet");
                context.ui().warning(&text, None);
            }
            let is_mock = context.settings().is_mock();
            let journal = match &self.journal {
                None if !is_stdin(path) && path.is_file() && !is_mock => {
                    Some(files::beside(path, "journal"))
                }
                named => named.clone(),
            };
            for file in std::iter::once(path).chain(&journal) {
                if !seen.insert(place(file)) {
                    return Err(used_twice(file));
                }
            }
            if journal.is_none() && !is_mock && !self.dry_run {
                let text = "no journal: an interrupted run cannot continue";
                context.ui().note(&format!("{} has {text}", rows.name()));
            }
            inputs.push((rows, journal));
        }
        for file in self.rejects.iter().chain(&self.created) {
            if !files::is_device(file) && !seen.insert(place(file)) {
                return Err(used_twice(file));
            }
            files::check(file, context.system())?;
        }
        checked.map(|()| inputs)
    }

    /// Shows what an import of each input would do.
    async fn plan(&self, context: &Context, inputs: &[(Rows, Option<PathBuf>)]) -> Result<()> {
        let client = context.connect(Purpose::CreatePet).await.ok();
        let limits = match &client {
            Some(client) => client.limits().exchange().await,
            None => RateLimits::default(),
        };
        let base_url = client.as_ref().map(Client::base_url);
        let mut invalid = Ok(());
        for (rows, journal) in inputs {
            invalid = reported(context, invalid);
            let mut journal = match journal {
                Some(path) => with_list(context, path, Journal::read(path, context.system()))?,
                None => Journal::nowhere(),
            };
            let again = self.compare(context, rows, journal.state(), base_url)?;
            journal.send_again(again);
            journal.begin().await?;
            let summary = self.summary(rows, &journal);
            summary.print_plan(context, &limits)?;
            let number = rows.invalid().count();
            if number > 0 {
                let number = plural(number, "row is", "rows are");
                let problem = format!("{number} invalid in {}", rows.name());
                let failure = rows.failure(Kind::Partial, problem, rows.invalid());
                invalid = Err(failure.into());
            }
        }
        invalid
    }

    /// Checks that recorded rows are those of the input, and were sent to this service, if it is
    /// known. Returns the recorded rows that are sent again.
    fn compare(
        &self,
        context: &Context,
        rows: &Rows,
        state: &State,
        base_url: Option<&Url>,
    ) -> Result<Vec<usize>> {
        if let (Some(other), Some(base_url)) = (state.base_url(), base_url)
            && other != base_url.as_str()
        {
            let command = again(context.args(), &["--base-url", other], &self.inputs);
            let problem = format!("{} was imported to {other}, not to {base_url}", rows.name());
            let hint = format!("{command} sends the rest, and your key, to that other service");
            return Err(CliError::usage(problem).hint(hint));
        }
        let mut again = journal::compare(rows, state)?;
        if self.retry_rejected {
            again.extend(state.rejected().map(|(row, _)| row));
        }
        if self.unknown == UnknownAction::Retry {
            again.extend(state.unknown().map(|(row, _)| row));
        }
        Ok(again)
    }

    /// Opens and locks the files of an input, and checks that they belong to it.
    fn open(
        &self,
        context: &Context,
        client: &Client,
        rows: Rows,
        journal: Option<PathBuf>,
    ) -> Result<(Rows, Journal)> {
        let timeout = context.settings().values().timeout();
        let started = instant(context.clock().now());
        let run = Run::new(client.base_url(), timeout, started);
        let mut journal = match journal {
            Some(path) => {
                let opened = Journal::open(&path, self.journal.is_none(), run, context.system());
                with_list(context, &path, opened)?
            }
            None => Journal::nowhere(),
        };
        let again = self.compare(context, &rows, journal.state(), Some(client.base_url()))?;
        journal.send_again(again);
        Ok((rows, journal))
    }

    fn summary<'a>(&'a self, rows: &'a Rows, journal: &'a Journal) -> Summary<'a> {
        let (rejects, created) = (self.rejects.as_deref(), self.created.as_deref());
        Summary::new(rows, journal, &self.inputs, rejects, created)
    }

    /// Imports an input, and prints its summary.
    async fn import(
        &self,
        context: &Context,
        client: &Client,
        rows: &Rows,
        journal: &mut Journal,
        taken: &HashSet<i64>,
        signals: &mut Signals,
    ) -> Result<()> {
        let sent = self
            .send(context, client, rows, journal, taken, signals)
            .await;
        let ui = context.ui();
        ui.set_progress(None);
        ui.set_activity(None);
        let summary = self.summary(rows, journal);
        let mut unwritten = summary.write_files(context.system());
        unwritten.extend(summary.print(context).err());
        let mut ended = match sent {
            Ok(doubt) => summary.leftovers(context, doubt.as_deref()),
            Err(stop) => Err(self.stopped(context, &summary, stop)),
        };
        for error in unwritten {
            if let CliError::Failure(mut failure) = error {
                // Without a journal, another run would create all pets again.
                failure.hint = None;
                failure.kind = Kind::Partial;
                ui.error(&failure);
            }
            ended = ended.and(Err(CliError::Silent(Kind::Partial.code())));
        }
        ended
    }

    /// Treats unknown rows as the user chose, and sends what is left. Returns why the check did not
    /// settle all unknown rows.
    async fn send(
        &self,
        context: &Context,
        client: &Client,
        rows: &Rows,
        journal: &mut Journal,
        taken: &HashSet<i64>,
        signals: &mut Signals,
    ) -> Result<Option<String>> {
        let unknown = journal.state().totals().unknown;
        journal.begin().await?;
        if self.unknown == UnknownAction::Retry && unknown > 0 {
            let rows = plural(unknown, "unknown row", "unknown rows");
            let pets = plural(unknown, "pet", "pets");
            let text = format!("sending {rows} again; up to {pets} may exist twice");
            context.ui().warning(&text, None);
        }
        let mut doubt = None;
        if self.unknown == UnknownAction::Check && unknown > 0 {
            let checking = check(context, client, rows.all(), journal, taken);
            doubt = until_signal(signals, checking).await?;
        }
        if rows.all().is_empty() {
            context.ui().note(&format!("{} has no rows", rows.name()));
        }
        let (concurrency, retry_for) = (self.concurrency.into(), self.retry_for.0);
        let sender = Sender::new(context, client, rows.all(), journal, concurrency, retry_for);
        sender.run(signals).await?;
        Ok(doubt)
    }

    /// Returns the error of a run that ended early, with what was done and how to continue. Without a
    /// journal, no command continues: another run would create all pets again.
    fn stopped(&self, context: &Context, summary: &Summary<'_>, stop: CliError) -> CliError {
        let (blocked, is_transient) = match &stop {
            CliError::Client(error) => {
                let blocked = error.blocked().map(|blocked| blocked.remaining);
                (blocked, error.is_transient())
            }
            CliError::Failure(_) | CliError::Silent(_) => (None, false),
        };
        let mut failure = match context.explain(stop) {
            Ok(failure) => failure.stopped_after(&summary.progress()),
            Err(code) => return CliError::Silent(code),
        };
        // A service that answers 408 again and again fails, whatever a single one means.
        if failure.kind == Kind::Refused && is_transient {
            failure.kind = Kind::Service;
        }
        let needs_correction = matches!(
            failure.kind,
            Kind::Key | Kind::Config | Kind::Tls | Kind::NotFound | Kind::Refused
        );
        if needs_correction && failure.hint.is_some() {
            return failure.into();
        }
        let max_wait = context.settings().values().max_wait();
        let longer = blocked.filter(|remaining| *remaining > max_wait);
        // It must not repeat `--unknown retry`, which could send rows twice.
        let more: &[&str] = match self.unknown {
            UnknownAction::Check => &["--unknown", "check"],
            UnknownAction::Skip | UnknownAction::Retry => &[],
        };
        failure.hint = summary.has_journal().then(|| {
            let command = again(context.args(), more, &self.inputs);
            match longer.map(wait_option) {
                Some(longer) => {
                    format!("{command} continues then; `--max-wait {longer}` waits for it")
                }
                None => format!("{command} continues"),
            }
        });
        failure.into()
    }
}

/// Says how to find out what was created, if a journal cannot be read. A new one would create all pets again.
fn with_list(context: &Context, path: &Path, journal: Result<Journal>) -> Result<Journal> {
    let mut error = match journal {
        Ok(journal) => return Ok(journal),
        Err(error) => error,
    };
    if let CliError::Failure(failure) = &mut error
        && failure.hint.is_none()
        && path.exists()
    {
        let list = context.settings().command("pets list --all");
        failure.hint = Some(format!("{list} shows which pets exist"));
    }
    Err(error)
}

/// Returns the one path of a file that may be named in several ways, and need not exist yet.
fn place(path: &Path) -> PathBuf {
    // A link may lead to a file that does not exist yet.
    let path = match path.read_link() {
        Ok(target) => files::folder(path).join(target),
        Err(_) => path.to_owned(),
    };
    let in_folder = || {
        Some(
            files::folder(&path)
                .canonicalize()
                .ok()?
                .join(path.file_name()?),
        )
    };
    let found = path.canonicalize().ok().or_else(in_folder);
    found.unwrap_or_else(|| path.clone())
}

fn used_twice(file: &Path) -> CliError {
    CliError::usage(format!("{} is used twice", file.display()))
}

/// Prints the error of an input that others follow. Its exit code is left.
fn reported(context: &Context, ended: Result<()>) -> Result<()> {
    match ended {
        Err(CliError::Failure(failure)) => {
            context.ui().error(&failure);
            Err(CliError::Silent(failure.kind.code()))
        }
        ended => ended,
    }
}

fn is_partial(error: &CliError) -> bool {
    match error {
        CliError::Failure(failure) => failure.kind == Kind::Partial,
        CliError::Silent(code) => *code == Kind::Partial.code(),
        CliError::Client(_) => false,
    }
}
