//! `petstore pets import`.

use std::path::{Path, PathBuf};

use futures_util::{StreamExt as _, stream};
use petstore_client::Client;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;

use crate::context::{Context, input_name};
use crate::env::Interrupts;
use crate::error::CliError;
use crate::exit::Exit;
use crate::files;
use crate::import::{
    self, Bounds, Complaint, Ended, Event, Fate, Header, Journal, JournalError, Ledger, Sending,
    Table,
};
use crate::safe;

/// The most that is read of an input: 1 GiB.
const MOST_INPUT: u64 = 1 << 30;
/// So many complaints are shown.
const MOST_SHOWN: usize = 100;
const FIELDS: Option<&[&str]> =
    Some(&["rows", "created", "rejected", "unknown", "skipped", "left"]);

/// Adds many pets, each once
///
/// All rows are checked before the first is sent. What becomes of each is kept in a journal beside
/// the file, so that the same command goes on where it was stopped, and sends nothing once all is
/// done. A row whose fate is not known, since the connection broke or the program was killed while
/// it was under way, is not sent again by itself: --unknown says what to do with it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Rows are JSON objects, one a line or in an array, or CSV with a header:
  name,categoryId,status
  Rex,7,available
Fields `id` and `reason` are left out: the service gives new ids.

Examples:
  petstore pets import pets.csv
  petstore pets import pets.csv --rejects rejects.csv
  petstore pets import pets.csv --unknown retry
  petstore pets export | petstore --profile staging pets import")]
pub(crate) struct Import {
    /// The file; `-` is standard input
    #[arg(default_value = "-")]
    file: PathBuf,

    /// Where the journal is kept. Without it: beside the file, with `.petstore-journal` at its end
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,

    /// Where to write the rows that the service rejected, each with the reason
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,

    /// What to do with rows whose fate is not known: let them be, or send them again, which may add
    /// a pet twice
    #[arg(long, value_name = "WHAT")]
    unknown: Option<Unknown>,

    /// How many rows are under way at once, 1 to 256
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    concurrency: u16,

    /// Checks all rows and tells how many are to be sent; sends nothing, and needs no key
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Unknown {
    /// They are let be
    Skip,
    /// They are sent again
    Retry,
}

/// How many rows have which fate.
#[derive(Debug, Serialize)]
struct Summary {
    rows: usize,
    created: usize,
    rejected: usize,
    unknown: usize,
    skipped: usize,
    left: usize,
}

impl Import {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let mut interrupts =
            std::mem::replace(&mut context.env.interrupts, Box::pin(stream::pending()));
        let output = context.output(FIELDS)?;
        let prepared = tokio::select! {
            biased;
            () = next(&mut interrupts) => return Err(CliError::new(Exit::Interrupted, "interrupted")),
            prepared = self.prepare(context) => prepared?,
        };
        let Prepared { input, table, client, journal, mut ledger, passing: _passing } = prepared;
        let Some((client, journal)) = client.zip(journal) else {
            return output.document(&Summary::of(&ledger)).await;
        };
        let todo = ledger.with(&Fate::Todo);
        if table.rows.is_empty() {
            context.report.note(&format!("{} has no rows", input_name(&self.file)));
        } else if todo.is_empty() && ledger.count(|fate| *fate == Fate::Unknown) == 0 {
            context.report.note("all rows were sent before: there is nothing to do");
        }
        let sending = Sending {
            client: &client,
            journal: &journal,
            rows: &table.rows,
            report: &context.report,
            bounds: Bounds { most: self.concurrency.into(), longest: context.settings.max_wait() },
        };
        let (stopping, stopped) = oneshot::channel::<()>();
        let stop = async {
            // The other end goes only when all this is over.
            let _ = stopped.await;
        };
        let at_once = async {
            next(&mut interrupts).await;
            let _ = stopping.send(());
            next(&mut interrupts).await;
        };
        let ended = tokio::select! {
            biased;
            () = at_once => Ended::Interrupted,
            ended = sending.run(&todo, &mut ledger, stop) => ended,
        };
        context.report.clear();
        if let Some(path) = &self.rejects {
            let text = import::rejects(&input, &table, &ledger);
            write_rejects(path, &text)?;
        }
        let summary = Summary::of(&ledger);
        let result = self.result(ended, &summary, context);
        output.document(&summary).await?;
        result
    }

