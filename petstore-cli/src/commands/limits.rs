//! `petstore limits`.

use std::time::{Duration, SystemTime};

use petstore_client::{CallOptions, RateLimit};
use serde::Serialize;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;
use crate::report::Sent;
use crate::time;

/// Shows what is left of the rate limit
///
/// Asks the service for one pet, which itself uses one request. Where several quotas are in force,
/// such as the minute's and the day's, the service tells of one of them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore limits
  petstore limits -o json")]
pub(crate) struct Limits {}

const FIELDS: [&str; 4] = ["limit", "remaining", "reset", "secondsToReset"];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    limit: u64,
    remaining: u64,
    reset: String,
    seconds_to_reset: u64,
}

impl Limits {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let output = context.output(Some(&FIELDS))?;
        let client = context.client().await?;
        let at_once = CallOptions::new().max_wait(Duration::ZERO);
        let asked = client.pets().list().limit(1).with(at_once).send().await;
        // A refusal tells as much as a success.
        let (quota, now) = match &asked {
            Ok(page) => {
                context.report.called(Sent::new("listPets"), page, |page| page.len().into());
                (page.rate_limit(), page.date())
            }
            Err(error) => (error.rate_limit(), error.date()),
        };
        match (quota, asked) {
            (Some(quota), _) => show(output, quota, now.unwrap_or_else(|| context.now())).await,
            (None, Err(error)) => Err(error.into()),
            (None, Ok(_)) => {
                Err(CliError::new(Exit::Service, "the service did not tell its rate limit"))
            }
        }
    }
}

async fn show(output: Output, quota: RateLimit, now: SystemTime) -> Result<(), CliError> {
    let shown = Shown {
        limit: quota.limit,
        remaining: quota.remaining,
        reset: time::instant(quota.reset),
        seconds_to_reset: time::seconds_until(quota.reset, now),
    };
    output.document(&shown).await
}
