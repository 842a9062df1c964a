//! `petstore doctor`.

use std::time::{Duration, SystemTime};

use petstore_client::rate_limit::{QuotaWindow, SharedStatus};
use petstore_client::{Client, Error as ClientError, RequestOptions};
use serde::Serialize;

use crate::config::{Config, Setting};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;
use crate::settings::Settings;
use crate::style::{self, paint};
use crate::{keys, safe, time};

/// A `Date` is cut to the second, and takes its time.
const TOLERATED: u64 = 5;

/// Checks the configuration, the key, the service, the clock and the rate limit
///
/// Tells of each what was found, and what to do where it is not right. Asks the service for one
/// pet. Ends with the exit code of the first check that fails.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore doctor
  petstore --mock doctor -o json")]
pub(crate) struct Doctor {}

const FIELDS: [&str; 4] = ["check", "result", "found", "advice"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Verdict {
    Ok,
    Warning,
    Failed,
}

#[derive(Serialize)]
struct Check {
    check: &'static str,
    result: Verdict,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
    #[serde(skip)]
    exit: Exit,
}

impl Check {
    fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, result: Verdict::Ok, found: found.into(), advice: None, exit: Exit::Done }
    }

    fn warning(check: &'static str, found: impl Into<String>, advice: &str) -> Self {
        let advice = Some(advice.to_owned());
        Self { result: Verdict::Warning, advice, ..Self::ok(check, found) }
    }

    fn failed(check: &'static str, error: &CliError) -> Self {
        let found = match error.root() {
            Some(root) => format!("{}: {root}", error.cause),
            None => error.cause.to_string(),
        };
        let advice = (!error.hints.is_empty()).then(|| error.hints.join("; "));
        Self { result: Verdict::Failed, advice, exit: error.exit, ..Self::ok(check, found) }
    }
}

impl Doctor {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let output = context.output(Some(&FIELDS))?;
        let checks = checks(context).await;
        let failed = checks.iter().find(|check| check.result == Verdict::Failed);
        let failed = failed.map(|check| (check.exit, check.check));
        show(context, output, &checks).await?;
        match failed {
            None => Ok(()),
            Some((exit, check)) => Err(CliError::new(exit, format!("{check} is not right"))),
        }
    }
}

async fn checks(context: &mut Context) -> Vec<Check> {
    let mut checks = Vec::new();
    match Settings::resolve(&context.args, &context.env) {
        Ok(settings) => context.settings = settings,
        Err(error) => return vec![Check::failed("configuration", &error)],
    }
    checks.push(configuration(context));
    checks.extend(context.settings.check_profile().err().map(|e| Check::failed("profile", &e)));
    if !context.wants_mock() {
        checks.push(match context.settings.base_url() {
            Ok(url) => {
                let origin = context.settings.get(Setting::BaseUrl).map(|(_, origin)| origin);
                let origin = origin.map(ToString::to_string).unwrap_or_default();
                Check::ok("base URL", format!("{url}, from {origin}"))
            }
            Err(error) => Check::failed("base URL", &error),
        });
        checks.push(match keys::need(&context.settings, &context.env) {
            Ok(key) => Check::ok("API key", format!("from {}", key.source)),
            Err(error) => Check::failed("API key", &error),
        });
    }
    match context.client().await {
        Ok(client) => checks.extend(service(context, &client).await),
        // What stands in the way of asking has been told.
        Err(_) if checks.iter().any(|check| check.result == Verdict::Failed) => {}
        Err(error) => checks.push(Check::failed("service", &error)),
    }
    checks
}

fn configuration(context: &Context) -> Check {
    const NAME: &str = "configuration";

    let profile = &context.settings.profile.0;
    if context.wants_mock() {
        return Check::ok(NAME, "a mock of its own needs none");
    }
    match Config::path(&context.env.dirs) {
        Some(path) if path.exists() => {
            Check::ok(NAME, format!("{}, profile {profile}", path.display()))
        }
        Some(path) => Check::ok(NAME, format!("no file {}", path.display())),
        None => Check::warning(
            NAME,
            "there is no folder for it",
            "set HOME or XDG_CONFIG_HOME, if profiles or keys are to be kept",
        ),
    }
}

