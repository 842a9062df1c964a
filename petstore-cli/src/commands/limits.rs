//! `petstore limits`.

use std::time::SystemTime;

use petstore_client::Client;
use petstore_client::limits::{QuotaWindow, RateLimits};
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::{CliError, Kind, Result};
use crate::output::{ANY, Shape};
use crate::session::words::limit_name;
use crate::session::{Purpose, shared_store};
use crate::time::{self, Clock, count, plural};

/// Show what is left of the rate limits, without a request.
#[derive(Debug, clap::Args)]
#[command(after_long_help = examples!(
    "petstore limits",
    "petstore limits --refresh -o json",
    "petstore limits --forget";
    "The figures come from earlier responses. Each describes one quota, per minute or per day. \
     `watch petstore limits` shows them again and again.",
    "Fields: quota, limit, remaining, reset, secondsToReset"
))]
pub(crate) struct Limits {
    /// Send one request first, even during a block
    #[arg(long, conflicts_with = "forget")]
    refresh: bool,

    /// Forget the limits of this key, including blocks
    #[arg(long)]
    forget: bool,
}

/// What is said if responses come without rate limit headers.
const NOT_DESCRIBED: &str = "the service does not describe its rate limits";

const LIMITS: Shape = Shape {
    noun: "limits",
    fields: &["quota", "limit", "remaining", "reset", "secondsToReset"],
    ..ANY
};

const FOR_PEOPLE: Shape = Shape {
    fields: &["quota", "left", "limit", "resets"],
    dropped: &["limit"],
    ..LIMITS
};

impl Limits {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let printer = context.printer();
        let ui = context.ui();
        // Starting the result checks `--jq` before anything is sent.
        printer.start(LIMITS)?;
        let client = context.connect(Purpose::Read).await?;
        if self.forget {
            client.limits().forget().await?;
            ui.note("forgot what was known about this key");
            return Ok(());
        }
        // A new mock server has not answered anything yet, so no limits are known.
        let asks = self.refresh || context.settings().is_mock();
        let (limits, refused) = match asks {
            true => refresh(&client).await?,
            false => (client.limits().exchange().await, None),
        };
        let is_known = is_known(&limits);
        if self.refresh && refused.is_none() && !is_known {
            return Err(CliError::new(Kind::Service, NOT_DESCRIBED));
        }
        show(&limits, context)?;
        if let Some(store) = &limits.shared {
            shared_store(ui, store, &context.settings().command("doctor"));
        }
        if let Some(error) = refused {
            return Err(error);
        }
        describe(&limits, context);
        match (is_known, limits.service_time) {
            (true, _) => {}
            (false, Some(_)) => ui.note(NOT_DESCRIBED),
            (false, None) => {
                let refresh = context.settings().command("limits --refresh");
                let hint = format!("{refresh} sends a request");
                ui.note_with_hint("no response yet with this key", Some(&hint));
            }
        }
        Ok(())
    }
}

/// Sends a request, and returns what is known after it. A 429 shows the limits too.
async fn refresh(client: &Client) -> Result<(RateLimits, Option<CliError>)> {
    let refused = match client.limits().refresh().await {
        Ok(_) => None,
        Err(error) if error.is_rate_limited() => Some(error.into()),
        Err(error) => return Err(error.into()),
    };
    Ok((client.limits().exchange().await, refused))
}

fn is_known(limits: &RateLimits) -> bool {
    !limits.windows.is_empty() || !limits.ended.is_empty() || limits.blocked.is_some()
}

fn show(limits: &RateLimits, context: &Context) -> Result<()> {
    let printer = context.printer();
    let clock = context.clock();
    let now = limits.service_time.unwrap_or_else(|| clock.now());
    let windows = limits.windows.iter().chain(&limits.ended);
    if !printer.is_table() {
        let rows: Vec<_> = windows.map(|window| row(window, now)).collect();
        return printer.start(LIMITS)?.document(&rows);
    }
    // A table is for people, who expect local times.
    let local = clock.clone().local(context.system().time_zone());
    let rows: Vec<_> = windows.map(|window| shown(window, now, &local)).collect();
    match rows.is_empty() {
        true => Ok(()),
        false => printer.start(FOR_PEOPLE)?.document(&rows),
    }
}

/// Says what a table does not show.
fn describe(limits: &RateLimits, context: &Context) {
    let ui = context.ui();
    if let Some(blocked) = &limits.blocked {
        let until = context.clock().until(blocked.until, blocked.remaining);
        let name = limit_name(blocked.reason);
        ui.note(&format!("requests wait for the {name}, {until}"));
    }
    if !context.printer().is_table() {
        return;
    }
    if let Some(shared) = &limits.shared
        && shared.holders > 0
    {
        let processes = plural(shared.holders as usize, "process uses", "processes use");
        ui.note(&format!("{processes} the key now"));
    }
    if let Some(age) = limits.age {
        let age = time::elapsed(age);
        ui.note(&format!("from a response {age} ago"));
    }
}

fn row(window: &QuotaWindow, now: SystemTime) -> Value {
    let left = window.reset.duration_since(now).unwrap_or_default();
    json!({
        "quota": window.quota,
        "limit": window.limit,
        "remaining": window.remaining,
        "reset": time::instant(window.reset),
        "secondsToReset": time::seconds(left),
    })
}

/// Returns the row of a quota for people.
fn shown(window: &QuotaWindow, now: SystemTime, clock: &Clock) -> Value {
    json!({
        "quota": window.quota,
        "left": count(window.remaining),
        "limit": count(window.limit),
        "resets": match window.reset.duration_since(now) {
            Ok(left) => clock.until(window.reset, left),
            Err(_) => "has reset".to_owned(),
        },
    })
}
