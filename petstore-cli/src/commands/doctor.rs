//! `petstore doctor`.

use std::path::Path;
use std::time::{Duration, SystemTime};

use petstore_client::limits::{QuotaWindow, Shared};
use petstore_client::{Client, RequestOptions};
use serde::Serialize;

use crate::context::Context;
use crate::error::{CliError, Kind, Result};
use crate::escape;
use crate::output::{ANY, Printer, Shape};
use crate::screen::{CYAN, DIM, GREEN, RED, YELLOW};
use crate::session::Purpose;
use crate::session::words::quota_left;
use crate::settings::config_file::ConfigFile;
use crate::settings::credentials;
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

pub(crate) async fn run(context: &Context) -> Result<()> {
    let printer = context.printer();
    let mut output = printer.start(CHECKS)?;
    let mut examination = Examination {
        context,
        checks: Vec::new(),
    };
    examination.run().await;
    let checks = examination.checks;
    if printer.is_set() && !printer.is_table() {
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

/// The checks, and what they examine.
struct Examination<'c> {
    context: &'c Context,
    checks: Vec<Check>,
}

impl Examination<'_> {
    fn add(&mut self, check: &'static str, result: Outcome, found: &str, hint: Option<&str>) {
        self.checks.push(Check {
            check,
            result,
            found: found.to_owned(),
            hint: hint.map(str::to_owned),
            kind: None,
        });
    }

    fn skip(&mut self, check: &'static str) {
        self.add(check, Outcome::Skipped, "not checked", None);
    }

    /// Adds a result. A rate limit is not a failure.
    fn add_result(&mut self, check: &'static str, found: Result<String>) {
        let error = match found {
            Ok(found) => return self.add(check, Outcome::Ok, &found, None),
            Err(error) => error,
        };
        let Ok(failure) = self.context.explain(error) else {
            return self.skip(check);
        };
        let (result, kind) = match failure.kind {
            Kind::RateLimited | Kind::Banned => (Outcome::Warning, None),
            kind => (Outcome::Failed, Some(kind)),
        };
        self.add(check, result, &failure.message, failure.hint.as_deref());
        if let Some(check) = self.checks.last_mut() {
            check.kind = kind;
        }
    }

    fn has_failed(&self) -> bool {
        self.checks.iter().any(|check| check.kind.is_some())
    }

    async fn run(&mut self) {
        let context = self.context;
        let settings = context.settings();
        self.config();
        if self.has_failed() {
            // What is wrong there may be what is missing here.
            self.skip("base URL");
            self.skip("API key");
            return self.skip("service");
        }
        if !settings.is_mock() {
            let url = settings.base_url();
            let source = settings.source("base_url");
            self.add_result("base URL", url.map(|url| format!("{url}{source}")));
            self.key().await;
        }
        match context.connect(Purpose::Read).await {
            Ok(client) => self.service(&client).await,
            // A failed check above prevents the request.
            Err(_) if self.has_failed() => self.skip("service"),
            Err(error) => self.add_result("service", Err(error)),
        }
    }

    fn config(&mut self) {
        let context = self.context;
        let settings = context.settings();
        if settings.is_mock() {
            let found = "none needed for a built-in mock server";
            return self.add("config", Outcome::Ok, found, None);
        }
        let found = match context.take_problem() {
            Some(problem) => Err(problem),
            None => settings.require_profile(),
        };
        if let Err(problem) = found {
            return self.add_result("config", Err(problem));
        }
        let Some(path) = ConfigFile::path(context.system().dirs()) else {
            let hint = "set HOME or XDG_CONFIG_HOME to keep profiles and keys";
            let found = "no configuration folder";
            return self.add("config", Outcome::Warning, found, Some(hint));
        };
        let shown = context.system().shown(&path);
        let found = match path.exists() {
            true => format!("{shown}, profile {}", settings.profile()),
            false => format!("no file {shown}"),
        };
        self.add("config", Outcome::Ok, &found, None);
    }

    /// Checks the key. A stored key belongs to a base URL, and cannot be checked without one.
    async fn key(&mut self) {
        if self.has_failed() && !credentials::is_in_variable(self.context.system()) {
            let found = "not checked without a base URL";
            return self.add("API key", Outcome::Skipped, found, None);
        }
        let found = self.context.key().await;
        self.add_result("API key", found.map(|(_, source)| source.shown()));
    }

    /// Requests one pet, and checks the response. A refusal also shows the clock and the limit.
    async fn service(&mut self, client: &Client) {
        let options = RequestOptions::new().max_wait(MAX_WAIT).max_attempts(1);
        let started = tokio::time::Instant::now();
        let list = client.pets().list().limit(1);
        let asked = list.options(&options).with_meta().await;
        let elapsed = started.elapsed();
        let (date, quota, found) = match asked {
            Ok(response) => {
                let status = response.meta.status().as_u16();
                let found = format!("{status} in {} ms, key accepted", elapsed.as_millis());
                let quota = QuotaWindow::of(response.meta.headers());
                (response.meta.date(), quota, Ok(found))
            }
            Err(error) => (error.date(), error.quota(), Err(error.into())),
        };
        self.add_result("service", found);
        if let Some(date) = date {
            self.clock(date, elapsed);
        }
        let limits = client.limits().snapshot();
        let fewest = limits.windows.iter().min_by_key(|window| window.remaining);
        if let Some(quota) = quota.or(fewest.copied()) {
            let now = date.or(limits.service_time);
            self.rate_limits(&quota, now.unwrap_or_else(|| self.context.clock().now()));
        }
        if let Some(store) = &limits.shared {
            self.limits_store(store);
        }
    }

    /// Compares the clocks. `Date` has whole seconds, and the response took time.
    fn clock(&mut self, service: SystemTime, elapsed: Duration) {
        let now = self.context.clock().now();
        let (apart, side) = match now.duration_since(service) {
            Ok(ahead) => (ahead, "ahead of"),
            Err(behind) => (behind.duration(), "behind"),
        };
        if apart <= MAX_CLOCK_ERROR + elapsed {
            return self.add("clock", Outcome::Ok, "agrees with the service", None);
        }
        let length = time::elapsed(apart);
        let found = format!("{length} {side} the service; times shown may be off");
        let hint = "set this machine's clock";
        self.add("clock", Outcome::Warning, &found, Some(hint));
    }

    fn rate_limits(&mut self, quota: &QuotaWindow, now: SystemTime) {
        let left = quota.reset.duration_since(now).unwrap_or_default();
        let resets = self.context.clock().until(quota.reset, left);
        let rest = quota_left(quota);
        let found = format!("{rest}, resets {resets}");
        let (result, hint) = match quota.remaining {
            0 => {
                let hint = "wait until then, or let commands wait: `--max-wait`";
                (Outcome::Warning, Some(hint))
            }
            _ => (Outcome::Ok, None),
        };
        self.add("rate limits", result, &found, hint);
    }

    fn limits_store(&mut self, store: &Shared) {
        let mut found = self.context.system().shown(Path::new(&*store.location));
        if let Some(problem) = &store.problem {
            found += &format!(": {problem}; limits are not shared, and the key may be banned");
            let hint = "make the store usable, or choose another one with `--limits-store`";
            return self.add("limits store", Outcome::Warning, &found, Some(hint));
        }
        if store.holders > 1 {
            found += &format!(", shared by {} processes", store.holders);
        }
        self.add("limits store", Outcome::Ok, &found, None);
    }
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
    let failed = checks.iter().filter(|check| check.kind.is_some());
    let failed: Vec<_> = failed.map(|check| check.check).collect();
    match failed.as_slice() {
        [] => {}
        [only] => text += &format!("1 problem: {only}\n"),
        [first, ..] => text += &format!("{} problems; first: {first}\n", failed.len()),
    }
    printer.print(&text)
}