    /// Reads and checks everything, and opens the journal.
    async fn prepare(&self, context: &mut Context) -> Result<Prepared, CliError> {
        let input = context.read_up_to(&self.file, MOST_INPUT).await?;
        let name = input_name(&self.file);
        let table = import::read(&input).map_err(|complaints| refused(&name, &complaints))?;
        let digest = Sha256::digest(&input);
        let sha256: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let client = if self.dry_run { None } else { Some(context.client().await?) };
        let mock = context.wants_mock();
        let base_url = match &client {
            Some(client) if !mock => client.base_url().to_string(),
            _ => String::new(),
        };
        let rows = table.rows.len();
        let header = Header { petstore_import: Header::VERSION, sha256, rows, base_url };
        if self.dry_run {
            let ledger = Ledger::new(header);
            return Ok(Prepared {
                input,
                table,
                client: None,
                journal: None,
                ledger,
                passing: None,
            });
        }
        // What a mock of its own is told is gone when the command ends; so is what is known of it.
        let passing =
            if mock && self.journal.is_none() { Some(tempfile::tempdir()?) } else { None };
        let path = match &passing {
            Some(folder) => folder.path().join("journal"),
            None => self.journal_path(&header, context)?,
        };
        let (journal, mut ledger) = open(&path, &header)?;
        check(&path, &name, &ledger.header, &header)?;
        self.settle(&journal, &mut ledger).await.map_err(|error| unwritable(&path, &error))?;
        Ok(Prepared { input, table, client, journal: Some(journal), ledger, passing })
    }

    fn journal_path(&self, header: &Header, context: &Context) -> Result<PathBuf, CliError> {
        if let Some(path) = &self.journal {
            return Ok(path.clone());
        }
        if self.file != Path::new("-") {
            let mut name = self.file.clone().into_os_string();
            name.push(".petstore-journal");
            return Ok(name.into());
        }
        let folder = context.env.dirs.state.clone().ok_or_else(|| {
            CliError::usage("there is no folder to keep the journal of standard input in")
                .hint("`--journal FILE` names a file for it")
        })?;
        files::make_folder(&folder).map_err(|error| unwritable(&folder, &error))?;
        let short = header.sha256.get(..16).unwrap_or_default();
        Ok(folder.join(format!("import-{short}.petstore-journal")))
    }

    /// Does with rows of unknown fate what was asked for.
    async fn settle(&self, journal: &Journal, ledger: &mut Ledger) -> std::io::Result<()> {
        let Some(choice) = self.unknown else { return Ok(()) };
        for row in ledger.with(&Fate::Unknown) {
            let event = match choice {
                Unknown::Skip => Event::Skipped,
                Unknown::Retry => Event::Unsent,
            };
            journal.note(row, event.clone()).await?;
            let _ = ledger.apply(row, event);
        }
        Ok(())
    }

    /// Returns how it ended, and what to do about it.
    fn result(&self, ended: Ended, summary: &Summary, context: &Context) -> Result<(), CliError> {
        let resume = format!("`{}` goes on from here", typed(context));
        let error = match ended {
            Ended::Interrupted => CliError::new(Exit::Interrupted, "interrupted").hint(resume),
            Ended::Failed(error) => CliError::from(error).hint(resume),
            Ended::Journal(error) => {
                CliError::new(Exit::Internal, format!("could not write the journal: {error}"))
                    .hint(resume)
            }
            Ended::Done if summary.rejected + summary.unknown == 0 => return Ok(()),
            Ended::Done => CliError::new(
                Exit::Partial,
                format!(
                    "{} of {} rows were added (rejected: {}, of unknown fate: {})",
                    summary.created, summary.rows, summary.rejected, summary.unknown
                ),
            ),
        };
        let error = match (&self.rejects, summary.rejected) {
            (_, 0) => error,
            (Some(path), _) => error.hint(format!("the rejected rows are in {}", path.display())),
            (None, _) => error.hint("`--rejects FILE` writes the rejected rows with the reasons"),
        };
        if summary.unknown == 0 {
            return Err(error);
        }
        Err(error.hint(
            "`--unknown skip` lets rows of unknown fate be, `--unknown retry` sends them again",
        ))
    }
}

