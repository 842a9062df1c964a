//! `petstore doctor`.

use std::path::Path;
use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::DATE;
use petstore_client::limits::{QuotaWindow, Shared};
use petstore_client::{Client, RequestOptions};
use serde::Serialize;

use crate::env::System;
use crate::error::{CliError, Kind, Result};
use crate::escape;
use crate::output::{ANY, Printer, Shape};
use crate::screen::{CYAN, DIM, GREEN, RED, YELLOW};
use crate::session::words::quota_left;
use crate::session::{Connector, Purpose};
use crate::settings::config_file::ConfigFile;
use crate::settings::{Settings, credentials};
use crate::time;

/// With a larger difference, the times in messages are misleading.
const MAX_CLOCK_ERROR: Duration = Duration::from_secs(5);

/// A longer block is shown. Most requests of other commands end earlier.
const MAX_WAIT: Duration = Duration::from_secs(3);

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
    fn of(check: &'static str, found: Result<String>, connector: &Connector) -> Self {
        let error = match found {
            Ok(found) => return Self::ok(check, found),
            Err(error) => error,
        };
        let Ok(failure) = connector.explain(error) else {
            return Self::skipped(check, "not checked");
        };
        let (result, kind) = match failure.kind {
            Kind::RateLimited | Kind::Banned => (Outcome::Warning, None),
            kind => (Outcome::Failed, Some(kind)),
        };
        Self {
            result,
            hint: failure.hint,
            kind,
            ..Self::ok(check, failure.message)
        }
    }

    fn skipped(check: &'static str, why: &str) -> Self {
        Self {
            result: Outcome::Skipped,
            ..Self::ok(check, why)
        }
    }
}

/// Check configuration, key, service, clock and rate limits.
#[derive(Debug, clap::Args)]
#[command(after_long_help = examples!(
    "petstore doctor",
    "petstore --mock doctor -o json";
    "Sends one request. Exits with the code of the first check that fails.",
    "Fields: check, result, found, hint"
))]
pub(crate) struct Doctor {}

