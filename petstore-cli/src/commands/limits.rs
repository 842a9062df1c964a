//! `petstore limits`.

use std::time::SystemTime;

use petstore_client::rate_limit::{Quota, QuotaWindow, RateLimits};
use serde_json::{Value, json};

use crate::env::System;
use crate::error::{CliError, Kind};
use crate::output::{ANY, Cell, Head, Printer, Shape, Table};
use crate::screen::{Screen, YELLOW};
use crate::session::words::limit_name;
use crate::session::{Connector, Purpose};
use crate::time::{self, Clock, count};
use crate::ui::Ui;

/// Show what is left of the rate limits, without a request.
#[derive(Debug, clap::Args)]
pub(crate) struct Limits {
    /// send one request first, even during a block
    #[arg(long, conflicts_with = "forget")]
    refresh: bool,

    /// forget the limits of this key, including blocks
    #[arg(long)]
    forget: bool,

    /// with --forget: all keys
    #[arg(long, requires = "forget")]
    all: bool,
}

/// Narrower terminals show resets without the time of day.
const MIN_WIDE: usize = 56;

const LIMITS: Shape = Shape {
    noun: "limits",
    fields: &["quota", "limit", "remaining", "reset", "secondsToReset"],
    ..ANY
};

impl Limits {
    pub(crate) async fn run(
        self,
        connector: &Connector,
        system: &System,
        printer: &Printer,
        ui: &Ui,
    ) -> Result<(), CliError> {
        let output = printer.start(LIMITS)?;
        if self.all {
            connector.forget_all_limits().await?;
            ui.note("forgot what was known about all keys");
            return Ok(());
        }
        let client = connector.connect(Purpose::Read).await?;
        if self.forget {
            client.forget_rate_limits().await?;
            ui.note("forgot what was known about this key");
            return Ok(());
        }
        let mut limits = client.synchronize_rate_limits().await;
        let mut throttled = None;
        // A new server has not answered anything yet.
        if self.refresh || connector.settings().is_mock() {
            throttled = match client.refresh_rate_limits().await {
                Err(error) if !error.is_rate_limited() => return Err(error.into()),
                // A 429 shows the limits too.
                refreshed => refreshed.err(),
            };
            limits = client.rate_limits();
        }
        let is_known = !limits.windows.is_empty() || limits.blocked.is_some();
        if self.refresh && throttled.is_none() && !is_known {
            return Err(CliError::new(
                Kind::Service,
                "the service does not show its rate limits",
            ));
        }
        let clock = connector.clock();
        let now = limits.service_time.unwrap_or_else(|| clock.now());
        let is_table = printer.is_table();
        if !is_table {
            let rows: Vec<_> = limits
                .windows
                .iter()
                .map(|window| row(window, now))
                .collect();
            output.document(&rows)?;
        } else if is_known {
            // A table is for people, wherever standard error goes.
            let local = clock.clone().local(system.time_zone());
            printer.print(&layout(&limits, now, &local, printer.screen()))?;
        }
        if let Some(store) = &limits.shared {
            connector.warn_of(store);
        }
        if let Some(error) = throttled {
            return Err(error.into());
        }
        if let (Some(waits), false) = (waits(&limits, clock), is_table) {
            ui.note(&format!("requests {waits}"));
        }
        if !is_known {
            let hint = "`petstore limits --refresh` sends a request";
            ui.note_with_hint("no response yet with this key", Some(hint));
        }
        Ok(())
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

/// Formats the limits for people.
fn layout(limits: &RateLimits, now: SystemTime, clock: &Clock, screen: &Screen) -> String {
    let is_narrow = screen.width().is_some_and(|width| width < MIN_WIDE);
    let mut rows = Vec::new();
    for (quota, name) in [
        (Quota::Minute, "minute"),
        (Quota::Day, "day"),
        (Quota::Unknown, "other"),
    ] {
        let window = limits.windows.iter().find(|window| window.quota == quota);
        let Some(QuotaWindow {
            limit,
            remaining,
            reset,
            ..
        }) = window.copied()
        else {
            if quota != Quota::Unknown {
                let (none, bar) = (Cell::none(), Cell::new(""));
                let reset = Cell::new("not reported yet");
                rows.push(vec![Cell::new(name), none.clone(), none, bar, reset]);
            }
            continue;
        };
        let left = reset.duration_since(now).unwrap_or_default();
        let amount = Cell::new(count(remaining));
        rows.push(vec![
            Cell::new(name),
            if remaining == 0 {
                amount.styled(YELLOW)
            } else {
                amount
            },
            Cell::new(count(limit)),
            Cell::new(screen.bar(remaining, limit)),
            Cell::new(if is_narrow {
                format!("in {}", time::duration(left))
            } else {
                clock.until(reset, left)
            }),
        ]);
    }
    let head = vec![
        Head::new("QUOTA"),
        Head::new("LEFT").amount(),
        Head::new("LIMIT").amount().dropped(1),
        Head::new("").dropped(2),
        Head::new("RESETS"),
    ];
    let table = Table::new(head, rows).render(screen);
    let waits = waits(limits, clock).map(|waits| format!("Requests {waits}."));
    let shared = limits
        .shared
        .as_ref()
        .filter(|shared| shared.members > 1)
        .map(|shared| {
            let (in_flight, waiting) = (limits.in_flight, limits.waiting);
            let members = shared.members;
            format!("Shared by {members} processes: {in_flight} in flight, {waiting} waiting.")
        });
    let age = limits
        .age
        .map(|age| format!("From a response {} ago.", time::duration(age)));
    let notes: Vec<_> = [waits, shared, age].into_iter().flatten().collect();
    match notes.is_empty() {
        true => table,
        false => format!("{table}{}\n", screen.wrap(&notes.join(" "), 0)),
    }
}

/// Returns what requests do: `wait for the minute quota, in 41 s (07:45:00)`.
fn waits(limits: &RateLimits, clock: &Clock) -> Option<String> {
    let blocked = limits.blocked.as_ref()?;
    let until = clock.until(blocked.until, blocked.remaining);
    Some(format!(
        "wait for the {}, {until}",
        limit_name(blocked.reason)
    ))
}
