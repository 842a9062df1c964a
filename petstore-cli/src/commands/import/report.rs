//! What an import says: the plan of a dry run, the summary, and how it ended.

use std::path::PathBuf;

use petstore_client::RequestOptions;
use petstore_client::rate_limit::{Quota, RateLimits};
use serde_json::{Value, json};

use super::forecast::{forecast, windows};
use super::journal::{Journal, RowState, State};
use super::send::{Counts, Ended};
use super::{Import, PETS, Prepared, check_digests, unwritable};
use crate::context::Context;
use crate::env::Signal;
use crate::error::{CliError, Kind};
use crate::escape;
use crate::output::{Cell, Head, Output, Table};
use crate::screen::{BOLD, GREEN, RED, YELLOW};
use crate::time::{count, instant};

/// So many rejected rows are listed.
const MAX_LISTED: usize = 3;

impl Import {
    pub(super) fn summarize(
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
    pub(super) fn result(
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
    pub(super) async fn plan(
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
pub(super) fn nothing_to_send(context: &Context, prepared: &Prepared, state: &State) -> String {
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

/// Returns the command as it was typed.
fn typed(context: &Context) -> String {
    let args = context.env.args.iter().skip(1).map(|arg| escape::shell(&arg.to_string_lossy()));
    std::iter::once("petstore".to_owned()).chain(args).collect::<Vec<_>>().join(" ")
}
