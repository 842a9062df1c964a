//! `health`: checks whether a mock is ready, for containers and scripts without another client.

use std::time::Duration;

use clap::Args;

use super::{
    assume::seconds,
    client::{AdminClient, Response, TargetArgs},
    outcome::{CliError, DONE, Io},
};
use crate::clock::real_time;

#[derive(Args, Clone)]
pub(super) struct HealthArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Seconds to wait for the mock to be ready (default: asks once).
    #[arg(
        long,
        env = "PETSTORE_MOCK_WAIT",
        hide_env = true,
        value_name = "SECONDS"
    )]
    #[arg(value_parser = seconds, default_value = "0", hide_default_value = true)]
    wait: Duration,
}

/// The wait between two checks.
const STEP: Duration = Duration::from_millis(50);

pub(super) async fn run(args: &HealthArgs, io: &mut Io<'_>) -> Result<u8, CliError> {
    let client = AdminClient::new(&args.target, io)?;
    let start = real_time::now();
    loop {
        let Err(problem) = check(&client).await else {
            let _ = writeln!(io.out, "ok");
            return Ok(DONE);
        };
        if start.elapsed() >= args.wait {
            return Err(CliError::new(problem));
        }
        real_time::sleep(STEP).await;
    }
}

/// Returns why the mock is not ready, if it is not.
async fn check(client: &AdminClient) -> Result<(), String> {
    let place = client.place();
    let response = client
        .get("/_mock/health")
        .await
        .map_err(|problem| format!("no mock answers at {place}: {problem}"))?;
    match &response {
        Response { status: 200, body } if body == br#"{"status":"ok"}"# => Ok(()),
        Response { status: 507, .. } => Err(format!(
            "the mock at {place} is not ready: its data file cannot be written"
        )),
        _ => Err(format!("the server at {place} is not a mock that is ready")),
    }
}
