//! `report`: prints and judges the compliance report of a running mock.

use std::path::PathBuf;

use clap::Args;

use super::{
    client::{AdminClient, TargetArgs, admin_token},
    gate::{GateArgs, Origin, Written},
    outcome::{CliError, Io},
};

#[derive(Args, Clone)]
#[command(after_help = "Example:\n  petstore-mock report http://petstore:4010 --fail-on warnings")]
pub(super) struct ReportArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// File with the token of the mock's administration, if it runs on another machine.
    ///
    /// The variable PETSTORE_MOCK_ADMIN_TOKEN also sets it.
    #[arg(
        long,
        env = "PETSTORE_MOCK_ADMIN_TOKEN_FILE",
        hide_env = true,
        value_name = "FILE"
    )]
    admin_token_file: Option<PathBuf>,

    #[command(flatten)]
    gate: GateArgs,
}

pub(super) async fn run(args: &ReportArgs, io: &mut Io<'_>) -> Result<u8, CliError> {
    args.gate.check()?;
    let token = admin_token(args.admin_token_file.as_deref(), io)?;
    let client = AdminClient::new(&args.target, io)?.with_token(token);
    let report = Written {
        text: fetch(&client, "/_mock/report.txt").await?,
        json: fetch(&client, "/_mock/report.json").await?,
        junit: fetch(&client, "/_mock/report.xml").await?,
    };
    args.gate.finish(&report, Origin::Running, io)
}

async fn fetch(client: &AdminClient, path: &str) -> Result<String, CliError> {
    let place = client.place();
    let response = client
        .get(path)
        .await
        .map_err(|problem| CliError::new(format!("no mock answers at {place}: {problem}")))?;
    let problem = match response.status {
        200 => match String::from_utf8(response.body) {
            Ok(text) => return Ok(text),
            Err(_) => "its report is not UTF-8",
        },
        401 => "it needs the token of its administration: set --admin-token-file",
        404 => {
            "it shows its report to its own machine only, or it is no mock: start it with \
             --admin-token-file, and give the file here too"
        }
        _ => "the response is not a report",
    };
    Err(CliError::new(format!("no report from {place}: {problem}")))
}
