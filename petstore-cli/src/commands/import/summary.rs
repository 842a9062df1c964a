//! What an import did, or would do: the sentence, the table, JSON, the error of what is left, and the
//! command that continues.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use petstore_client::limits::{QuotaWindow, RateLimits};
use serde_json::{Value, json};

use super::journal::Journal;
use super::rows::Rows;
use crate::context::Context;
use crate::env::System;
use crate::error::{CliError, Kind, Result};
use crate::escape;
use crate::files;
use crate::input::is_stdin;
use crate::output::ANY;
use crate::session::words::quota_name;
use crate::time::{count, plural};

/// Returns what to call to continue, with more words. Such a command must not name other files.
pub(super) fn again(args: &[OsString], more: &[&str], inputs: &[PathBuf]) -> String {
    let is_plain = |arg: &OsString| match arg.to_str() {
        Some(arg) => !arg.contains(escape::is_harmful),
        None => false,
    };
    let mut command = match args.iter().all(is_plain) {
        true => format!("`{}`", typed(args, more)),
        false if more.is_empty() => "the same command".to_owned(),
        false => format!("the same command with `{}`", more.join(" ")),
    };
    if inputs.iter().any(|input| is_stdin(input)) {
        command += ", with the same rows on standard input,";
    }
    command
}

/// Returns the command as typed, with more words. Leaves out `--unknown` and `--retry-rejected`,
/// which treat rows of earlier runs, and the option that the words replace.
fn typed(args: &[OsString], more: &[&str]) -> String {
    let args: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    let end = args.iter().position(|arg| arg == "--");
    let (options, files) = args.split_at(end.unwrap_or(args.len()));
    let mut words = vec!["petstore".to_owned()];
    let mut options = options.iter().skip(1);
    let replaced = more.first().copied();
    while let Some(option) = options.next() {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (&**option, None),
        };
        if name == "--unknown" || Some(name) == replaced {
            if value.is_none() {
                options.next();
            }
        } else if name != "--retry-rejected" {
            words.push(escape::shell(option));
        }
    }
    words.extend(more.iter().map(|word| escape::shell(word)));
    words.extend(files.iter().map(|file| escape::shell(file)));
    words.join(" ")
}

/// Checks the options of the output, before anything is sent.
pub(super) fn check_output(context: &Context) -> Result<()> {
    let rows = Rows::default();
    let sample = Summary::new(&rows, &Journal::nowhere(), &[], None, None).document();
    context.printer().start(ANY)?.check(&sample)
}

/// What an import did, or would do.
pub(super) struct Summary<'a> {
    rows: &'a Rows,
    journal: &'a Journal,
    /// All inputs of the command.
    inputs: &'a [PathBuf],
    /// The files of rejected and of created rows.
    rejects: Option<&'a Path>,
    created: Option<&'a Path>,
}

impl<'a> Summary<'a> {
    pub(super) fn new(
        rows: &'a Rows,
        journal: &'a Journal,
        inputs: &'a [PathBuf],
        rejects: Option<&'a Path>,
        created: Option<&'a Path>,
    ) -> Self {
        Self {
            rows,
            journal,
            inputs,
            rejects,
            created,
        }
    }

    pub(super) fn has_journal(&self) -> bool {
        self.journal.path().is_some()
    }

    /// Returns the number of rows that are to be sent.
    fn left(&self) -> usize {
        let rows = self.rows.all().iter().enumerate();
        rows.filter(|(number, row)| row.pet().is_some() && self.journal.state().is_unsent(*number))
            .count()
    }

    /// Returns how many rows are done: `12 of 30 rows`. Unknown rows are not.
    pub(super) fn progress(&self) -> String {
        let done = count(self.journal.state().totals().done());
        let all = plural(self.rows.all().len(), "row", "rows");
        format!("{done} of {all}")
    }

