//! What an import did, or would do: the sentence, the table, JSON, the error of what is left, and the
//! command that continues.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anstyle::Style;
use petstore_client::limits::{Quota, QuotaWindow, RateLimits};
use serde_json::{Value, json};

use super::journal::{Journal, RowState, State, Totals};
use super::row_files::RowFiles;
use super::rows::Rows;
use crate::context::Context;
use crate::error::{Failure, Kind, Result};
use crate::escape;
use crate::output::{ANY, Cell, Head, Table};
use crate::screen::{BOLD, GREEN, RED, YELLOW};
use crate::session::words::quota_name;
use crate::time::{Clock, count, duration, instant, plural};

/// The maximum number of listed rows of a kind.
const MAX_LISTED: usize = 3;

/// The columns of a summary in CSV and TSV.
const COLUMNS: [&str; 12] = [
    "rows",
    "total.created",
    "total.found",
    "total.rejected",
    "total.unknown",
    "total.left",
    "total.invalid",
    "run.created",
    "run.found",
    "run.rejected",
    "run.unknown",
    "complete",
];

/// What a hint changes in the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Without the options that treat earlier rows.
    Continue,
    /// With `--unknown check`.
    Check,
}

/// Returns the command as typed, without `--unknown` and `--retry-rejected`.
pub(super) fn typed(args: &[OsString], change: Change) -> String {
    let args = args.iter().skip(1);
    let args: Vec<_> = args.map(|arg| arg.to_string_lossy()).collect();
    let end = args.iter().position(|arg| arg == "--");
    let (options, files) = args.split_at(end.unwrap_or(args.len()));
    let mut words = vec!["petstore".to_owned()];
    let mut is_value = false;
    for option in options {
        let is_name = !is_value && option == "--unknown";
        let is_left_out = option.starts_with("--unknown=") || option == "--retry-rejected";
        if !is_value && !is_name && !is_left_out {
            words.push(escape::shell(option));
        }
        is_value = is_name;
    }
    if change == Change::Check {
        words.push("--unknown check".to_owned());
    }
    words.extend(files.iter().map(|file| escape::shell(file)));
    words.join(" ")
}

/// Checks the options of the output, before anything is sent.
pub(super) fn check_output(context: &Context) -> Result<()> {
    let rows = Rows::default();
    let files = RowFiles::default();
    let sample = Summary::of_state(&rows, &State::default(), &files).document(None);
    context.printer().start_flat(&COLUMNS, ANY)?.check(&sample)
}

/// What an import did.
pub(super) struct Summary<'a> {
    rows: &'a Rows,
    state: &'a State,
    run: Totals,
    journal: Option<String>,
    files: &'a RowFiles,
}

impl<'a> Summary<'a> {
    pub(super) fn new(rows: &'a Rows, journal: &'a Journal, files: &'a RowFiles) -> Self {
        Self {
            run: journal.run(),
            journal: journal.path().map(|path| path.display().to_string()),
            ..Self::of_state(rows, journal.state(), files)
        }
    }

    /// Returns the summary of an import that does not run.
    pub(super) fn of_state(rows: &'a Rows, state: &'a State, files: &'a RowFiles) -> Self {
        Self {
            rows,
            state,
            run: Totals::default(),
            journal: None,
            files,
        }
    }

    /// Returns the numbers of rows. Invalid ones are not left to send.
    fn total(&self) -> Totals {
        let total = self.state.totals();
        let left = total.left.saturating_sub(self.rows.invalid());
        Totals { left, ..total }
    }

    /// Returns how many rows are done: `12 of 30 rows`. Unknown rows are not done if the run checks
    /// them.
    pub(super) fn progress(&self, checks_unknown: bool) -> String {
        let all = self.rows.all().len();
        let total = self.total();
        let unknown = if checks_unknown { total.unknown } else { 0 };
        let done = count(all - total.left - unknown);
        format!("{done} of {}", plural(all, "row", "rows"))
    }

    /// Returns the summary for programs.
    fn document(&self, forecast: Option<&Value>) -> Value {
        let Totals {
            created,
            found,
            rejected,
            unknown,
            left,
        } = self.total();
        let run = self.run;
        let shown = |path: Option<&Path>| path.map(|path| path.display().to_string());
        json!({
            "file": self.rows.name(),
            "rows": self.rows.all().len(),
            "complete": self.is_complete(),
            "run": {
                "created": run.created,
                "found": run.found,
                "rejected": run.rejected,
                "unknown": run.unknown,
            },
            "total": {
                "created": created,
                "found": found,
                "rejected": rejected,
                "unknown": unknown,
                "left": left,
                "invalid": self.rows.invalid(),
            },
            "found": self.list(|state| match state {
                RowState::Found(id) => Some(("pet", json!(id))),
                _ => None,
            }),
            "rejected": self.list(|state| match state {
                RowState::Rejected(why) => Some(("why", json!(why))),
                _ => None,
            }),
            "unknown": self.list(|state| Some(("why", json!(state.unknown()?)))),
            "journal": self.journal,
            "rejects": shown(self.files.rejects()),
            "createdFile": shown(self.files.created()),
            "forecast": forecast,
        })
    }