/// Asks for one pet, and judges what comes of it.
async fn service(context: &Context, client: &Client) -> Vec<Check> {
    const NAME: &str = "service";

    let options = RequestOptions::new()
        .max_wait(Duration::ZERO)
        .max_attempts(1)
        .timeout(Duration::from_secs(30));
    let asked = client.pets().list().limit(1).options(&options).send().await;
    let now = context.now();
    let (first, date, quota) = match asked {
        Ok(page) => {
            let found = format!("{} answers {}", client.base_url(), page.meta().status());
            (Check::ok(NAME, found), page.meta().date(), page.meta().quota())
        }
        // A refusal is an answer, and tells the clock and the limit too.
        Err(error) => {
            let (date, quota) = (error.date(), error.quota());
            (refusal(NAME, error), date, quota)
        }
    };
    let mut checks = vec![first];
    checks.extend(date.map(|date| clock(date, now)));
    // Where nothing was sent, it is known why.
    let limits = client.rate_limits();
    let known = limits.windows.iter().min_by_key(|window| window.remaining).copied();
    let now = date.or(limits.service_time).unwrap_or(now);
    checks.extend(quota.or(known).map(|quota| rate_limit(quota, now)));
    checks.extend(limits.shared.as_ref().map(shared_limits));
    checks
}

fn shared_limits(store: &SharedStatus) -> Check {
    const NAME: &str = "shared limits";

    let SharedStatus { location, members, problem, .. } = store;
    match problem {
        None if *members == 1 => Check::ok(NAME, format!("{location}, used by this process")),
        None => Check::ok(NAME, format!("{location}, shared by {members} processes")),
        Some(problem) => Check::warning(
            NAME,
            format!("{location}: {problem}"),
            "this process goes on alone; see to the store, or set --limits-store off",
        ),
    }
}

fn refusal(name: &'static str, error: ClientError) -> Check {
    if !error.is_rate_limited() {
        return Check::failed(name, &error.into());
    }
    let found = format!("it holds requests back: {error}");
    Check::warning(name, found, "wait until then; asking again before may get the key banned")
}

fn clock(service: SystemTime, own: SystemTime) -> Check {
    const NAME: &str = "clock";

    let (apart, side) = match own.duration_since(service) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    };
    let found = format!("{} s {side} the service's", apart.as_secs());
    if apart.as_secs() <= TOLERATED {
        return Check::ok(NAME, found);
    }
    // The client goes by the service's own clock.
    Check::warning(NAME, found, "set this machine's clock; waits are right all the same")
}

fn rate_limit(quota: QuotaWindow, now: SystemTime) -> Check {
    const NAME: &str = "rate limit";

    let found = format!(
        "{} of {} requests left, whole again in {} s",
        quota.remaining,
        quota.limit,
        time::seconds_until(quota.reset, now)
    );
    if quota.remaining == 0 {
        return Check::warning(NAME, found, "wait until then, or let commands wait: --max-wait");
    }
    Check::ok(NAME, found)
}

/// Writes the checks: as lines for people, or in the format that was asked for.
async fn show(context: &mut Context, mut output: Output, checks: &[Check]) -> Result<(), CliError> {
    if context.look().format.is_some() || context.look().jq.is_some() {
        output.rows(checks)?;
        return output.done().await;
    }
    let color = context.look().color;
    for Check { check, result, found, advice, .. } in checks {
        let (label, style) = match result {
            Verdict::Ok => ("ok     ", style::HINT),
            Verdict::Warning => ("warning", style::WARNING),
            Verdict::Failed => ("failed ", style::ERROR),
        };
        let label = paint(style, label, color);
        let mut text = format!("{label}  {check:<13}  {}\n", safe::line(found));
        if let Some(advice) = advice {
            text += &format!("{:9}{:13}  → {}\n", "", "", safe::line(advice));
        }
        context.stdout().write_all(text.as_bytes())?;
    }
    Ok(())
}
