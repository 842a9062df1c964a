//! `petstore limits`.

use std::time::{Duration, SystemTime};

use petstore_client::RequestOptions;
use petstore_client::rate_limit::{Blocked, Quota, QuotaWindow, SharedStatus};
use serde::Serialize;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::OutputFormat;
use crate::time;

/// Shows what is left of the rate limits
///
/// What earlier runs were told, as long as it goes; where nothing is known, the service is asked
/// for one pet, which itself uses one request. Where several quotas are in force, such as the
/// minute's and the day's, each answer tells of one of them. Ends with exit code 7 where the
/// service was asked and answered 429; what is known is shown all the same.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore limits
  petstore limits --refresh -o json
  petstore limits --forget")]
pub(crate) struct Limits {
    /// Asks the service with one request, whatever is known, and even while it says to wait
    #[arg(long)]
    refresh: bool,

    /// Removes what is known of this key, or of all keys; the next request asks anew
    #[arg(long, value_name = "WHICH", conflicts_with = "refresh")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "key")]
    forget: Option<Forget>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Forget {
    Key,
    All,
}

const FIELDS: [&str; 6] = ["quota", "limit", "remaining", "reset", "secondsToReset", "left"];

/// How many characters a bar has.
const BAR: u64 = 20;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    quota: Quota,
    limit: u64,
    remaining: u64,
    reset: String,
    seconds_to_reset: u64,
    /// What is left as a bar, where people look.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<String>,
}

impl Limits {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let is_table = context.look().format() == OutputFormat::Table;
        let fields = if is_table { &FIELDS[..] } else { &FIELDS[..5] };
        let output = context.output(Some(fields))?;
        // One request, which neither waits for a limit nor is repeated.
        let once = RequestOptions::new().max_wait(Duration::ZERO).max_attempts(1);
        if matches!(self.forget, Some(Forget::All)) {
            context.forget_all_limits().await?;
            context.report.note("forgot what was known about all keys");
            return Ok(());
        }
        let client = context.client_set_to(&once).await?;
        if self.forget.is_some() {
            client.forget_rate_limits().await?;
            context.report.note("forgot what was known about this key");
            return Ok(());
        }
        let mut limits = client.synchronize_rate_limits().await;
        let mut throttled = None;
        if self.refresh || (limits.windows.is_empty() && limits.blocked.is_none()) {
            throttled = match client.refresh_rate_limits().await {
                Ok(_) => None,
                // A 429 tells as much as a success.
                Err(error) if error.is_rate_limited() => Some(error),
                Err(error) => return Err(error.into()),
            };
            limits = client.rate_limits();
            if throttled.is_none() && limits.windows.is_empty() && limits.blocked.is_none() {
                return Err(CliError::new(
                    Exit::Service,
                    "the service did not tell its rate limit",
                ));
            }
        }
        let now = limits.service_time.unwrap_or_else(|| context.now());
        let shown = limits.windows.iter().map(|window| show(window, now, is_table));
        output.document(&shown.collect::<Vec<_>>()).await?;
        match &limits.shared {
            Some(SharedStatus { problem: Some(_), .. }) => {
                limits.shared.iter().for_each(|store| context.report.store(store));
            }
            Some(SharedStatus { members: members @ 2.., location, .. }) if is_table => {
                context.report.note(&format!("shared by {members} processes through {location}"));
            }
            _ => {}
        }
        match (throttled, &limits.blocked) {
            (Some(error), _) => {
                let hints = vec!["asking again before the time may get the key banned".to_owned()];
                Err(CliError { hints, ..error.into() })
            }
            (None, Some(blocked)) => {
                context.report.note(&blocks(blocked));
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }
}

/// Says what blocks requests, until when and for how much longer.
fn blocks(blocked: &Blocked) -> String {
    let (until, seconds) = (time::instant(blocked.until), time::seconds(blocked.remaining));
    format!("{} blocks requests until {until} (another {seconds} s)", blocked.reason)
}

fn show(window: &QuotaWindow, now: SystemTime, with_bar: bool) -> Shown {
    let QuotaWindow { quota, limit, remaining, reset, .. } = *window;
    Shown {
        quota,
        limit,
        remaining,
        reset: time::instant(reset),
        seconds_to_reset: time::seconds_until(reset, now),
        left: with_bar.then(|| bar(remaining, limit)),
    }
}

/// Draws how much is left: a full bar only where all is, an empty one only where nothing is.
fn bar(remaining: u64, limit: u64) -> String {
    let part = |of: u64| {
        let whole = u128::from(limit.max(1));
        u64::try_from(u128::from(remaining) * u128::from(of) / whole).unwrap_or(of).min(of)
    };
    let full = part(BAR).max(u64::from(remaining > 0));
    let drawn = (0..BAR).map(|at| if at < full { '█' } else { '░' });
    format!("{} {:>3}%", drawn.collect::<String>(), part(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_a_full_bar_for_all_and_an_empty_one_for_nothing() {
        assert_eq!(bar(60, 60), "████████████████████ 100%");
        assert_eq!(bar(59, 60), "███████████████████░  98%");
        assert_eq!(bar(1, 1_000), "█░░░░░░░░░░░░░░░░░░░   0%");
        assert_eq!(bar(0, 60), "░░░░░░░░░░░░░░░░░░░░   0%");
        assert_eq!(bar(9, 0), bar(60, 60));
    }
}
