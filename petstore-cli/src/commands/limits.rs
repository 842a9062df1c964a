//! `petstore limits`.

use petstore_client::CallOptions;
use serde::Serialize;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Records;
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
        let client = context.client().await?;
        let asked = client.pets().list().limit(1).with(CallOptions::new()).send().await?;
        context.report.called("listPets", &asked);
        let Some(quota) = asked.rate_limit() else {
            return Err(CliError::new(Exit::Service, "the service did not tell its rate limit"));
        };
        let shown = Shown {
            limit: quota.limit,
            remaining: quota.remaining,
            reset: time::instant(quota.reset),
            seconds_to_reset: time::seconds_until(quota.reset, (context.now)()),
        };
        let columns = ["limit", "remaining", "reset", "secondsToReset"];
        let records = Records::new(&shown, &columns)
            .map_err(|problem| CliError::new(Exit::Internal, problem))?;
        context.print(&records)
    }
}