    /// Returns the places of rows, each with a value.
    fn list(&self, value: impl Fn(&RowState) -> Option<(&'static str, Value)>) -> Vec<Value> {
        let mut list = Vec::new();
        for (row, state) in self.rows.all().iter().zip(self.state.rows()) {
            if let Some((name, value)) = value(state) {
                let mut object = row.place().json();
                object[name] = value;
                list.push(object);
            }
        }
        list
    }

    fn is_complete(&self) -> bool {
        self.total().done() == self.rows.all().len()
    }

    /// Prints the summary: a table at a terminal, what the user chose, or a sentence.
    pub(super) fn print(&self, context: &Context) -> Result<()> {
        let printer = context.printer();
        if printer.is_table() {
            printer.print(&self.table().render(printer.screen()))?;
            return printer.flush();
        }
        context.ui().note(&self.sentence());
        if printer.is_set() || printer.is_filtered() {
            let output = printer.start_flat(&COLUMNS, ANY)?;
            output.document(&self.document(None))?;
        }
        printer.flush()
    }

    /// Returns the summary in a sentence, for a log.
    fn sentence(&self) -> String {
        let total = self.total();
        let all = plural(self.rows.all().len(), "row", "rows");
        let mut text = format!("{} of {all} created", count(total.created));
        let others = [
            (total.found, "found"),
            (total.rejected, "rejected"),
            (total.unknown, "unknown"),
            (total.left, "left"),
            (self.rows.invalid(), "invalid"),
        ];
        for (rows, what) in others {
            if rows > 0 {
                text += &format!(", {} {what}", count(rows));
            }
        }
        text
    }

    fn table(&self) -> Table {
        let (run, total) = (self.run, self.total());
        let invalid = self.rows.invalid();
        let lines = [
            ("created", Some(run.created), total.created, GREEN, BOLD),
            ("found", Some(run.found), total.found, GREEN, BOLD),
            ("rejected", Some(run.rejected), total.rejected, RED, RED),
            ("unknown", Some(run.unknown), total.unknown, YELLOW, YELLOW),
            ("invalid", None, invalid, RED, RED),
            ("left", None, total.left, YELLOW, YELLOW),
        ];
        let mut rows = Vec::new();
        for (name, run, total, run_style, total_style) in lines {
            if total > 0 || !["found", "invalid"].contains(&name) {
                let run = run.map_or(Cell::new(""), |run| amount(run, run_style));
                rows.push(vec![Cell::new(name), run, amount(total, total_style)]);
            }
        }
        let head = vec![
            Head::new("ROWS"),
            Head::new("THIS RUN").amount().dropped(1),
            Head::new("TOTAL").amount(),
        ];
        Table::new(head, rows)
    }

    /// Returns an error if rows were rejected, are unknown or invalid. `doubt` says why the list of
    /// pets did not settle them.
    pub(super) fn leftovers(&self, context: &Context, doubt: Option<&str>) -> Result<()> {
        let total = self.total();
        let mut parts = Vec::new();
        for (rows, what, one, many) in [
            (total.rejected, "rejected", "was", "were"),
            (total.unknown, "unknown", "is", "are"),
            (self.rows.invalid(), "invalid", "is", "are"),
            (total.left, "left", "is", "are"),
        ] {
            let subject = match parts.is_empty() {
                _ if rows == 0 => continue,
                true => plural(rows, "row", "rows"),
                false => count(rows),
            };
            let verb = if rows == 1 { one } else { many };
            parts.push(format!("{subject} {verb} {what}"));
        }
        if parts.is_empty() {
            return Ok(());
        }
        let mut list = Vec::new();
        match self.files.rejects() {
            Some(path) if total.rejected + self.rows.invalid() > 0 => {
                list.push(format!("the rejected rows are in {}", path.display()));
            }
            _ => {
                list.extend(self.lines(|state| match state {
                    RowState::Rejected(why) => Some(why),
                    _ => None,
                }));
                list.extend(self.rows.problems());
            }
        }
        list.extend(self.lines(RowState::unknown));
        if let Some(doubt) = doubt {
            list.push(format!("the list of pets proves nothing: {doubt}"));
        }
        let mut failure = Failure::new(Kind::Partial, parts.join("; "));
        if self.rows.invalid() > 0 {
            failure.fields.insert("rows".to_owned(), self.rows.faults());
        }
        failure.list = list;
        failure.hint = self.hint(context);
        Err(failure.into())
    }

    /// Returns what to do about rows that are not created. Without a journal, the command would
    /// create all pets again.
    fn hint(&self, context: &Context) -> Option<String> {
        self.journal.as_ref()?;
        let total = self.total();
        if total.unknown > 0 {
            let command = typed(context.args(), Change::Check);
            return Some(format!("`{command}` finds out which of them were created"));
        }
        if total.rejected > 0 && self.files.rejects().is_none() {
            let command = typed(context.args(), Change::Continue);
            return Some(format!("`{command} --rejects FILE` writes them to a file"));
        }
        None
    }

    /// Returns a line for each row with a text, and the number of those that are not listed.
    fn lines(&self, text: impl Fn(&RowState) -> Option<&str>) -> Vec<String> {
        let mut lines = Vec::new();
        let mut more = 0;
        for (row, state) in self.rows.all().iter().zip(self.state.rows()) {
            match text(state) {
                Some(text) if lines.len() < MAX_LISTED => {
                    lines.push(format!("{}: {text}", row.place()));
                }
                Some(_) => more += 1,
                None => {}
            }
        }
        if more > 0 {
            lines.push(format!("{} more", count(more)));
        }
        lines
    }

    /// Prints what a run would do, and how long the known quotas make it wait.
    pub(super) fn print_plan(&self, context: &Context, limits: &RateLimits) -> Result<()> {
        let clock = context.connector().clock();
        let left = self.total().left;
        let now = limits.service_time.unwrap_or_else(|| clock.now());
        let wait = longest_wait(limits, left as u64, now);
        let printer = context.printer();
        if printer.is_set() || printer.is_filtered() {
            let forecast = wait.map(
                |(quota, wait)| json!({ "completeAt": instant(now + wait), "limitedBy": quota }),
            );
            let output = printer.start_flat(&COLUMNS, ANY)?;
            return output.document(&self.document(forecast.as_ref()));
        }
        let clock = clock.clone().local(context.system().time_zone());
        let text = self.plan(left, wait, &clock);
        printer.print(&format!("{}\n", escape::line(&text)))
    }

    fn plan(&self, left: usize, wait: Option<(Option<Quota>, Duration)>, clock: &Clock) -> String {
        let name = self.rows.name();
        let rows = match left {
            0 => return format!("{name} has nothing to send"),
            left => plural(left, "row", "rows"),
        };
        let text = format!("{name} has {rows} to send");
        match wait {
            None => format!("{text}; `petstore limits --refresh` asks for the quotas"),
            Some((None, _)) => format!("{text}, within the known quotas"),
            Some((Some(quota), wait)) => {
                let quota = quota_name(quota);
                let at = clock.minute(clock.now() + wait);
                format!(
                    "{text}; the {quota} lets the last go in {}, {at}",
                    duration(wait)
                )
            }
        }
    }
}

fn amount(number: usize, style: Style) -> Cell {
    match number {
        0 => Cell::new("0"),
        number => Cell::new(count(number)).styled(style),
    }
}

/// Returns how long the known quotas make the last of some requests wait, and which quota does;
/// `None` if no quota is known.
fn longest_wait(
    limits: &RateLimits,
    requests: u64,
    now: SystemTime,
) -> Option<(Option<Quota>, Duration)> {
    let mut longest = None;
    let current = limits.windows.iter().map(|window| {
        let reset = window.reset.duration_since(now).unwrap_or_default();
        (window, window.remaining, reset)
    });
    // The reset of the others has passed, so the next request begins a full one.
    let is_current = |quota| limits.windows.iter().any(|window| window.quota == quota);
    let ended = limits.ended.iter().filter(|ended| !is_current(ended.quota));
    let ended = ended.map(|window| {
        (
            window,
            window.limit,
            window.quota.period().unwrap_or_default(),
        )
    });
    for (window, left, reset) in current.chain(ended) {
        let (_, before) = *longest.get_or_insert((None, Duration::ZERO));
        let wait = wait_for(window, left, reset, requests);
        if wait > before {
            longest = Some((Some(window.quota), wait));
        }
    }
    longest
}

/// Returns how long the last of some requests waits for a quota of which so much is left.
fn wait_for(window: &QuotaWindow, left: u64, reset: Duration, requests: u64) -> Duration {
    let beyond = requests.saturating_sub(left);
    if beyond == 0 || window.limit == 0 {
        return Duration::ZERO;
    }
    let periods = u32::try_from((beyond - 1) / window.limit).unwrap_or(u32::MAX);
    let period = window.quota.period().unwrap_or_default();
    reset.saturating_add(period.saturating_mul(periods))
}
