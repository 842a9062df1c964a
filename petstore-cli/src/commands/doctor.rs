//! `petstore doctor`.

use std::path::Path;
use std::time::{Duration, SystemTime};

use petstore_client::rate_limit::{QuotaWindow, SharedStatus};
use petstore_client::{Client, RequestOptions};
use serde::Serialize;

use crate::context::{Context, READS};
use crate::error::{CliError, Failure, Kind};
use crate::escape;
use crate::explain::quota_left;
use crate::output::{ANY, Shape};
use crate::screen::{CYAN, DIM, GREEN, RED, YELLOW};
use crate::settings::config_file::ConfigFile;
use crate::settings::credentials;
use crate::time;

/// A `Date` is cut to the second, and takes its time.
const MAX_CLOCK_ERROR: Duration = Duration::from_secs(5);

const CHECKS: Shape =
    Shape { noun: "checks", fields: &["check", "result", "found", "hint"], ..ANY };

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    Ok,
    Warning,
    Failed,
    /// It could not be checked.
    Skipped,
}

#[derive(Serialize)]
struct Check {
    check: &'static str,
    result: Outcome,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Why it failed, which decides the exit code.
    #[serde(skip)]
    kind: Option<Kind>,
}

impl Check {
    fn new(check: &'static str, result: Outcome, found: impl Into<String>) -> Self {
        Self { check, result, found: found.into(), hint: None, kind: None }
    }

    fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, Outcome::Ok, found)
    }

    fn warning(check: &'static str, found: impl Into<String>, hint: &str) -> Self {
        Self { hint: Some(hint.to_owned()), ..Self::new(check, Outcome::Warning, found) }
    }

    fn failed(check: &'static str, failure: Failure) -> Self {
        let Failure { message, hint, kind, .. } = failure;
        Self { hint, kind: Some(kind), ..Self::new(check, Outcome::Failed, message) }
    }

    /// Returns a check that succeeded with what was found, or failed with an error.
    fn of(check: &'static str, found: Result<String, CliError>, context: &Context) -> Self {
        match found.map_err(|error| context.facts.explain(error)) {
            Ok(found) => Self::ok(check, found),
            Err(Ok(failure)) => Self::failed(check, failure),
            Err(Err(_)) => Self::new(check, Outcome::Skipped, "not checked"),
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
        let url = settings.base_url().map(|url| format!("{url}{}", settings.source("base_url")));
        let key = credentials::require(settings, &context.env).map(|key| key.source);
        checks.push(Check::of("base URL", url, context));
        checks.push(Check::of("API key", key, context));
    }
    match context.client(READS).await {
        Ok(client) => checks.extend(service(context, &client).await),
        // What prevents the request has been listed.
        Err(_) if checks.iter().any(|check| check.result == Outcome::Failed) => {
            checks.push(Check::new("service", Outcome::Skipped, "not asked"));
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
    let problem = problem.or_else(|| context.settings.require_profile().err());
    if let Some(problem) = problem {
        return Check::of(NAME, Err(problem), context);
    }
    let Some(path) = ConfigFile::path(&context.env.dirs) else {
        let hint = "set HOME or XDG_CONFIG_HOME to keep profiles and keys";
        return Check::warning(NAME, "no folder for it", hint);
    };
    let shown = context.env.shown(&path);
    Check::ok(
        NAME,
        match path.exists() {
            true => format!("{shown}, profile {}", context.settings.profile),
            false => format!("no file {shown}"),
        },
    )
}

/// Asks for one pet, and checks what comes of it.
async fn service(context: &Context, client: &Client) -> Vec<Check> {
    const NAME: &str = "service";

    let options = RequestOptions::new().max_wait(Duration::ZERO).max_attempts(1);
    let started = tokio::time::Instant::now();
    let asked = client.pets().list().limit(1).options(&options).send().await;
    let elapsed = started.elapsed().as_millis();
    let now = context.now();
    // A refusal is a response too, and shows the clock and the limit.
    let (first, date, quota) = match &asked {
        Ok(page) => {
            let found = format!("{} in {elapsed} ms, key accepted", page.meta().status().as_u16());
            (Check::ok(NAME, found), page.meta().date(), page.meta().quota())
        }
        Err(error) => {
            let failure = context.facts.client(error);
            let check = match error.is_rate_limited() {
                true => {
                    let hint = failure.hint.unwrap_or_default();
                    Check::warning(NAME, format!("not asked: {}", failure.message), &hint)
                }
                false => Check::failed(NAME, failure),
            };
            (check, error.date(), error.quota())
        }
    };
    let mut checks = vec![first];
    checks.extend(date.map(|date| clock(date, now)));
    let limits = client.rate_limits();
    let known = limits.windows.iter().min_by_key(|window| window.remaining).copied();
    let now = date.or(limits.service_time).unwrap_or(now);
    checks.extend(quota.or(known).map(|quota| rate_limit(context, quota, now)));
    checks.extend(limits.shared.as_ref().map(|store| shared_limits(context, store)));
    checks
}

fn clock(service: SystemTime, own: SystemTime) -> Check {
    const NAME: &str = "clock";

    let (apart, side) = match own.duration_since(service) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    };
    let found = format!("{} {side} the service", time::duration(apart));
    if apart <= MAX_CLOCK_ERROR {
        return Check::ok(NAME, found);
    }
    Check::warning(NAME, format!("{found}; times shown may be off"), "set this machine's clock")
}

fn rate_limit(context: &Context, quota: QuotaWindow, now: SystemTime) -> Check {
    const NAME: &str = "rate limits";

    let left = quota.reset.duration_since(now).unwrap_or_default();
    let resets = context.facts.clock.until(quota.reset, left);
    let found = format!("{}, resets {resets}", quota_left(&quota));
    if quota.remaining == 0 {
        return Check::warning(NAME, found, "wait until then, or let commands wait: `--max-wait`");
    }
    Check::ok(NAME, found)
}

fn shared_limits(context: &Context, store: &SharedStatus) -> Check {
    const NAME: &str = "limits file";

    let SharedStatus { location, members, problem, .. } = store;
    let place = context.env.shown(Path::new(location));
    if let Some(problem) = problem {
        let found = format!("{place}: {problem}; limits are not shared");
        return Check::warning(NAME, found, "make it usable, or set `--limits-store off`");
    }
    Check::ok(
        NAME,
        match members {
            0 | 1 => place,
            members => format!("{place}, shared by {members} processes"),
        },
    )
}

/// Writes the checks for people.
fn show(context: &mut Context, checks: &[Check]) -> Result<(), CliError> {
    let screen = context.options.screen.clone();
    let marks = if screen.unicode { 1 } else { 4 };
    let names = checks.iter().map(|check| check.check.len()).max().unwrap_or(0);
    let indent = marks + 1 + names + 2;
    for Check { check, result, found, hint, .. } in checks {
        let (mark, style) = match result {
            Outcome::Ok => ("✓", GREEN),
            Outcome::Warning => ("!", YELLOW),
            Outcome::Failed => ("✗", RED),
            Outcome::Skipped => ("–", DIM),
        };
        let mark = screen.paint(style, format!("{:<marks$}", screen.symbol(mark)));
        let found = screen.wrap(&escape::line(found), indent);
        context.print(&format!("{mark} {check:<names$}  {found}\n"))?;
        if let Some(hint) = hint {
            let label = screen.paint(CYAN, "hint:");
            let hint = screen.wrap(&escape::line(hint), indent + 6);
            context.print(&format!("{:indent$}{label} {hint}\n", ""))?;
        }
    }
    let failed: Vec<_> = checks.iter().filter(|check| check.kind.is_some()).collect();
    match failed.as_slice() {
        [] => Ok(()),
        [one] => context.print(&format!("1 problem: {}\n", one.check)),
        [first, ..] => {
            context.print(&format!("{} problems; first: {}\n", failed.len(), first.check))
        }
    }
}
