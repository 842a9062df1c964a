//! `petstore limits`.

use std::time::SystemTime;

use petstore_client::Client;
use petstore_client::limits::{Quota, QuotaWindow, RateLimits};
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::{CliError, Kind, Result};
use crate::output::{ANY, Cell, Head, Shape, Table};
use crate::screen::{Screen, YELLOW};
use crate::session::Purpose;
use crate::session::words::limit_name;
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

/// The rows: a quota, its name, and whether each key has it by the specification.
const ROWS: [(Quota, &str, bool); Quota::ALL.len() + 1] = [
    (Quota::Minute, "minute", true),
    (Quota::Day, "day", true),
    (Quota::Unknown, "other", false),
];

const LIMITS: Shape = Shape {
    noun: "limits",
    fields: &["quota", "limit", "remaining", "reset", "secondsToReset"],
    ..ANY
};

impl Limits {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let connector = context.connector();
        let printer = context.printer();
        let ui = context.ui();
        // Starting the result checks `--jq` before anything is sent.
        printer.start(LIMITS)?;
        let client = connector.connect(Purpose::Read).await?;
        if self.forget {
            client.limits().forget().await?;
            ui.note("forgot what was known about this key");
            return Ok(());
        }
        // A new mock server has not answered anything yet, so no limits are known.
        let asks = self.refresh || connector.settings().is_mock();
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
            connector.warn_of(store);
        }
        if let Some(error) = refused {
            return Err(error);
        }
        if let (Some(waits), false) = (waits(&limits, connector.clock()), printer.is_table()) {
            ui.note(&format!("requests {waits}"));
        }
        match (is_known, limits.service_time) {
            (true, _) => {}
            (false, Some(_)) => ui.note(NOT_DESCRIBED),
            (false, None) => {
                let hint = "`petstore limits --refresh` sends a request";
                ui.note_with_hint("no response yet with this key", Some(hint));
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
    let clock = context.connector().clock();
    let now = limits.service_time.unwrap_or_else(|| clock.now());
    if printer.is_table() {
        if !is_known(limits) {
            return Ok(());
        }
        // A table is for people, who expect local times.
        let local = clock.clone().local(context.system().time_zone());
        return printer.print(&layout(limits, now, &local, printer.screen()));
    }
    let windows = limits.windows.iter().chain(&limits.ended);
    let rows: Vec<_> = windows.map(|window| row(window, now)).collect();
    printer.start(LIMITS)?.document(&rows)
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

/// Returns the cells of a quota.
fn amounts(name: &str, window: &QuotaWindow, resets: &str, screen: &Screen) -> Vec<Cell> {
    let mut left = Cell::new(count(window.remaining));
    if window.remaining == 0 {
        left = left.styled(YELLOW);
    }
    vec![
        Cell::new(name),
        left,
        Cell::new(count(window.limit)),
        Cell::new(screen.bar(window.remaining, window.limit)),
        Cell::new(resets),
    ]
}

/// Formats the limits for people.
fn layout(limits: &RateLimits, now: SystemTime, clock: &Clock, screen: &Screen) -> String {
    let mut rows = Vec::new();
    for (quota, name, is_specified) in ROWS {
        let before = rows.len();
        for window in limits.windows.iter().filter(|it| it.quota == quota) {
            let left = window.reset.duration_since(now).unwrap_or_default();
            rows.push(amounts(
                name,
                window,
                &clock.until(window.reset, left),
                screen,
            ));
        }
        for window in limits.ended.iter().filter(|it| it.quota == quota) {
            rows.push(amounts(name, window, "has reset", screen));
        }
        if rows.len() == before && is_specified {
            let mut row = vec![Cell::new(name), Cell::none(), Cell::none()];
            row.extend([Cell::new(""), Cell::new("not reported yet")]);
            rows.push(row);
        }
    }
    let head = vec![
        Head::new("QUOTA"),
        Head::new("LEFT").amount(),
        Head::new("LIMIT").amount().dropped(1),
        Head::new("").dropped(2),
        Head::new("RESETS"),
    ];
    let table = Table::new(head, rows).render(screen);
    let mut notes = Vec::new();
    notes.extend(waits(limits, clock).map(|waits| format!("Requests {waits}.")));
    if let Some(shared) = &limits.shared
        && shared.holders > 0
    {
        let processes = plural(shared.holders as usize, "process uses", "processes use");
        notes.push(format!("{processes} the key now."));
    }
    if let Some(age) = limits.age {
        notes.push(format!("From a response {} ago.", time::duration(age)));
    }
    match notes.is_empty() {
        true => table,
        false => format!("{table}{}\n", screen.wrap(&notes.join(" "), 0)),
    }
}

/// Describes what requests have to wait for: `wait for the minute quota, in 41 s (07:45:00)`.
fn waits(limits: &RateLimits, clock: &Clock) -> Option<String> {
    let blocked = limits.blocked.as_ref()?;
    let until = clock.until(blocked.until, blocked.remaining);
    let name = limit_name(blocked.reason);
    Some(format!("wait for the {name}, {until}"))
}
