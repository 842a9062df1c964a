//! `petstore pets export`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueHint;
use petstore_client::{Client, ErrorKind, Pet, PetStatus};
use tokio::time::Instant;

use super::part_file::{PartFile, Written};
use super::{MAX_PAGE, PETS, PetPages, select, status};
use crate::context::Context;
use crate::env::until_signal;
use crate::error::{CliError, Kind, Result};
use crate::files;
use crate::output::{Output, OutputFormat};
use crate::session::Purpose;
use crate::status::Progress;
use crate::time::plural;

/// How often the mark is written that says where to continue.
const MARK_INTERVAL: Duration = Duration::from_millis(200);

/// Write all pets.
#[derive(Debug, clap::Args)]
#[command(after_long_help = examples!(
    "petstore pets export pets.ndjson",
    "petstore pets export sold.csv --status sold",
    "petstore pets export | petstore --profile staging pets import";
    "Writes the format that the extension of FILE names, or NDJSON, which `petstore pets import` \
     reads. FILE appears when it is complete. If an export of NDJSON is interrupted, the same command \
     continues; other formats start over.",
    "Exits with 8 if there may be more pets than the service lists."
))]
pub(crate) struct Export {
    /// The file to write [default: standard output]
    #[arg(value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,

    /// Only pets with this status
    #[arg(long, value_parser = status())]
    status: Option<PetStatus>,
}

/// An export in progress.
struct ExportJob<'a> {
    context: &'a Context,
    output: Output,
    file: Option<PartFile>,
    /// What the file has, if a later command can continue it.
    selection: Option<String>,
    /// What was written so far, with the rows of an earlier run.
    done: Written,
    /// A pet that the service has listed twice.
    repeated: Option<i64>,
    /// The pages of this run.
    pages: usize,
    marked: Instant,
}

impl Export {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let mut signals = context.take_signals();
        let file = self.file.filter(|file| !files::is_stdout(file));
        let format = match &file {
            Some(file) => file_format(file, context)?,
            None => OutputFormat::Ndjson,
        };
        // Starting the result checks `--jq` before anything is sent.
        let output = context.printer().start_or(OutputFormat::Ndjson, PETS)?;
        let connecting = context.connect(Purpose::Read);
        let client = until_signal(&mut signals, connecting).await?;
        let mut job = ExportJob {
            context,
            output,
            file: None,
            selection: None,
            done: Written::default(),
            repeated: None,
            pages: 0,
            marked: Instant::now(),
        };
        if let Some(file) = &file {
            job.open(file, format, &client, self.status.clone())?;
        }
        let result = until_signal(&mut signals, job.write(&client, self.status)).await;
        job.finish(result)
    }
}

/// Returns the format of a file: the one that the user set, or that of its name.
fn file_format(file: &Path, context: &Context) -> Result<OutputFormat> {
    if let Some(format) = context.printer().requested_format() {
        return Ok(format);
    }
    if let Some(format) = OutputFormat::of_file(file) {
        return Ok(format);
    }
    let Some(extension) = file.extension() else {
        return Ok(OutputFormat::Ndjson);
    };
    let extension = extension.display();
    let problem = format!("no format has the extension `.{extension}`");
    let hint = match extension.to_string().as_str() {
        "gz" => {
            let options = context.settings().same_service();
            format!("`petstore pets export{options} | gzip > FILE` compresses")
        }
        _ => "`-o FORMAT` sets the format".to_owned(),
    };
    Err(CliError::usage(problem).hint(hint))
}

