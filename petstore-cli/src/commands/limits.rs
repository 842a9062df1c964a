//! `petstore limits`.

use std::time::{Duration, SystemTime};

use petstore_client::RequestOptions;
use petstore_client::rate_limit::{BlockReason, Quota, QuotaWindow, RateLimits};
use serde::Serialize;

use crate::context::{Context, READS};
use crate::error::{CliError, Kind};
use crate::output::{Cell, Head, Shape, Table};
use crate::screen::YELLOW;
use crate::time::{self, Clock, count};
use crate::trace;

/// Show what is left of the rate limits, without a request.
#[derive(Debug, clap::Args)]
pub(crate) struct Limits {
    /// send one request first, even while told to wait
    #[arg(long, conflicts_with = "forget")]
    refresh: bool,

    /// forget what is known about this key, waits included
    #[arg(long)]
    forget: bool,

    /// with --forget: all keys
    #[arg(long, requires = "forget")]
    all: bool,
}

const LIMITS: Shape =
    Shape { noun: "limits", fields: &["quota", "limit", "remaining", "reset", "secondsToReset"] };

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LimitRow {
    quota: Quota,
    limit: u64,
    remaining: u64,
    reset: String,
    seconds_to_reset: u64,
}

impl Limits {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let output = context.output(LIMITS)?;
        if self.all {
            context.forget_all_limits().await?;
            context.ui.note("forgot what was known about all keys");
            return Ok(());
        }
        // One request, which neither waits for a limit nor is repeated.
        let once = RequestOptions::new().max_wait(Duration::ZERO).max_attempts(1);
        let client = context.client_with(READS, &once).await?;
        if self.forget {
            client.forget_rate_limits().await?;
            context.ui.note("forgot what was known about this key");
            return Ok(());
        }
        let mut limits = client.synchronize_rate_limits().await;
        let mut throttled = None;
        // A server that was started just now has told nothing yet.
        if self.refresh || context.args.wants_mock() {
            throttled = match client.refresh_rate_limits().await {
                Ok(_) => None,
                // A 429 tells as much as a success.
                Err(error) if error.is_rate_limited() => Some(error),
                Err(error) => return Err(error.into()),
            };
            limits = client.rate_limits();
        }
        let is_known = !limits.windows.is_empty() || limits.blocked.is_some();
        if self.refresh && throttled.is_none() && !is_known {
            return Err(CliError::new(Kind::Service, "the service does not show its rate limits"));
        }
        let now = limits.service_time.unwrap_or_else(|| context.now());
        if context.options.is_table() {
            let text = layout(&limits, now, context);
            context.print(&text)?;
        } else {
            let rows: Vec<_> = limits.windows.iter().map(|window| row(window, now)).collect();
            output.document(&rows)?;
        }
        if let Some(store) = &limits.shared {
            trace::shared_store(&context.ui, store);
        }
        match (throttled, &limits.blocked) {
            (Some(error), _) => Err(error.into()),
            (None, Some(_)) if !context.options.is_table() => {
                context.ui.note(&waits(&limits, &context.facts.clock).unwrap_or_default());
                Ok(())
            }
            (None, None) if !is_known => {
                let hint = "`petstore limits --refresh` sends a request";
                context.ui.note_with_hint("no response yet with this key", Some(hint));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn row(window: &QuotaWindow, now: SystemTime) -> LimitRow {
    let QuotaWindow { quota, limit, remaining, reset, .. } = *window;
    let left = reset.duration_since(now).unwrap_or_default();
    LimitRow {
        quota,
        limit,
        remaining,
        reset: time::instant(reset),
        seconds_to_reset: time::seconds(left),
    }
}

/// Lays the limits out for people.
fn layout(limits: &RateLimits, now: SystemTime, context: &Context) -> String {
    let screen = &context.options.screen;
    let clock = Clock { zone: Some(context.env.time_zone()), ..context.facts.clock.clone() };
    let row = |(quota, name): (Quota, &str)| {
        let Some(window) = limits.windows.iter().find(|window| window.quota == quota) else {
            let none = Cell::none;
            return vec![
                Cell::new(name),
                none(),
                none(),
                Cell::new(""),
                Cell::new("not reported yet"),
            ];
        };
        let QuotaWindow { limit, remaining, reset, .. } = *window;
        let left = reset.duration_since(now).unwrap_or_default();
        let amount = Cell::new(count(remaining));
        vec![
            Cell::new(name),
            if remaining == 0 { amount.styled(YELLOW) } else { amount },
            Cell::new(count(limit)),
            Cell::new(screen.bar(remaining, limit)),
            Cell::new(clock.until(reset, left)).or_short(format!("in {}", time::duration(left))),
        ]
    };
    let head = vec![
        Head::new("QUOTA"),
        Head::new("LEFT").amount(),
        Head::new("LIMIT").amount().dropped(1),
        Head::new("").dropped(2),
        Head::new("RESETS"),
    ];
    let known = |quota| limits.windows.iter().any(|window| window.quota == quota);
    let mut quotas = vec![(Quota::Minute, "minute"), (Quota::Day, "day")];
    quotas.extend(known(Quota::Unknown).then_some((Quota::Unknown, "other")));
    let rows = quotas.into_iter().map(row).collect();
    if limits.windows.is_empty() && limits.blocked.is_none() {
        return String::new();
    }
    let mut text = Table { head, rows }.render(screen);
    let mut last = waits(limits, &clock).map(|waits| waits + ".").into_iter().collect::<Vec<_>>();
    if let Some(shared) = limits.shared.as_ref().filter(|shared| shared.members > 1) {
        let (in_flight, waiting) = (limits.in_flight, limits.waiting);
        let members = shared.members;
        last.push(format!(
            "Shared by {members} processes: {in_flight} in flight, {waiting} waiting."
        ));
    }
    if let Some(age) = limits.age {
        last.push(format!("From a response {} ago.", time::duration(age)));
    }
    if !last.is_empty() {
        text += &format!("{}\n", screen.wrap(&last.join(" "), 0));
    }
    text
}

/// Says what requests wait for.
fn waits(limits: &RateLimits, clock: &Clock) -> Option<String> {
    let blocked = limits.blocked.as_ref()?;
    let until = clock.until(blocked.until, blocked.remaining);
    Some(match blocked.reason {
        BlockReason::Quota(Quota::Minute) => format!("Requests wait for the minute quota, {until}"),
        BlockReason::Quota(Quota::Day) => format!("Requests wait for the day quota, {until}"),
        BlockReason::Ban => format!("Requests wait for the end of a ban, {until}"),
        _ => format!("Requests wait for a rate limit, {until}"),
    })
}