impl Doctor {
    pub(crate) async fn run(
        self,
        problem: Option<CliError>,
        connector: &Connector,
        system: &System,
        printer: &Printer,
    ) -> Result<()> {
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
}

async fn checks(problem: Option<CliError>, connector: &Connector, system: &System) -> Vec<Check> {
    let settings = connector.settings();
    let mut checks = vec![config(problem, connector, system)];
    if checks[0].result == Outcome::Failed {
        // What is wrong there may be what is missing here.
        for name in ["base URL", "API key", "service"] {
            checks.push(Check::skipped(name, "not checked"));
        }
        return checks;
    }
    if !settings.is_mock() {
        let url = base_url(settings);
        let has_url = url.is_ok();
        checks.push(Check::of("base URL", url, connector));
        checks.push(key(has_url, connector, system).await);
    }
    match connector.connect(Purpose::Read).await {
        Ok(client) => service(connector, system, &client, &mut checks).await,
        // A failed check above prevents the request.
        Err(_) if checks.iter().any(|check| check.result == Outcome::Failed) => {
            checks.push(Check::skipped("service", "not checked"));
        }
        Err(error) => {
            let check = Check::of("service", Err(error), connector);
            checks.push(check);
        }
    }
    checks
}

/// Returns the base URL, and where it comes from.
fn base_url(settings: &Settings) -> Result<String> {
    let url = settings.base_url()?;
    let source = settings.source("base_url");
    Ok(format!("{url}{source}"))
}

/// Checks the key. A stored key belongs to a base URL, and cannot be checked without one.
async fn key(has_url: bool, connector: &Connector, system: &System) -> Check {
    const NAME: &str = "API key";

    if !has_url && !credentials::is_in_variable(system) {
        return Check::skipped(NAME, "not checked without a base URL");
    }
    let found = connector.key().await;
    let found = found.map(|(_, source)| source.shown());
    Check::of(NAME, found, connector)
}

fn config(problem: Option<CliError>, connector: &Connector, system: &System) -> Check {
    const NAME: &str = "config";

    let settings = connector.settings();
    if settings.is_mock() {
        return Check::ok(NAME, "none needed for a built-in mock server");
    }
    if let Some(problem) = problem {
        return Check::of(NAME, Err(problem), connector);
    }
    if let Err(problem) = settings.require_profile() {
        return Check::of(NAME, Err(problem), connector);
    }
    let Some(path) = ConfigFile::path(system.dirs()) else {
        let hint = "set HOME or XDG_CONFIG_HOME to keep profiles and keys";
        return Check::warning(NAME, "no configuration folder", hint);
    };
    let shown = system.shown(&path);
    let found = if path.exists() {
        let profile = settings.profile();
        format!("{shown}, profile {profile}")
    } else {
        format!("no file {shown}")
    };
    Check::ok(NAME, found)
}

/// Requests one pet, and checks the response. A refusal also shows the clock and the limit.
async fn service(connector: &Connector, system: &System, client: &Client, checks: &mut Vec<Check>) {
    let options = RequestOptions::new().max_wait(MAX_WAIT).max_attempts(1);
    let started = tokio::time::Instant::now();
    let list = client.pets().list().limit(1);
    let asked = list.options(&options).with_meta().await;
    let elapsed = started.elapsed();
    let date;
    let quota;
    let found = match asked {
        Ok(response) => {
            let meta = response.meta;
            date = date_of(meta.headers());
            quota = QuotaWindow::of(meta.headers());
            let status = meta.status().as_u16();
            let elapsed = elapsed.as_millis();
            Ok(format!("{status} in {elapsed} ms, key accepted"))
        }
        Err(error) => {
            date = error.date();
            quota = error.quota();
            Err(error.into())
        }
    };
    checks.push(Check::of("service", found, connector));
    if let Some(date) = date {
        let own = connector.clock().now();
        checks.push(clock(date, own, elapsed));
    }
    let limits = client.limits().snapshot();
    let fewest = limits.windows.iter().min_by_key(|window| window.remaining);
    if let Some(quota) = quota.or(fewest.copied()) {
        let now = match date.or(limits.service_time) {
            Some(now) => now,
            None => connector.clock().now(),
        };
        checks.push(rate_limits(&quota, now, connector));
    }
    if let Some(store) = &limits.shared {
        let elsewhere = connector.why_limits_are_elsewhere();
        checks.push(limits_store(store, elsewhere, system));
    }
}

/// Returns the time of a response.
fn date_of(headers: &HeaderMap) -> Option<SystemTime> {
    let date = headers.get(DATE)?.to_str().ok()?;
    time::parse_date(date)
}

fn rate_limits(quota: &QuotaWindow, now: SystemTime, connector: &Connector) -> Check {
    const NAME: &str = "rate limits";

    let left = quota.reset.duration_since(now).unwrap_or_default();
    let resets = connector.clock().until(quota.reset, left);
    let rest = quota_left(quota.quota, quota.remaining, quota.limit);
    let found = format!("{rest}, resets {resets}");
    if quota.remaining > 0 {
        return Check::ok(NAME, found);
    }
    let hint = "wait until then, or let commands wait: `--max-wait`";
    Check::warning(NAME, found, hint)
}

fn limits_store(store: &Shared, elsewhere: Option<String>, system: &System) -> Check {
    const NAME: &str = "limits store";

    let mut found = system.shown(Path::new(&*store.location));
    if let Some(problem) = &store.problem {
        let effect = "limits are not shared, and the key may be banned";
        let found = format!("{found}: {problem}; {effect}");
        let hint = "make the store usable, or choose another one with `--limits-store`";
        return Check::warning(NAME, found, hint);
    }
    if store.holders > 1 {
        found += &format!(", shared by {} processes", store.holders);
    }
    if let Some(reason) = elsewhere {
        found += &format!("; {reason}");
    }
    Check::ok(NAME, found)
}

fn clock(service: SystemTime, own: SystemTime, elapsed: Duration) -> Check {
    const NAME: &str = "clock";

    // `Date` has whole seconds, and the response took time.
    let usual = Duration::from_secs(1) + elapsed;
    let apart;
    let side;
    match own.duration_since(service) {
        Ok(ahead) if ahead <= usual => {
            return Check::ok(NAME, "agrees with the service, to the second");
        }
        Ok(ahead) => {
            apart = ahead;
            side = "ahead of";
        }
        Err(behind) => {
            apart = behind.duration();
            side = "behind";
        }
    }
    let length = time::duration(apart);
    let found = format!("{length} {side} the service");
    if apart <= MAX_CLOCK_ERROR {
        return Check::ok(NAME, found);
    }
    let found = format!("{found}; times shown may be off");
    Check::warning(NAME, found, "set this machine's clock")
}

/// Writes the checks for people.
fn show(printer: &Printer, checks: &[Check]) -> Result<()> {
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
        let mark = screen.symbol(mark);
        let mark = screen.paint(style, format!("{mark:<marks$}"));
        let name = format!("{mark} {}", check.check);
        let found = escape::line(&check.found);
        pairs.push((name, found.into_owned()));
        if let Some(hint) = &check.hint {
            let label = screen.paint(CYAN, "hint:");
            let hint = escape::line(hint);
            pairs.push((String::new(), format!("{label} {hint}")));
        }
    }
    let mut text = screen.pairs(&pairs);
    text += &summary(checks);
    printer.print(&text)
}

/// Returns the last line: how many checks failed, and which one first.
fn summary(checks: &[Check]) -> String {
    let mut failed = Vec::new();
    for check in checks {
        if check.kind.is_some() {
            failed.push(check.check);
        }
    }
    match failed.as_slice() {
        [] => String::new(),
        [one] => format!("1 problem: {one}\n"),
        [first, ..] => {
            let count = failed.len();
            format!("{count} problems; first: {first}\n")
        }
    }
}