    /// Returns the summary for programs.
    fn document(&self) -> Value {
        let totals = self.journal.state().totals();
        let rows = self.rows.all().len();
        let mut total = json!(totals);
        total["left"] = self.left().into();
        total["invalid"] = self.rows.invalid().count().into();
        let shown = |path: Option<&Path>| path.map(|path| path.display().to_string());
        json!({
            "file": self.rows.name(),
            "rows": rows,
            "complete": totals.created + totals.found == rows,
            "run": self.journal.run(),
            "total": total,
            "found": self.list("pet", self.journal.state().found()),
            "rejected": self.list("why", self.journal.state().rejected()),
            "unknown": self.list("why", self.journal.state().unknown()),
            "journal": shown(self.journal.path()),
            "rejects": shown(self.rejects),
            "createdFile": shown(self.created),
        })
    }

    /// Returns rows that have a value, for programs.
    fn list<V: Into<Value>>(
        &self,
        name: &str,
        rows: impl Iterator<Item = (usize, V)>,
    ) -> Vec<Value> {
        rows.map(|(row, value)| self.rows.object(row, name, value))
            .collect()
    }

    /// Writes the files. Returns the errors of those that cannot be written.
    pub(super) fn write_files(&self, system: &System) -> Vec<CliError> {
        let rejected = self.rows.invalid().chain(self.journal.state().rejected());
        let rejected = rejected.map(|(row, why)| (row, why.into())).collect();
        let created = self.journal.state().pets();
        let created = created.map(|(row, id)| (row, id.into())).collect();
        let mut errors = Vec::new();
        for (path, column, values) in [
            (self.rejects, "reason", rejected),
            (self.created, "petId", created),
        ] {
            let Some(path) = path else { continue };
            let text = self.rows.with_column(column, &values);
            let written = text.and_then(|text| files::write(path, text, system));
            errors.extend(written.err());
        }
        errors
    }

    /// Prints a sentence to standard error, and the summary in the chosen format to standard output. A
    /// closed pipe is not an error: the rows were sent.
    pub(super) fn print(&self, context: &Context) -> Result<()> {
        context.ui().note(&self.sentence());
        let printer = context.printer();
        if !printer.is_set() {
            return Ok(());
        }
        let output = printer.start(ANY)?;
        let written = output.document(&self.document());
        match written.and_then(|()| printer.flush()) {
            Err(CliError::Silent(_)) => Ok(()),
            written => written,
        }
    }

    /// Returns the summary in a sentence, for a log.
    fn sentence(&self) -> String {
        let total = self.journal.state().totals();
        let all = plural(self.rows.all().len(), "row", "rows");
        let name = self.shown_name();
        let mut text = format!("{name}{} of {all} created", count(total.created));
        let created = self.journal.run().created;
        if created < total.created {
            text += &format!(" ({} in this run)", count(created));
        }
        if total.found > 0 {
            text += &format!(", {} found", count(total.found));
        }
        for part in self.undone() {
            text += &format!(", {part}");
        }
        text
    }

    /// Returns the start of a sentence about one of several inputs: `a.csv: `.
    fn shown_name(&self) -> String {
        match self.inputs.len() {
            0 | 1 => String::new(),
            _ => format!("{}: ", self.rows.name()),
        }
    }

    /// Returns the numbers of rows that are not done: `2 rejected`.
    fn undone(&self) -> Vec<String> {
        let total = self.journal.state().totals();
        let mut parts = Vec::new();
        for (rows, what) in [
            (total.rejected, "rejected"),
            (total.unknown, "unknown"),
            (self.left(), "left"),
            (self.rows.invalid().count(), "invalid"),
        ] {
            if rows > 0 {
                parts.push(format!("{} {what}", count(rows)));
            }
        }
        parts
    }

