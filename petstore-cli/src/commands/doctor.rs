//! `petstore doctor`.

use std::time::{Duration, SystemTime};

use petstore_client::rate_limit::{Quota, QuotaWindow, SharedStatus};
use petstore_client::{Client, Error as ClientError, RequestOptions};
use serde::Serialize;

use crate::context::{Context, READS};
use crate::error::{CliError, Failure, Kind};
use crate::escape;
use crate::output::Shape;
use crate::screen::{CYAN, DIM, GREEN, RED, YELLOW};
use crate::settings::config_file::ConfigFile;
use crate::settings::credentials;
use crate::settings::precedence::Settings;
use crate::time::{self, count};

/// A `Date` is cut to the second, and takes its time.
const MAX_CLOCK_ERROR: Duration = Duration::from_secs(5);

/// Find out what is wrong: configuration, key, service, clock and rate limits.
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {}

const CHECKS: Shape = Shape { noun: "checks", fields: &["check", "result", "found", "hint"] };

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
}

impl Doctor {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let mut output = context.output(CHECKS)?;
        let checks = checks(context).await;
        if context.options.is_table()
            || context.options.format.is_none() && context.options.jq.is_none()
        {
            show(context, &checks)?;
        } else {
            output.rows(&checks)?;
            context.finish(output)?;
        }
        match checks.iter().find_map(|check| check.kind) {
            Some(kind) => Err(CliError::Silent(kind.code())),
            None => Ok(()),
        }
    }
}

async fn checks(context: &mut Context) -> Vec<Check> {
    let mut checks = Vec::new();
    checks.push(config(context));
    if !context.args.wants_mock() {
        let url = context.settings.base_url();
        checks.push(match url {
            Ok(url) => Check::ok("base URL", url + &context.settings.source("base_url")),
            Err(error) => failed(context, "base URL", error),
        });
        checks.push(match credentials::require(&context.settings, &context.env) {
            Ok(key) => Check::ok("API key", key.source.shown(&context.env)),
            Err(error) => failed(context, "API key", error),
        });
    }
    match context.client(READS).await {
        Ok(client) => checks.extend(service(context, &client).await),
        // What prevents the request has been listed.
        Err(_) if checks.iter().any(|check| check.result == Outcome::Failed) => {
            checks.push(Check::new("service", Outcome::Skipped, "not asked"));
        }
        Err(error) => checks.push(failed(context, "service", error)),
    }
    checks
}

fn failed(context: &Context, check: &'static str, error: CliError) -> Check {
    match context.facts.explain(error) {
        Ok(failure) => Check::failed(check, failure),
        Err(_) => Check::new(check, Outcome::Skipped, "not checked"),
    }
}

/// Reads the configuration, and takes its settings over.
fn config(context: &mut Context) -> Check {
    const NAME: &str = "config";

    if context.args.wants_mock() {
        return Check::ok(NAME, "none needed for a built-in mock server");
    }
    let (profile, values) = (context.args.profile(), &context.args.values);
    let settings = ConfigFile::load(&context.env)
        .and_then(|config| Settings::resolve(profile, values, &context.env, config));
    match settings.and_then(|settings| settings.require_profile().map(|()| settings)) {
        Ok(settings) => context.replace_settings(settings),
        Err(error) => return failed(context, NAME, error),
    }
    let profile = &context.settings.profile.0;
    match ConfigFile::path(&context.env.dirs) {
        Some(path) if path.exists() => {
            Check::ok(NAME, format!("{}, profile {profile}", context.env.shown(&path)))
        }
        Some(path) => Check::ok(NAME, format!("no file {}", context.env.shown(&path))),
        None => Check::warning(
            NAME,
            "no folder for it",
            "set HOME or XDG_CONFIG_HOME to keep profiles and keys",
        ),
    }
}

