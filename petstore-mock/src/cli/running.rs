//! The commands that ask a running mock: `health`, for containers and scripts without another client,
//! and `report`, for suites that run beside the mock.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use super::{
    assume::seconds,
    client::{AdminClient, TargetArgs, admin_token},
    gate::GateArgs,
    outcome::{CliError, DONE, USAGE, print},
};
use crate::{clock::real_time, report::Report};

/// The wait between two checks of `health --wait`.
const STEP: Duration = Duration::from_millis(50);

#[derive(Args)]
pub(super) struct HealthArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Seconds to wait for the mock to be ready (default: asks once).
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    wait: Option<Duration>,
}

#[derive(Args)]
#[command(after_help = "Example:\n  petstore-mock report http://petstore:4010 --fail-on warnings")]
pub(super) struct ReportArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// File with the token of the mock's administration, if it runs on another machine.
    ///
    /// The variable PETSTORE_MOCK_ADMIN_TOKEN also sets it.
    #[arg(long, value_name = "FILE")]
    admin_token_file: Option<PathBuf>,

    #[command(flatten)]
    gate: GateArgs,
}

/// Checks whether a mock is ready, until it is or the time is over.
pub(super) async fn health(args: &HealthArgs) -> Result<u8, CliError> {
    let start = real_time::now();
    loop {
        match check(&args.target).await {
            Ok(()) => {
                print("ok\n")?;
                return Ok(DONE);
            }
            Err(error) if error.status() == USAGE => return Err(error),
            Err(error) if start.elapsed() >= args.wait.unwrap_or_default() => return Err(error),
            Err(_) => real_time::sleep(STEP).await,
        }
    }
}

async fn check(target: &TargetArgs) -> Result<(), CliError> {
    let client = AdminClient::new(target, None)?;
    let response = client.get("/_mock/health").await?;
    let place = client.place();
    Err(CliError::new(match response.status().as_u16() {
        200 if *response.body() == r#"{"status":"ok"}"# => return Ok(()),
        507 => format!("the mock at {place} is not ready: its data file cannot be written"),
        _ => format!("the server at {place} is not a mock that is ready"),
    }))
}

/// Prints and judges the compliance report of a running mock.
pub(super) async fn report(args: &ReportArgs) -> Result<u8, CliError> {
    let token = admin_token(args.admin_token_file.as_deref())?;
    let client = AdminClient::new(&args.target, token)?;
    let response = client.get("/_mock/report.json").await?;
    let problem = match response.status().as_u16() {
        200 => match serde_json::from_slice::<Report>(response.body()) {
            Ok(report) => {
                print(&report.to_text())?;
                return args.gate.judge(&report, "check the base URL of the client");
            }
            Err(_) => "the response is not a report of this version of petstore-mock",
        },
        401 => "it needs the token of its administration: set --admin-token-file",
        404 => {
            "it shows its report to its own machine only, or it is no mock: start it with \
             --admin-token-file, and give the file here too"
        }
        _ => "the response is not a report",
    };
    let place = client.place();
    Err(CliError::new(format!("no report from {place}: {problem}")))
}