impl ExportJob<'_> {
    /// Opens a file in place of standard output, and continues where an earlier run was interrupted.
    fn open(
        &mut self,
        path: &Path,
        format: OutputFormat,
        client: &Client,
        status: Option<PetStatus>,
    ) -> Result<()> {
        let printer = self.context.printer();
        let mut file = PartFile::open(path, self.context.system())?;
        if format == OutputFormat::Ndjson && !printer.is_filtered() {
            let first = select(client, Some(MAX_PAGE), status).build()?;
            let fields = printer.fields().unwrap_or_default().join(",");
            let selection = format!("{} {fields}", first.uri());
            self.done = file.resume(&selection, client.base_url())?;
            self.selection = Some(selection);
        } else {
            file.start_over()?;
        }
        self.output = printer.start_in(file.writer()?, format, PETS)?;
        self.file = Some(file);
        if self.done.next.is_some() {
            let pets = plural(self.done.pets, "pet", "pets");
            let text = format!("continuing after {pets} of an interrupted export");
            self.context.ui().note_now(&text);
        }
        Ok(())
    }

    /// Writes all pages that are left.
    async fn write(&mut self, client: &Client, status: Option<PetStatus>) -> Result<()> {
        let list = select(client, Some(MAX_PAGE), status);
        let first = list.clone().limit(1);
        let mut pages = PetPages::new(list, self.done.next.clone());
        while let Some(page) = pages.next().await? {
            let new: Vec<&Pet> = page.iter().filter(|pet| self.is_new(pet)).collect();
            self.output.rows(&new)?;
            self.done.pets += new.len();
            self.pages += 1;
            self.done.next = page.next_url;
            if self.marked.elapsed() >= MARK_INTERVAL {
                self.save()?;
            }
            self.context.ui().set_progress(Some(Progress::Pets {
                verb: "exporting",
                count: self.done.pets,
            }));
        }
        self.context.ui().set_progress(None);
        if let Some(id) = self.repeated {
            let problem =
                format!("pet {id} came twice: the pages overlap, and pets may be missing");
            return Err(CliError::new(Kind::Partial, problem));
        }
        if pages.has_more() == Some(false) {
            return Ok(());
        }
        // The only page is full, and has no link to a next page. It is the end of the list if the
        // service sends such links at all, which a page of one pet shows.
        if first.send().await?.has_more() == Some(true) {
            return Ok(());
        }
        let problem = "there may be more pets: the last page is full";
        Err(CliError::new(Kind::Partial, problem))
    }

    /// Returns whether a pet was not listed before.
    fn is_new(&mut self, pet: &Pet) -> bool {
        let is_new = self.done.ids.insert(pet.id);
        if !is_new {
            self.repeated.get_or_insert(pet.id);
        }
        is_new
    }

    /// Records where to continue. Returns whether a later command can.
    fn save(&mut self) -> Result<bool> {
        let (Some(file), Some(selection), Some(next)) =
            (&mut self.file, &self.selection, &self.done.next)
        else {
            return Ok(false);
        };
        self.marked = Instant::now();
        file.save(selection, next)?;
        Ok(true)
    }

    /// Completes the file, or describes what an interrupted export has written.
    fn finish(self, result: Result<()>) -> Result<()> {
        self.context.ui().set_progress(None);
        match result {
            Ok(()) => self.complete(),
            // The file is complete: the service lists no more.
            Err(CliError::Failure(failure)) if failure.kind == Kind::Partial => {
                self.complete()?;
                Err(CliError::Failure(failure))
            }
            Err(error) => Err(self.stopped(error)),
        }
    }

    fn complete(self) -> Result<()> {
        let ui = self.context.ui();
        match self.output.finish() {
            Ok(late) => ui.late_field(late),
            Err(error) => {
                if let Some(file) = self.file.filter(|_| self.selection.is_none()) {
                    file.discard();
                }
                return Err(error);
            }
        }
        if let Some(file) = self.file {
            file.complete()?;
            ui.note(&format!("wrote {}", plural(self.done.pets, "pet", "pets")));
        }
        Ok(())
    }

    /// Returns the error of an export that ended early.
    fn stopped(mut self, error: CliError) -> CliError {
        let is_dead_end = is_dead_end(&error);
        let mut failure = match self.context.explain(error) {
            Ok(failure) => failure,
            Err(code) => return CliError::Silent(code),
        };
        if self.done.pets > 0 {
            failure = failure.stopped_after(&plural(self.done.pets, "pet", "pets"));
        }
        let is_saved = self.save().unwrap_or(false);
        let Some(file) = self.file else {
            if self.done.pets > 0 && !is_dead_end {
                let export = self.context.settings().command("pets export FILE");
                let hint = format!("an export into a file can continue: {export}");
                failure.hint.get_or_insert(hint);
            }
            return failure.into();
        };
        let is_refused = matches!(failure.kind, Kind::Refused | Kind::NotFound);
        if self.selection.is_none() || self.done.pets == 0 {
            file.discard();
        } else if is_dead_end || self.pages == 0 && is_refused {
            // With the stored link to the next page, the same command would fail again.
            let removal = file.removal();
            failure.hint = Some(format!("`{removal}` lets the same command start over"));
        } else if is_saved {
            failure.list.push("the same command continues".to_owned());
        }
        failure.into()
    }
}

/// Returns whether the links between the service's pages cannot be followed.
fn is_dead_end(error: &CliError) -> bool {
    match error {
        CliError::Client(error) => error.kind() == ErrorKind::Paging,
        CliError::Failure(_) | CliError::Silent(_) => false,
    }
}