    /// Returns an error if rows were rejected, are unknown or invalid. `doubt` says why the list of
    /// pets did not settle them.
    pub(super) fn leftovers(&self, context: &Context, doubt: Option<&str>) -> Result<()> {
        let undone = self.undone();
        if undone.is_empty() {
            return Ok(());
        }
        let name = self.shown_name();
        let message = format!("{name}the import is not complete: {}", undone.join(", "));
        let unknown = self.journal.state().unknown();
        let refused: Vec<_> = self
            .journal
            .state()
            .rejected()
            .chain(self.rows.invalid())
            .collect();
        let mut failure = match self.rejects {
            Some(path) if !refused.is_empty() => {
                let mut failure = self.rows.failure(Kind::Partial, message, unknown);
                let text = format!("the rejected rows are in {}", path.display());
                failure.list.push(text);
                failure
            }
            _ => {
                let problems = unknown.chain(refused);
                self.rows.failure(Kind::Partial, message, problems)
            }
        };
        match doubt {
            // A hint to check them would lead here again.
            Some(doubt) => failure.list.extend([
                format!("the list of pets proves nothing: {doubt}"),
                "`--unknown retry` sends unknown rows again, and may create pets twice".to_owned(),
            ]),
            None => failure.hint = self.hint(context),
        }
        Err(failure.into())
    }

    /// Returns what to do about rows that are not created. Without a journal, the command would
    /// create all pets again.
    fn hint(&self, context: &Context) -> Option<String> {
        self.journal.path()?;
        let total = self.journal.state().totals();
        if total.unknown > 0 {
            let command = again(context.args(), &["--unknown", "check"], self.inputs);
            return Some(format!("{command} finds out which of them were created"));
        }
        // Only one input can have a file of rejected rows.
        if total.rejected > 0 && self.rejects.is_none() && self.inputs.len() == 1 {
            let command = again(context.args(), &["--rejects", "FILE"], self.inputs);
            return Some(format!("{command} writes them to a file"));
        }
        None
    }

    /// Prints what a run would do, and how long the known quotas make it wait.
    pub(super) fn print_plan(&self, context: &Context, limits: &RateLimits) -> Result<()> {
        let printer = context.printer();
        if printer.is_set() {
            let output = printer.start(ANY)?;
            return output.document(&self.document());
        }
        let name = escape::line(self.rows.name());
        let plan = self.forecast(context, limits);
        printer.print(format!("{name} has {plan}\n"))
    }

    /// Describes the rows to send: `3 rows to send, within the known quotas`.
    fn forecast(&self, context: &Context, limits: &RateLimits) -> String {
        let left = self.left();
        if left == 0 {
            return "nothing to send".to_owned();
        }
        let rows = plural(left, "row", "rows");
        if limits.windows.is_empty() && limits.ended.is_empty() {
            let refresh = context.settings().command("limits --refresh");
            return format!("{rows} to send; {refresh} asks for the quotas");
        }
        let clock = context.clock();
        let now = limits.service_time.unwrap_or_else(|| clock.now());
        let mut longest = None;
        for window in limits.windows.iter().chain(&limits.ended) {
            if let Some(wait) = wait(window, left as u64, now) {
                longest = longest.max(Some((wait, quota_name(window.quota))));
            }
        }
        let Some((wait, quota)) = longest else {
            return format!("{rows} to send, within the known quotas");
        };
        let local = clock.clone().local(context.system().time_zone());
        let until = local.until(clock.now() + wait, wait);
        format!("{rows} to send; the {quota} lets the last go {until}")
    }
}

/// Returns how long a quota makes the last of some requests wait, if it does.
fn wait(window: &QuotaWindow, requests: u64, now: SystemTime) -> Option<Duration> {
    let beyond = requests.checked_sub(window.remaining.saturating_add(1))?;
    let period = window.quota.period().unwrap_or_default();
    // If the window has ended, the next request begins another one.
    let reset = window.reset.duration_since(now).unwrap_or(period);
    let periods = u32::try_from(beyond.checked_div(window.limit)?).unwrap_or(u32::MAX);
    Some(reset.saturating_add(period.saturating_mul(periods)))
}