struct Prepared {
    input: Vec<u8>,
    table: Table,
    /// Nothing in a dry run; nor is there a journal.
    client: Option<Client>,
    journal: Option<Journal>,
    ledger: Ledger,
    /// Where the journal is, if it goes with the command.
    passing: Option<tempfile::TempDir>,
}

impl Summary {
    fn of(ledger: &Ledger) -> Self {
        let count = |is: fn(&Fate) -> bool| ledger.count(is);
        Self {
            rows: ledger.fates.len(),
            created: count(|fate| matches!(fate, Fate::Created)),
            rejected: count(|fate| matches!(fate, Fate::Rejected(_))),
            unknown: count(|fate| matches!(fate, Fate::Unknown)),
            skipped: count(|fate| matches!(fate, Fate::Skipped)),
            left: count(|fate| matches!(fate, Fate::Todo)),
        }
    }
}

/// Waits for the next Ctrl-C.
async fn next(interrupts: &mut Interrupts) {
    if interrupts.next().await.is_none() {
        std::future::pending::<()>().await;
    }
}

fn refused(name: &str, complaints: &[Complaint]) -> CliError {
    let faults = if complaints.len() == 1 { "fault" } else { "faults" };
    let mut text = format!("{name} has {} {faults}, and nothing was sent:", complaints.len());
    for complaint in complaints.iter().take(MOST_SHOWN) {
        text += &format!("\n  {complaint}");
    }
    if complaints.len() > MOST_SHOWN {
        text += &format!("\n  and {} more", complaints.len() - MOST_SHOWN);
    }
    CliError::usage(text)
}

fn open(path: &Path, header: &Header) -> Result<(Journal, Ledger), CliError> {
    import::open(path, header).map_err(|error| match error {
        JournalError::Io(error) => unwritable(path, &error),
        error => CliError::usage(format!("{}: {error}", path.display()))
            .hint("`--journal FILE` names another file for the journal"),
    })
}

fn unwritable(path: &Path, error: &std::io::Error) -> CliError {
    CliError::new(Exit::Internal, format!("could not use the journal {}: {error}", path.display()))
        .hint("`--journal FILE` names another file for it")
}

/// Fails where a journal is of another import.
fn check(path: &Path, name: &str, kept: &Header, wanted: &Header) -> Result<(), CliError> {
    let path = path.display();
    let again = format!(
        "to import it from its first row on, which may add pets twice, remove {path} or name \
         another with `--journal FILE`"
    );
    if kept.sha256 != wanted.sha256 {
        let problem = format!("{name} has changed since its import began, as {path} tells");
        return Err(CliError::usage(problem).hint(again));
    }
    if kept.base_url != wanted.base_url {
        let problem = format!("{path} is of an import to {}", kept.base_url);
        return Err(CliError::usage(problem).hint(again));
    }
    Ok(())
}

/// Writes a file whole or not at all; what is no file, such as a pipe, is written to as it is.
fn write_rejects(path: &Path, text: &[u8]) -> Result<(), CliError> {
    let written = match std::fs::metadata(path) {
        Ok(there) if !there.is_file() => std::fs::write(path, text),
        _ => files::write(path, text),
    };
    written.map_err(|error| {
        CliError::new(Exit::Internal, format!("could not write {}: {error}", path.display()))
    })
}

/// Returns the command as it was typed.
fn typed(context: &Context) -> String {
    let args = context.env.args.iter().skip(1).map(|arg| safe::shell(&arg.to_string_lossy()));
    std::iter::once("petstore".to_owned()).chain(args).collect::<Vec<_>>().join(" ")
}
