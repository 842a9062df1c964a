//! The reports of an import: dry run, summary and result.

use std::path::Path;
use std::time::Duration;

use anstyle::Style;
use petstore_client::Client;
use petstore_client::limits::RateLimits;
use serde_json::{Value, json};

use super::command::{Change, typed};
use super::forecast::{Forecast, Quotas};
use super::input::Input;
use super::journal::{self, RowState, RunTotals, State, Totals};
use super::row_files::RowFiles;
use crate::context::Context;
use crate::error::{CliError, Kind, Result};
use crate::output::{ANY, Cell, Head, Output, Table};
use crate::screen::{BOLD, GREEN, RED, YELLOW};
use crate::session::words::{QuotaWords, quota_name};
use crate::settings::Seconds;
use crate::time::{Clock, count, plural};

/// The maximum number of listed rejected rows, and of uncertain ones.
const MAX_LISTED: usize = 3;

/// A longer wait is not only for `--max-wait`: the command can be run again after it.
const MAX_PATIENCE: Duration = Duration::from_secs(6 * 3_600);

/// The columns of a summary in CSV and TSV.
const COLUMNS: [&str; 11] = [
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
    "total.uncertain",
];

/// Starts the output of a summary.
pub(super) fn output(context: &Context) -> Result<Output> {
    context.printer().start_flat(&COLUMNS, ANY)
}

/// Describes how many rows are done: `12 of 30 rows`. Unknown rows are not done if the run checks
/// them.
pub(super) fn progress(input: &Input, state: &State, checks_unknown: bool) -> String {
    let all = input.rows().len();
    let totals = state.totals();
    let mut to_do = totals.left;
    if checks_unknown {
        to_do += totals.unknown;
    }
    let done = count(all - to_do);
    format!("{done} of {}", plural(all, "row", "rows"))
}

/// Writes a note if there is nothing to send.
pub(super) fn nothing_to_send(context: &Context, input: &Input, state: &State) {
    let name = input.name();
    let totals = state.totals();
    if input.rows().is_empty() {
        context.ui().note(&format!("{name} has no rows"));
    } else if totals.left == 0 && state.run().found == 0 {
        let mut text = "nothing to send".to_owned();
        if let Some(at) = state.imported()
            && totals.unknown == 0
        {
            let at = context.connector().clock().instant(at);
            text += &format!("; {name} was imported before ({at})");
        }
        context.ui().note(&text);
    }
}

fn amount(number: usize, style: Style) -> Cell {
    match number {
        0 => Cell::new("0"),
        number => {
            let number = count(number);
            Cell::new(number).styled(style)
        }
    }
}

/// What an import did.
pub(super) struct Summary<'a> {
    input: &'a Input,
    state: &'a State,
    journal: Option<&'a Path>,
    files: &'a RowFiles,
}

impl<'a> Summary<'a> {
    pub(super) fn new(
        input: &'a Input,
        state: &'a State,
        journal: Option<&'a Path>,
        files: &'a RowFiles,
    ) -> Self {
        Self {
            input,
            state,
            journal,
            files,
        }
    }

    /// Returns the summary for programs.
    fn document(&self, forecast: Option<&Value>) -> Value {
        let path = |path: Option<&Path>| path.map(|path| path.display().to_string());
        let total = self.state.totals();
        json!({
            "file": self.input.name(),
            "rows": self.input.rows().len(),
            "complete": total.created == self.input.rows().len(),
            "run": self.state.run(),
            "total": total,
            "uncertain": self.uncertain_rows(),
            "journal": path(self.journal),
            "rejects": path(self.files.rejects()),
            "unknownFile": path(self.files.unknown()),
            "createdFile": path(self.files.created()),
            "forecast": forecast,
        })
    }

    /// Returns the uncertain rows, with the pets that may be theirs.
    fn uncertain_rows(&self) -> Vec<Value> {
        let mut uncertain = Vec::new();
        for (row, state) in self.input.rows().iter().zip(self.state.rows()) {
            if let RowState::Uncertain(pets) = state {
                let place = row.place();
                uncertain.push(json!({ place.unit(): place.number(), "pets": pets }));
            }
        }
        uncertain
    }

