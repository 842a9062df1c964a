//! The reports of an import: dry run, summary and error.

use std::fs::File;
use std::path::PathBuf;

use petstore_client::rate_limit::{BlockReason, Quota, RateLimits};
use serde_json::{Value, json};

use super::forecast::Quotas;
use super::input::Input;
use super::journal::{Record, RowState, State, Totals};
use super::journal::{load, unusable};
use super::{Import, Job, UnknownAction, address, plural, typed};
use crate::context::Context;
use crate::error::{CliError, Failure, Kind};
use crate::output::{Cell, Head, Output, Table};
use crate::screen::{BOLD, GREEN, RED, YELLOW};
use crate::session::Purpose;
use crate::session::words::limit_name;
use crate::time::count;

/// The maximum number of listed rejected rows.
const MAX_LISTED: usize = 3;

impl Import {
    /// Returns the summary for programs.
    fn document(
        &self,
        input: &Input,
        (run, found): (Totals, usize),
        total: Totals,
        forecast: Option<&Value>,
    ) -> Value {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let Totals {
            created,
            rejected,
            unknown,
            ..
        } = run;
        json!({
            "file": input.name,
            "rows": input.rows.len(),
            "complete": total.created == input.rows.len(),
            "run": { "created": created, "found": found, "rejected": rejected, "unknown": unknown },
            "total": total,
            "journal": path(&self.journal),
            "rejects": path(&self.rejects),
            "unknownFile": path(&self.unknown_file),
            "forecast": forecast,
        })
    }

    /// Shows what a run would do. Needs no key and no network, because the quotas come from earlier
    /// responses.
    pub(super) async fn plan(
        &self,
        context: &mut Context,
        output: Output,
        input: &Input,
    ) -> Result<(), CliError> {
        let mut state = State::default();
        if let Some(path) = self.journal.as_ref().filter(|path| path.is_file()) {
            let file = File::open(path).map_err(unusable)?;
            state = load(&file, path, context)?;
        }
        let client = context.connector().connect(Purpose::CreatePet).await.ok();
        let base_url = client.as_ref().map(|client| address(context, client));
        let corrected = self.resume(context, input, &mut state, base_url.as_deref())?;
        state.apply(Record::Rows(RowState::Announced, corrected));
        if self.unknown == UnknownAction::Retry {
            let unknown = state.unknown();
            state.apply(Record::Rows(RowState::Announced, unknown));
        }
        let total = state.totals();
        let limits = match &client {
            Some(client) => client.synchronize_rate_limits().await,
            None => RateLimits::default(),
        };
        let now = limits
            .service_time
            .unwrap_or_else(|| context.connector().clock().now());
        let quotas = Quotas::new(&limits, now);
        let forecast = quotas.forecast(total.left);
        if !context.printer().is_table() {
            let forecast = forecast.map(|forecast| forecast.json(now));
            let run = Default::default();
            return output.document(&self.document(input, run, total, forecast.as_ref()));
        }
        let zone = context.system().time_zone();
        let clock = context.connector().clock().clone().local(zone);
        let rows = |number| plural(number, "row", "rows");
        let mut pairs = vec![
            (
                "file",
                format!("{}: {}, all valid", input.name, rows(input.rows.len())),
            ),
            ("to send", rows(total.left)),
            ("quotas", quotas.text()),
        ];
        pairs.extend(forecast.map(|forecast| ("forecast", forecast.text(&clock))));
        let end =
            forecast.map(|forecast| forecast.early_end(context.settings().values().max_wait()));
        match end {
            Some(Some((quota, end))) => {
                let (end, name) = (
                    clock.minute(clock.now() + end),
                    limit_name(BlockReason::Quota(quota)),
                );
                let hint = match quota {
                    Quota::Minute => "`--max-wait 1m` waits for the next minute",
                    _ => "`--max-wait 24h` waits for the next day; or run the command again then",
                };
                let text = format!("at this --max-wait the run ends at {end}, with the {name}");
                context.ui().note_with_hint(&text, Some(hint));
            }
            Some(None) => {}
            None => {
                let hint = "`petstore limits --refresh` asks for the quotas";
                context.ui().note_with_hint("no forecast", Some(hint));
            }
        }
        let text = context.printer().screen().pairs(&pairs);
        context.printer().print(&text)
    }
}

