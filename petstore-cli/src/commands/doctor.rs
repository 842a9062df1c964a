//! `petstore doctor`.

use std::path::Path;
use std::time::{Duration, SystemTime};

use petstore_client::rate_limit::{QuotaWindow, SharedStatus};
use petstore_client::{Client, RequestOptions};
use serde::Serialize;

use crate::env::System;
use crate::error::{CliError, Kind};
use crate::escape;
use crate::output::{ANY, Printer, Shape};
use crate::screen::{CYAN, DIM, GREEN, RED, YELLOW};
use crate::session::words::quota_left;
use crate::session::{Connector, LimitsPlace, Purpose};
use crate::settings::config_file::ConfigFile;
use crate::settings::credentials;
use crate::time;

/// With a larger difference, the times in messages are misleading.
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
    fn of(check: &'static str, found: Result<String, CliError>, connector: &Connector) -> Self {
        match found.map_err(|error| connector.explain(error)) {
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

pub(crate) async fn run(
    problem: Option<CliError>,
    connector: &Connector,
    system: &System,
    printer: &Printer,
) -> Result<(), CliError> {
    let mut output = printer.start(CHECKS)?;
    let checks = checks(problem, connector, system).await;
    if printer.is_format_set() && !printer.is_table() {
        output.rows(&checks)?;
        output.finish()?;
    } else {
        show(printer, &checks)?;
    }
    match checks.iter().find_map(|check| check.kind) {
        Some(kind) => Err(CliError::Silent(kind.code())),
        None => Ok(()),
    }
}

async fn checks(problem: Option<CliError>, connector: &Connector, system: &System) -> Vec<Check> {
    let settings = connector.settings();
    let mut checks = vec![config(problem, connector, system)];
    if !settings.is_mock() {
        let url = settings
            .base_url()
            .map(|url| format!("{url}{}", settings.source("base_url")));
        let has_url = url.is_ok();
        checks.push(Check::of("base URL", url, connector));
        checks.push(key(has_url, connector, system));
    }
    match connector.connect(Purpose::Read).await {
        Ok(client) => service(connector, system, &client, &mut checks).await,
        // A failed check above prevents the request.
        Err(_) if checks.iter().any(|check| check.result == Outcome::Failed) => {
            checks.push(Check {
                result: Outcome::Skipped,
                ..Check::ok("service", "not checked")
            });
        }
        Err(error) => checks.push(Check::of("service", Err(error), connector)),
    }
    checks
}

/// Checks the key. A stored key belongs to a base URL, and cannot be checked without one.
fn key(has_url: bool, connector: &Connector, system: &System) -> Check {
    const NAME: &str = "API key";

    if !has_url && !credentials::is_in_variable(system) {
        return Check {
            result: Outcome::Skipped,
            ..Check::ok(NAME, "not checked without a base URL")
        };
    }
    let key = credentials::require(connector.settings(), system);
    let shown = key.and_then(|key| {
        let (key, source) = key.into_parts();
        credentials::check(&key, &source)?;
        Ok(source.shown().to_owned())
    });
    Check::of(NAME, shown, connector)
}

fn config(problem: Option<CliError>, connector: &Connector, system: &System) -> Check {
    const NAME: &str = "config";

    let settings = connector.settings();
    if settings.is_mock() {
        return Check::ok(NAME, "none needed for a built-in mock server");
    }
    if let Some(problem) = problem.or_else(|| settings.require_profile().err()) {
        return Check::of(NAME, Err(problem), connector);
    }
    let Some(path) = ConfigFile::path(system.dirs()) else {
        let hint = "set HOME or XDG_CONFIG_HOME to keep profiles and keys";
        return Check::warning(NAME, "no configuration folder", hint);
    };
    let shown = system.shown(&path);
    match path.exists() {
        true => Check::ok(NAME, format!("{shown}, profile {}", settings.profile())),
        false => Check::ok(NAME, format!("no file {shown}")),
    }
}

/// Requests one pet, and checks the response. A refusal also shows the clock and the limit.
async fn service(connector: &Connector, system: &System, client: &Client, checks: &mut Vec<Check>) {
    let options = RequestOptions::new()
        .max_wait(Duration::ZERO)
        .max_attempts(1);
    let started = tokio::time::Instant::now();
    let asked = client.pets().list().limit(1).options(&options).send().await;
    let elapsed = started.elapsed();
    let (date, quota) = match &asked {
        Ok(page) => (page.meta().date(), page.meta().quota()),
        Err(error) => (error.date(), error.quota()),
    };
    let found = match asked {
        Ok(page) => {
            let status = page.meta().status().as_u16();
            let elapsed = elapsed.as_millis();
            Ok(format!("{status} in {elapsed} ms, key accepted"))
        }
        Err(error) => Err(error.into()),
    };
    checks.push(Check::of("service", found, connector));
    if let Some(date) = date {
        checks.push(clock(date, connector.clock().now(), elapsed));
    }
    let limits = client.rate_limits();
    let fewest = limits.windows.iter().min_by_key(|window| window.remaining);
    if let Some(quota) = quota.or(fewest.copied()) {
        let now = match date.or(limits.service_time) {
            Some(now) => now,
            None => connector.clock().now(),
        };
        checks.push(rate_limits(&quota, now, connector));
    }
    if let Some(store) = &limits.shared {
        let place = connector.limits_place();
        checks.push(limits_file(store, &place, system));
    }
}

fn rate_limits(quota: &QuotaWindow, now: SystemTime, connector: &Connector) -> Check {
    const NAME: &str = "rate limits";

    let left = quota.reset.duration_since(now).unwrap_or_default();
    let resets = connector.clock().until(quota.reset, left);
    let found = format!("{}, resets {resets}", quota_left(quota));
    match quota.remaining {
        0 => {
            let hint = "wait until then, or let commands wait: `--max-wait`";
            Check::warning(NAME, found, hint)
        }
        _ => Check::ok(NAME, found),
    }
}

fn limits_file(store: &SharedStatus, place: &LimitsPlace, system: &System) -> Check {
    const NAME: &str = "limits file";

    let mut found = system.shown(Path::new(&*store.location));
    if let Some(problem) = &store.problem {
        if store.is_waiting {
            let found = format!("{found}: {problem}; this command sends nothing yet");
            return Check::warning(NAME, found, "run fewer commands at the same time");
        }
        let found = format!("{found}: {problem}; limits are not shared, and the key may be banned");
        let hint = place.fix.as_deref();
        let hint = hint.unwrap_or("make the folder usable, or set XDG_STATE_HOME to another one");
        return Check::warning(NAME, found, hint);
    }
    if store.members > 1 {
        found += &format!(", shared by {} processes", store.members);
    }
    if let Some(reason) = &place.reason {
        found += &format!("; {reason}");
    }
    match &place.fix {
        Some(fix) => Check::warning(NAME, found, fix),
        None => Check::ok(NAME, found),
    }
}

fn clock(service: SystemTime, own: SystemTime, elapsed: Duration) -> Check {
    const NAME: &str = "clock";

    let (apart, side) = match own.duration_since(service) {
        // `Date` has whole seconds, and the response took time.
        Ok(ahead) if ahead <= Duration::from_secs(1) + elapsed => (Duration::ZERO, ""),
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    };
    if apart.is_zero() {
        return Check::ok(NAME, "agrees with the service, to the second");
    }
    let found = format!("{} {side} the service", time::duration(apart));
    if apart <= MAX_CLOCK_ERROR {
        return Check::ok(NAME, found);
    }
    let found = format!("{found}; times shown may be off");
    Check::warning(NAME, found, "set this machine's clock")
}

/// Writes the checks for people.
fn show(printer: &Printer, checks: &[Check]) -> Result<(), CliError> {
    let screen = printer.screen();
    let marks = if screen.has_unicode() { 1 } else { 4 };
    let mut pairs = Vec::new();
    for check in checks {
        let (mark, style) = match check.result {
            Outcome::Ok => ("✓", GREEN),
            Outcome::Warning => ("!", YELLOW),
            Outcome::Failed => ("✗", RED),
            Outcome::Skipped => ("–", DIM),
        };
        let mark = screen.paint(style, format!("{:<marks$}", screen.symbol(mark)));
        let found = escape::line(&check.found).into_owned();
        pairs.push((format!("{mark} {}", check.check), found));
        if let Some(hint) = &check.hint {
            let label = screen.paint(CYAN, "hint:");
            pairs.push((String::new(), format!("{label} {}", escape::line(hint))));
        }
    }
    let mut text = screen.pairs(&pairs);
    let failed: Vec<_> = checks.iter().filter(|check| check.kind.is_some()).collect();
    match failed.as_slice() {
        [] => {}
        [one] => text += &format!("1 problem: {}\n", one.check),
        [first, ..] => text += &format!("{} problems; first: {}\n", failed.len(), first.check),
    }
    printer.print(&text)
}