    /// Prints the summary.
    pub(super) fn print(&self, context: &Context, output: Output) -> Result<()> {
        if context.printer().is_table() {
            let text = self.table().render(context.printer().screen());
            return context.printer().print(&text);
        }
        output.document(&self.document(None))?;
        context.ui().note(&self.sentence());
        Ok(())
    }

    /// Returns the summary in a sentence, for a log.
    fn sentence(&self) -> String {
        let Totals {
            created,
            rejected,
            unknown,
            uncertain,
            left,
        } = self.state.totals();
        let all = plural(self.input.rows().len(), "row", "rows");
        let created = count(created);
        let mut text = format!("{created} of {all} created");
        let others = [
            (self.state.run().found, "found"),
            (rejected, "rejected"),
            (unknown - uncertain, "unknown"),
            (uncertain, "uncertain"),
            (left, "left"),
        ];
        for (rows, what) in others {
            if rows > 0 {
                let rows = count(rows);
                text += &format!(", {rows} {what}");
            }
        }
        text
    }

    fn table(&self) -> Table {
        let RunTotals {
            created,
            found,
            rejected,
            unknown,
        } = self.state.run();
        let total = self.state.totals();
        let none = || Cell::new("");
        let mut rows = Vec::new();
        let mut row = |name, run, total| {
            rows.push(vec![Cell::new(name), run, total]);
        };
        row(
            "created",
            amount(created, GREEN),
            amount(total.created, BOLD),
        );
        if found > 0 {
            row("found", amount(found, GREEN), none());
        }
        row(
            "rejected",
            amount(rejected, RED),
            amount(total.rejected, RED),
        );
        let total_unknown = total.unknown - total.uncertain;
        row(
            "unknown",
            amount(unknown, YELLOW),
            amount(total_unknown, YELLOW),
        );
        if total.uncertain > 0 {
            let uncertain = amount(total.uncertain, YELLOW);
            row("uncertain", none(), uncertain);
        }
        row("left", none(), amount(total.left, YELLOW));
        let head = vec![
            Head::new("ROWS"),
            Head::new("THIS RUN").amount().dropped(1),
            Head::new("TOTAL").amount(),
        ];
        Table::new(head, rows)
    }

    /// Returns an error if rows were rejected or are unknown. `doubt` says why they stay unknown.
    pub(super) fn leftovers(&self, context: &Context, doubt: Option<String>) -> Result<()> {
        let totals = self.state.totals();
        let unknown = totals.unknown - totals.uncertain;
        let mut parts = Vec::new();
        for (rows, what, is_past) in [
            (totals.rejected, "rejected", true),
            (unknown, "unknown", false),
            (totals.uncertain, "uncertain", false),
        ] {
            let verb = match (is_past, rows) {
                (_, 0) => continue,
                (true, 1) => "was",
                (true, _) => "were",
                (false, 1) => "is",
                (false, _) => "are",
            };
            let rows = match parts.is_empty() {
                true => plural(rows, "row", "rows"),
                false => count(rows),
            };
            parts.push(format!("{rows} {verb} {what}"));
        }
        if parts.is_empty() {
            return Ok(());
        }
        let is_doubtful = doubt.is_some();
        let mut list = self.rejected_lines();
        list.extend(self.unknown_lines());
        list.extend(doubt);
        let error = CliError::new(Kind::Partial, parts.join("; ")).list(list);
        Err(error.hint_if(self.hint(context, is_doubtful)))
    }

    /// Returns what to do about rows that are not created.
    fn hint(&self, context: &Context, is_doubtful: bool) -> Option<String> {
        let totals = self.state.totals();
        let can_continue = self.journal.is_some();
        if totals.unknown == 0 {
            if self.files.rejects().is_some() {
                return None;
            }
            let hint = "`--rejects FILE` writes the rejected rows";
            return Some(hint.to_owned());
        }
        if !can_continue {
            return None;
        }
        if totals.uncertain > 0 {
            let command = typed(context.args(), Change::Accept);
            return Some(format!(
                "look at these pets; `{command}` takes them as created"
            ));
        }
        if is_doubtful {
            let list = "`--unknown-file FILE` lists these rows";
            let retry = "look for their pets before `--unknown retry` sends them again";
            return Some(format!("{list}; {retry}"));
        }
        let command = typed(context.args(), Change::Check);
        Some(format!("`{command}` checks the unknown rows"))
    }