impl Job<'_> {
    pub(super) fn summarize(&mut self, output: Output) -> Result<(), CliError> {
        let (run, total) = (self.run, self.journal.state.totals());
        if !self.context.printer().is_table() {
            let run = (run, self.found);
            let document = self.import.document(&self.input, run, total, None);
            return output.document(&document);
        }
        let amount = |number: usize, style| match number {
            0 => Cell::new("0"),
            number => Cell::new(count(number)).styled(style),
        };
        let row = |name: &str, run, total| vec![Cell::new(name), run, total];
        let mut rows = vec![row(
            "created",
            amount(run.created, GREEN),
            amount(total.created, BOLD),
        )];
        if self.found > 0 {
            rows.push(row("found", amount(self.found, GREEN), Cell::new("")));
        }
        rows.extend([
            row(
                "rejected",
                amount(run.rejected, RED),
                amount(total.rejected, RED),
            ),
            row(
                "unknown",
                amount(run.unknown, YELLOW),
                amount(total.unknown, YELLOW),
            ),
            row("left", Cell::new(""), amount(total.left, YELLOW)),
        ]);
        let run = Head::new("THIS RUN").amount().dropped(1);
        let head = vec![Head::new("ROWS"), run, Head::new("TOTAL").amount()];
        let text = Table::new(head, rows).render(self.context.printer().screen());
        self.context.printer().print(&text)
    }

    /// Returns the result of the run, with a hint.
    pub(super) fn result(&self, sent: Result<(), CliError>) -> Result<(), CliError> {
        let Err(stop) = sent else {
            return self.leftovers();
        };
        let all = self.input.rows.len();
        let done = count(all - self.journal.state.totals().left);
        let progress = format!("{done} of {}", plural(all, "row", "rows"));
        let resume = self.import.journal.as_ref();
        // After a retry, another one could send rows twice.
        let again = match self.import.unknown {
            UnknownAction::Retry => UnknownAction::Skip,
            action => action,
        };
        let resume = resume.map(|_| format!("`{}` continues", typed(self.context, again)));
        let failure = match stop {
            CliError::Failure(mut failure)
                if matches!(failure.kind, Kind::Interrupted | Kind::Terminated) =>
            {
                failure.message = format!("{} after {progress}", failure.message);
                Failure {
                    hint: resume,
                    ..*failure
                }
            }
            CliError::Client(error) => {
                let mut failure = self.context.connector().explain_client(&error);
                if let Some(blocked) = error.blocked() {
                    let longer = crate::time::wait_option(blocked.remaining);
                    let hint =
                        format!("run the command again then, or now with `--max-wait {longer}`");
                    failure.message = format!("{progress} done; {}", failure.message);
                    failure.hint = Some(hint);
                } else if failure.hint.is_none() || failure.kind != Kind::Key {
                    failure.message = format!("stopped after {progress}: {}", failure.message);
                    failure.hint = resume.or(failure.hint);
                }
                failure
            }
            error => return Err(error),
        };
        Err(CliError::Failure(Box::new(failure)))
    }

    /// Returns an error if rows were rejected or are unknown.
    fn leftovers(&self) -> Result<(), CliError> {
        let Import {
            rejects,
            unknown_file,
            journal,
            ..
        } = self.import;
        let Totals {
            rejected, unknown, ..
        } = self.journal.state.totals();
        let refused = format!("{} rejected", plural(rejected, "row was", "rows were"));
        let message = match (rejected, unknown) {
            (0, 0) => return Ok(()),
            (_, 0) => refused,
            (0, _) => format!("{} unknown", plural(unknown, "row is", "rows are")),
            _ => format!("{refused}; {} unknown", plural(unknown, "is", "are")),
        };
        let mut list = Vec::new();
        match rejects {
            Some(path) if rejected > 0 => {
                list.push(format!("rejected rows are in {}", path.display()));
            }
            _ => {
                let rows = self.journal.state.rows.iter().zip(&self.input.rows);
                let reasons = rows.filter_map(|(state, row)| match state {
                    RowState::Rejected(reason) => Some(format!("{}: {reason}", row.place)),
                    _ => None,
                });
                list.extend(reasons.take(MAX_LISTED));
                if rejected > MAX_LISTED {
                    list.push(format!("{} more", count(rejected - MAX_LISTED)));
                }
            }
        }
        if let (Some(path), 1..) = (unknown_file, unknown) {
            list.push(format!("unknown rows are in {}", path.display()));
        }
        let error = CliError::new(Kind::Partial, message).list(list);
        let command = typed(self.context, UnknownAction::Check);
        Err(match (unknown, rejects) {
            (1.., _) if journal.is_some() => {
                error.hint(format!("`{command}` checks the unknown rows"))
            }
            (0, None) => error.hint("`--rejects FILE` writes the rejected rows"),
            _ => error,
        })
    }
}
