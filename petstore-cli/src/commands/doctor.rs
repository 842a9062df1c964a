//! `petstore doctor`.

use std::path::Path;
use std::time::{Duration, SystemTime};

use petstore_client::{Client, RequestOptions};
use serde::Serialize;

use crate::context::{Context, Purpose};
use crate::error::{CliError, Kind};
use crate::escape;
use crate::explain::quota_left;
use crate::output::{ANY, Shape};
use crate::screen::{CYAN, DIM, GREEN, RED, YELLOW};
use crate::settings::config_file::ConfigFile;
use crate::settings::credentials;
use crate::time;

/// `Date` is truncated to seconds, and the response takes time.
const MAX_CLOCK_ERROR: Duration = Duration::from_secs(5);

const CHECKS: Shape = Shape {
    noun: "checks",
    fields: &["check", "result", "found", "hint"],
    ..ANY
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    Ok,
    Warning,
    Failed,
    /// The check was not possible.
    Skipped,
}

#[derive(Serialize)]
struct Check {
    check: &'static str,
    result: Outcome,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The kind of failure, which determines the exit code.
    #[serde(skip)]
    kind: Option<Kind>,
}

impl Check {
    fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            check,
            result: Outcome::Ok,
            found: found.into(),
            hint: None,
            kind: None,
        }
    }

    fn warning(check: &'static str, found: impl Into<String>, hint: &str) -> Self {
        Self {
            result: Outcome::Warning,
            hint: Some(hint.to_owned()),
            ..Self::ok(check, found)
        }
    }

    /// Creates a check from its result. A rate limit is not a failure.
    fn of(check: &'static str, found: Result<String, CliError>, context: &Context) -> Self {
        match found.map_err(|error| context.facts.explain(error)) {
            Ok(found) => Self::ok(check, found),
            Err(Ok(failure)) => {
                let is_limit = matches!(failure.kind, Kind::RateLimited | Kind::Banned);
                let result = if is_limit {
                    Outcome::Warning
                } else {
                    Outcome::Failed
                };
                let kind = Some(failure.kind).filter(|_| !is_limit);
                Self {
                    result,
                    hint: failure.hint,
                    kind,
                    ..Self::ok(check, failure.message)
                }
            }
            Err(Err(_)) => Self {
                result: Outcome::Skipped,
                ..Self::ok(check, "not checked")
            },
        }
    }
}

pub(crate) async fn run(context: &mut Context) -> Result<(), CliError> {
    let mut output = context.output(CHECKS)?;
    let checks = checks(context).await;
    let is_asked_for = context.options.format.is_some() || context.options.jq.is_some();
    if is_asked_for && !context.options.is_table() {
        output.rows(&checks)?;
        context.finish(output)?;
    } else {
        show(context, &checks)?;
    }
    match checks.iter().find_map(|check| check.kind) {
        Some(kind) => Err(CliError::Silent(kind.code())),
        None => Ok(()),
    }
}

async fn checks(context: &mut Context) -> Vec<Check> {
    let mut checks = vec![config(context)];
    if !context.args.wants_mock() {
        let settings = &context.settings;
        let url = settings
            .base_url()
            .map(|url| format!("{url}{}", settings.source("base_url")));
        let key = credentials::require(settings, &context.env).map(|key| key.source);
        checks.push(Check::of("base URL", url, context));
        checks.push(Check::of("API key", key, context));
    }
    match context.client(Purpose::Read).await {
        Ok(client) => service(context, &client, &mut checks).await,
        // A failed check above prevents the request.
        Err(_) if checks.iter().any(|check| check.result == Outcome::Failed) => {
            checks.push(Check {
                result: Outcome::Skipped,
                ..Check::ok("service", "not checked")
            });
        }
        Err(error) => checks.push(Check::of("service", Err(error), context)),
    }
    checks
}

fn config(context: &mut Context) -> Check {
    const NAME: &str = "config";

    if context.args.wants_mock() {
        return Check::ok(NAME, "none needed for a built-in mock server");
    }
    let problem = context.settings.problem.take();
    if let Some(problem) = problem.or_else(|| context.settings.require_profile().err()) {
        return Check::of(NAME, Err(problem), context);
    }
    let Some(path) = ConfigFile::path(&context.env.dirs) else {
        let hint = "set HOME or XDG_CONFIG_HOME to keep profiles and keys";
        return Check::warning(NAME, "no configuration folder", hint);
    };
    let shown = context.env.shown(&path);
    match path.exists() {
        true => Check::ok(
            NAME,
            format!("{shown}, profile {}", context.settings.profile),
        ),
        false => Check::ok(NAME, format!("no file {shown}")),
    }
}

