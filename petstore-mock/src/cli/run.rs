//! Runs the commands.

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use tokio::runtime::Runtime;

use super::{
    client::{self, HealthArgs, ReportArgs},
    exec::{self, ExecArgs},
    flags::ServeArgs,
    outcome::{CliError, DONE, USAGE, print, say},
    serve,
    variables::{blame, warn_of_unknown, with_variables},
};
use crate::openapi::OpenApi;

const VARIABLES: &str = "Each flag has a variable, which the flag overrides: PETSTORE_MOCK_ and the \
                         flag's name, such as\nPETSTORE_MOCK_START_AT=2030-12-04. Several keys, assumptions \
                         or rules are separated by spaces.";

/// A mock server that implements the whole Pet Store service.
///
/// Where the service's specification is silent, the mock makes assumptions. `--assume` changes
/// them.
///
/// Without a command, `petstore-mock` serves.
#[derive(Parser)]
#[command(
    name = "petstore-mock",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    after_help = VARIABLES
)]
struct Program {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Serve until SIGINT or SIGTERM (default command).
    Serve(Box<ServeArgs>),
    /// Serve while another command runs, and exit with its status.
    ///
    /// The command finds the service in PETSTORE_BASE_URL, its key in PETSTORE_API_KEY, and the
    /// mock's administration in PETSTORE_MOCK_URL. Signals are passed on to it.
    ///
    /// Exit status: the status of the command, or 128 plus the number of the signal that ended it;
    /// 126 if it cannot be run, 127 if it is not found. If it ended with 0, but the report has
    /// findings that --fail-on names, or --fail-on is set and there was no request: 3.
    Exec(Box<ExecArgs>),
    /// Check whether a mock is ready: exit status 0 if it is.
    Health(HealthArgs),
    /// Print the compliance report of a running mock, and judge it.
    ///
    /// Exit status: 3 if the report has findings that --fail-on names, or --fail-on is set and there was
    /// no request; 1 if the mock does not answer.
    Report(ReportArgs),
    /// Print the OpenAPI document of the service.
    #[command(name = "openapi")]
    OpenApi {
        /// Print the document of the mock's administration instead.
        #[arg(long)]
        admin: bool,
    },
}

/// Runs `petstore-mock` with the arguments and the environment of the process.
#[must_use]
pub fn main() -> ExitCode {
    let command = with_variables(Program::command());
    warn_of_unknown(&command);
    let matches = command.clone().try_get_matches();
    let program = matches.and_then(|matches| Program::from_arg_matches(&matches));
    let program = program.unwrap_or_else(|error| {
        if error.use_stderr() {
            blame(&command, &error.to_string());
        }
        error.exit()
    });
    let ended = match Runtime::new() {
        Ok(runtime) => runtime.block_on(run(&program)),
        Err(error) => Err(error.into()),
    };
    ExitCode::from(ended.unwrap_or_else(|error| {
        if error.status() == USAGE {
            blame(&command, &error.to_string());
        }
        say(format_args!("petstore-mock: {error}"));
        error.status()
    }))
}

async fn run(program: &Program) -> Result<u8, CliError> {
    match &program.command {
        None => serve::run(&program.serve).await,
        Some(Command::Serve(args)) => serve::run(args).await,
        Some(Command::Exec(args)) => exec::run(args).await,
        Some(Command::Health(args)) => client::health(args).await,
        Some(Command::Report(args)) => client::report(args).await,
        Some(Command::OpenApi { admin: false }) => show(OpenApi::Service),
        Some(Command::OpenApi { admin: true }) => show(OpenApi::Administration),
    }
}

fn show(document: OpenApi) -> Result<u8, CliError> {
    print(document.yaml())?;
    Ok(DONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_names_each_flag_and_command() {
        fn check(command: &clap::Command) {
            let readme = include_str!("../../README.md");
            for name in command.get_arguments().filter_map(|flag| flag.get_long()) {
                assert!(readme.contains(&format!("`--{name}")), "--{name}");
            }
            for subcommand in command.get_subcommands() {
                let name = subcommand.get_name();
                assert!(readme.contains(&format!("| `{name}")), "{name}");
                check(subcommand);
            }
        }
        check(&Program::command());
    }
}
