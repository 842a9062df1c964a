//! `petstore limits`.

use std::time::{Duration, SystemTime};

use petstore_client::{CallOptions, Client, Quota, QuotaStatus, RateLimits};
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
/// minute's and the day's, each answer tells of one of them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore limits
  petstore limits --refresh -o json")]
pub(crate) struct Limits {
    /// Asks the service, whatever is known
    #[arg(long)]
    refresh: bool,
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
        let client = context.client().await?;
        let mut limits = client.rate_limit();
        if self.refresh || (limits.quotas.is_empty() && limits.blocked.is_none()) {
            limits = ask(&client).await?;
        }
        let now = limits.service_time.unwrap_or_else(|| context.now());
        let shown = limits.quotas.iter().map(|quota| show(quota, now, is_table));
        output.document(&shown.collect::<Vec<_>>()).await?;
        if let Some(blocked) = &limits.blocked {
            let (quota, until) = (blocked.quota, time::instant(blocked.until));
            context.report.note(&format!("{quota} holds requests back until {until}"));
        }
        Ok(())
    }
}

/// Asks the service, unless it wants to be left alone.
async fn ask(client: &Client) -> Result<RateLimits, CliError> {
    let at_once = CallOptions::new().max_wait(Duration::ZERO);
    let asked = client.pets().list().limit(1).with(at_once).send().await;
    let limits = client.rate_limit();
    match asked {
        // A refusal tells as much as a success.
        Err(error) if !error.is_rate_limited() => Err(error.into()),
        _ if limits.quotas.is_empty() && limits.blocked.is_none() => {
            Err(CliError::new(Exit::Service, "the service did not tell its rate limit"))
        }
        _ => Ok(limits),
    }
}

fn show(quota: &QuotaStatus, now: SystemTime, with_bar: bool) -> Shown {
    let QuotaStatus { quota, limit, remaining, reset, .. } = *quota;
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