/// Asks for one pet, and checks what comes of it.
async fn service(context: &Context, client: &Client) -> Vec<Check> {
    const NAME: &str = "service";

    let options = RequestOptions::new().max_wait(Duration::ZERO).max_attempts(1);
    let started = tokio::time::Instant::now();
    let asked = client.pets().list().limit(1).options(&options).send().await;
    let elapsed = started.elapsed().as_millis();
    let now = context.now();
    let (first, date, quota) = match asked {
        Ok(page) => {
            let found = format!("{} in {elapsed} ms, key accepted", page.meta().status().as_u16());
            (Check::ok(NAME, found), page.meta().date(), page.meta().quota())
        }
        // A refusal is a response, and shows the clock and the limit too.
        Err(error) => {
            let (date, quota) = (error.date(), error.quota());
            (refusal(context, NAME, &error), date, quota)
        }
    };
    let mut checks = vec![first];
    checks.extend(date.map(|date| clock(date, now)));
    // Where nothing was sent, the reason is known.
    let limits = client.rate_limits();
    let known = limits.windows.iter().min_by_key(|window| window.remaining).copied();
    let now = date.or(limits.service_time).unwrap_or(now);
    checks.extend(quota.or(known).map(|quota| rate_limit(context, quota, now)));
    checks.extend(limits.shared.as_ref().map(|store| shared_limits(context, store)));
    checks
}

fn refusal(context: &Context, name: &'static str, error: &ClientError) -> Check {
    let failure = context.facts.client(error);
    if error.is_rate_limited() {
        let hint = failure.hint.unwrap_or_default();
        return Check::warning(name, format!("not asked: {}", failure.message), &hint);
    }
    Check::failed(name, failure)
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

    let period = match quota.quota {
        Quota::Minute => " this minute",
        Quota::Day => " today",
        _ => "",
    };
    let (remaining, limit) = (count(quota.remaining), count(quota.limit));
    let left = quota.reset.duration_since(now).unwrap_or_default();
    let resets = context.facts.clock.until(quota.reset, left);
    let found = format!("{remaining} of {limit} left{period}, resets {resets}");
    if quota.remaining == 0 {
        return Check::warning(NAME, found, "wait until then, or let commands wait: `--max-wait`");
    }
    Check::ok(NAME, found)
}

fn shared_limits(context: &Context, store: &SharedStatus) -> Check {
    const NAME: &str = "limits file";

    let SharedStatus { location, members, problem, .. } = store;
    let place = context.env.shown(std::path::Path::new(location));
    match problem {
        None if *members <= 1 => Check::ok(NAME, place),
        None => Check::ok(NAME, format!("{place}, shared by {members} processes")),
        Some(problem) => Check::warning(
            NAME,
            format!("{place}: {problem}; limits are not shared"),
            "make it usable, or set `--limits-store off`",
        ),
    }
}

/// Writes the checks for people.
fn show(context: &mut Context, checks: &[Check]) -> Result<(), CliError> {
    let screen = context.options.screen.clone();
    let width = checks.iter().map(|check| check.check.len()).max().unwrap_or(0);
    for Check { check, result, found, hint, .. } in checks {
        let (mark, style) = match result {
            Outcome::Ok => ("✓", GREEN),
            Outcome::Warning => ("!", YELLOW),
            Outcome::Failed => ("✗", RED),
            Outcome::Skipped => ("–", DIM),
        };
        let mark = screen.symbol(mark);
        let space = if screen.unicode { 0 } else { 4 - mark.len() };
        let indent = width + 4 + if screen.unicode { 0 } else { 3 };
        let found = screen.wrap(&escape::line(found), indent);
        let mark = screen.paint(style, mark) + &" ".repeat(space);
        context.print(&format!("{mark} {check:<width$}  {found}\n"))?;
        if let Some(hint) = hint {
            let label = screen.paint(CYAN, "hint:");
            let hint = screen.wrap(&escape::line(hint), indent + 6);
            context.print(&format!("{}{label} {hint}\n", " ".repeat(indent)))?;
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