    fn rejected_lines(&self) -> Vec<String> {
        let rejected = self.state.totals().rejected;
        if rejected == 0 {
            return Vec::new();
        }
        if let Some(path) = self.files.rejects() {
            return vec![format!("rejected rows are in {}", path.display())];
        }
        self.lines(|state| match state {
            RowState::Rejected(reason) => Some(reason.clone()),
            _ => None,
        })
    }

    fn unknown_lines(&self) -> Vec<String> {
        let mut lines = self.lines(|state| match state {
            RowState::Uncertain(pets) => Some(may_be(pets)),
            _ => None,
        });
        if let Some(path) = self.files.unknown()
            && self.state.totals().unknown > 0
        {
            lines.push(format!("unknown rows are in {}", path.display()));
        }
        lines
    }

    /// Returns a line for each row with a text, and the number of those that are not listed.
    fn lines(&self, text: impl Fn(&RowState) -> Option<String>) -> Vec<String> {
        let mut lines = Vec::new();
        let mut more = 0;
        for (row, state) in self.input.rows().iter().zip(self.state.rows()) {
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
}

/// Names the pets of an uncertain row: `may be pet 17 or 21`.
fn may_be(pets: &[i64]) -> String {
    let pets: Vec<_> = pets.iter().map(ToString::to_string).collect();
    format!("may be pet {}", pets.join(" or "))
}

/// Reads the journal of a dry run, if there is one.
pub(super) fn read_journal(context: &Context, path: Option<&Path>) -> Result<State> {
    match path {
        Some(path) if path.is_file() => journal::read(path, context),
        _ => Ok(State::default()),
    }
}

/// Shows what a run would do. Sends nothing to the service: the quotas come from the shared limits of the
/// key, if there is one.
pub(super) async fn plan(
    context: &Context,
    client: Option<&Client>,
    summary: Summary<'_>,
    output: Output,
) -> Result<()> {
    let left = summary.state.totals().left;
    let limits = match client {
        Some(client) => client.limits().exchange().await,
        None => RateLimits::default(),
    };
    let now = limits.service_time;
    let now = now.unwrap_or_else(|| context.connector().clock().now());
    let quotas = Quotas::new(&limits, now);
    let forecast = quotas.forecast(left);
    if !context.printer().is_table() {
        let max_wait = context.settings().values().max_wait();
        let forecast = forecast.map(|forecast| forecast.json(now, max_wait));
        return output.document(&summary.document(forecast.as_ref()));
    }
    let rows = |number| plural(number, "row", "rows");
    let input = summary.input;
    let all = rows(input.rows().len());
    let mut pairs = vec![
        ("file", format!("{}: {all}, all valid", input.name())),
        ("to send", rows(left)),
        ("quotas", quotas.text()),
    ];
    let zone = context.system().time_zone();
    let clock = context.connector().clock().clone().local(zone);
    if let Some(forecast) = forecast {
        pairs.push(("forecast", forecast.text(&clock)));
    }
    note_end(context, &clock, forecast);
    let text = context.printer().screen().pairs(&pairs);
    context.printer().print(&text)
}

/// Returns a hint that names a `--max-wait` after which a quota has reset.
fn wait_hint(words: &QuotaWords) -> Option<String> {
    let (period, name) = (words.quota().period()?, words.name());
    let longest = Seconds::<0>(period);
    let hint = format!("`--max-wait {longest}` waits for the next {name}");
    Some(match period > MAX_PATIENCE {
        true => format!("{hint}; or run the command again then"),
        false => hint,
    })
}

/// Describes when a short `--max-wait` ends the run, or says that no forecast exists.
fn note_end(context: &Context, clock: &Clock, forecast: Option<Forecast>) {
    let Some(forecast) = forecast else {
        let hint = "`petstore limits --refresh` asks for the quotas";
        context.ui().note_with_hint("no forecast", Some(hint));
        return;
    };
    let max_wait = context.settings().values().max_wait();
    let Some((quota, end)) = forecast.early_end(max_wait) else {
        return;
    };
    let end = clock.minute(clock.now() + end);
    let name = quota_name(quota);
    let hint = QuotaWords::of(quota).and_then(wait_hint);
    let text =
        format!("at this --max-wait the run ends at {end}: the wait for the {name} is longer");
    context.ui().note_with_hint(&text, hint.as_deref());
}