/// Requests one pet, and checks the response. A refusal also shows the clock and the limit.
async fn service(context: &Context, client: &Client, checks: &mut Vec<Check>) {
    let options = RequestOptions::new()
        .max_wait(Duration::ZERO)
        .max_attempts(1);
    let started = tokio::time::Instant::now();
    let asked = client.pets().list().limit(1).options(&options).send().await;
    let elapsed = started.elapsed().as_millis();
    let (date, quota) = match &asked {
        Ok(page) => (page.meta().date(), page.meta().quota()),
        Err(error) => (error.date(), error.quota()),
    };
    let found = asked.map_err(CliError::from).map(|page| {
        format!(
            "{} in {elapsed} ms, key accepted",
            page.meta().status().as_u16()
        )
    });
    checks.push(Check::of("service", found, context));
    checks.extend(date.map(|date| clock(date, context.facts.clock.now())));
    let limits = client.rate_limits();
    let known = limits
        .windows
        .iter()
        .min_by_key(|window| window.remaining)
        .copied();
    if let Some(quota) = quota.or(known) {
        let now = date
            .or(limits.service_time)
            .unwrap_or_else(|| context.facts.clock.now());
        let left = quota.reset.duration_since(now).unwrap_or_default();
        let resets = context.facts.clock.until(quota.reset, left);
        let found = format!("{}, resets {resets}", quota_left(&quota));
        let hint = "wait until then, or let commands wait: `--max-wait`";
        checks.push(match quota.remaining {
            0 => Check::warning("rate limits", found, hint),
            _ => Check::ok("rate limits", found),
        });
    }
    if let Some(store) = limits.shared {
        let place = context.env.shown(Path::new(&*store.location));
        let hint = "fix it, or set `--limits-store off`";
        checks.push(match (store.problem, store.members) {
            (Some(problem), _) => {
                let found = format!("{place}: {problem}; limits are not shared");
                Check::warning("limits file", found, hint)
            }
            (None, 0 | 1) => Check::ok("limits file", place),
            (None, n) => Check::ok("limits file", format!("{place}, shared by {n} processes")),
        });
    }
}

fn clock(service: SystemTime, own: SystemTime) -> Check {
    let (apart, side) = match own.duration_since(service) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    };
    let found = format!("{} {side} the service", time::duration(apart));
    if apart <= MAX_CLOCK_ERROR {
        return Check::ok("clock", found);
    }
    Check::warning(
        "clock",
        found + "; times shown may be off",
        "set this machine's clock",
    )
}

/// Writes the checks for people.
fn show(context: &mut Context, checks: &[Check]) -> Result<(), CliError> {
    let screen = context.options.screen.clone();
    let marks = if screen.unicode { 1 } else { 4 };
    let mut pairs = Vec::new();
    for Check {
        check,
        result,
        found,
        hint,
        ..
    } in checks
    {
        let (mark, style) = match result {
            Outcome::Ok => ("✓", GREEN),
            Outcome::Warning => ("!", YELLOW),
            Outcome::Failed => ("✗", RED),
            Outcome::Skipped => ("–", DIM),
        };
        let mark = screen.paint(style, format!("{:<marks$}", screen.symbol(mark)));
        pairs.push((format!("{mark} {check}"), escape::line(found).into_owned()));
        let label = screen.paint(CYAN, "hint:");
        let hint = hint
            .as_ref()
            .map(|hint| format!("{label} {}", escape::line(hint)));
        pairs.extend(hint.map(|hint| (String::new(), hint)));
    }
    let mut text = screen.pairs(&pairs);
    let failed: Vec<_> = checks.iter().filter(|check| check.kind.is_some()).collect();
    match failed.as_slice() {
        [] => {}
        [one] => text += &format!("1 problem: {}\n", one.check),
        [first, ..] => text += &format!("{} problems; first: {}\n", failed.len(), first.check),
    }
    context.print(&text)
}
