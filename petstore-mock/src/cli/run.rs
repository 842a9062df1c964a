//! Runs the commands.

use std::{ffi::OsString, fmt};

use clap::{Args, Parser, Subcommand, ValueEnum, builder::FalseyValueParser};

use super::{
    exec::{self, ExecArgs},
    flags::ServeArgs,
    health::{self, HealthArgs},
    outcome::{DONE, FAILED, Io, USAGE},
    report::{self, ReportArgs},
    serve,
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
    after_help = VARIABLES
)]
pub(super) struct Program {
    /// Log each request on stderr: method, path, key, status, duration and faults.
    #[arg(short, long, global = true)]
    #[arg(env = "PETSTORE_MOCK_VERBOSE", hide_env = true, value_parser = FalseyValueParser::new())]
    verbose: bool,
    #[command(flatten)]
    mock: MockArgs,
}

/// The arguments of the mock: a command, or the flags of `serve`.
///
/// Another program can embed them: see [`MockArgs::run`].
#[derive(Args, Clone)]
#[command(args_conflicts_with_subcommands = true)]
pub struct MockArgs {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

impl fmt::Debug for MockArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The arguments contain keys, so they are not shown.
        f.debug_struct("MockArgs").finish_non_exhaustive()
    }
}

#[derive(Clone, Subcommand)]
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
    OpenApi(OpenApiArgs),
}

/// Runs the program with these arguments, of which `args[0]` is its name, and returns its exit
/// status.
///
/// It creates a tokio runtime, so it must not be called within one.
pub fn run(args: impl IntoIterator<Item = OsString>, mut io: Io<'_>) -> u8 {
    let Program { verbose, mock } = match Program::try_parse_from(args) {
        Ok(program) => program,
        Err(error) => {
            let to = if error.use_stderr() { io.err } else { io.out };
            // If the stream is closed, nobody would read the message.
            let _ = write!(to, "{}", error.render());
            return u8::try_from(error.exit_code()).unwrap_or(USAGE);
        }
    };
    io.is_verbose |= verbose;
    match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime.block_on(mock.run(io)),
        Err(error) => {
            let _ = writeln!(io.err, "petstore-mock: cannot prepare to serve: {error}");
            FAILED
        }
    }
}

impl MockArgs {
    /// Runs the command on the current tokio runtime, and returns its exit status.
    ///
    /// `serve` and `exec` handle the process's signals, so a program that embeds them must not exit
    /// on SIGINT itself.
    pub async fn run(self, mut io: Io<'_>) -> u8 {
        let done = match self.command {
            None => serve::run(&self.serve, &mut io).await,
            Some(Command::Serve(args)) => serve::run(&args, &mut io).await,
            Some(Command::Exec(args)) => exec::run(&args, &mut io).await,
            Some(Command::Health(args)) => health::run(&args, &mut io).await,
            Some(Command::Report(args)) => report::run(&args, &mut io).await,
            Some(Command::OpenApi(args)) => Ok(openapi(&args, &mut io)),
        };
        done.unwrap_or_else(|error| {
            let _ = writeln!(io.err, "petstore-mock: {error}");
            error.status()
        })
    }
}

#[derive(Args, Clone)]
struct OpenApiArgs {
    /// Output format.
    #[arg(
        long,
        env = "PETSTORE_MOCK_FORMAT",
        hide_env = true,
        value_name = "FORMAT",
        default_value = "yaml"
    )]
    format: DocumentFormat,

    /// Print the document of the mock's administration instead.
    #[arg(long, env = "PETSTORE_MOCK_ADMIN", hide_env = true, value_parser = FalseyValueParser::new())]
    admin: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum DocumentFormat {
    Yaml,
    Json,
}

fn openapi(args: &OpenApiArgs, io: &mut Io<'_>) -> u8 {
    let document = if args.admin {
        OpenApi::Administration
    } else {
        OpenApi::Service
    };
    match args.format {
        DocumentFormat::Yaml => print(io, document.yaml().as_bytes()),
        DocumentFormat::Json => print(io, format!("{}\n", document.json()).as_bytes()),
    }
}

/// Prints a result. It is not an error if the reader has closed the stream.
fn print(io: &mut Io<'_>, text: &[u8]) -> u8 {
    match io.out.write_all(text).and_then(|()| io.out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            let _ = writeln!(io.err, "petstore-mock: cannot print: {error}");
            FAILED
        }
        _ => DONE,
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory as _};

    use super::*;

    /// Finds the flags of a command and its subcommands that no variable of that name can set.
    fn without_variable(command: &Command, found: &mut Vec<String>) {
        for flag in command.get_arguments() {
            let Some(name) = flag
                .get_long()
                .filter(|name| !matches!(*name, "help" | "version"))
            else {
                continue;
            };
            let expected = format!("PETSTORE_MOCK_{}", name.replace('-', "_").to_uppercase());
            if flag.get_env().is_none_or(|variable| *variable != *expected) {
                found.push(format!("{} --{name}", command.get_name()));
            }
        }
        for subcommand in command.get_subcommands() {
            without_variable(subcommand, found);
        }
    }

    #[test]
    fn the_readme_names_each_flag_and_command() {
        fn check(command: &Command) {
            let readme = include_str!("../../README.md");
            for name in command.get_arguments().filter_map(|flag| flag.get_long()) {
                let is_named = readme.contains(&format!("`--{name}"));
                let is_usual = matches!(name, "help" | "version");
                assert!(is_named || is_usual, "--{name}");
            }
            for subcommand in command.get_subcommands() {
                let name = subcommand.get_name();
                assert!(readme.contains(&format!("| `{name}")), "{name}");
                check(subcommand);
            }
        }
        check(&Program::command());
    }

    #[test]
    fn each_flag_has_a_variable_of_its_name() {
        let mut found = Vec::new();
        without_variable(&Program::command(), &mut found);
        assert_eq!(found, [""; 0]);
    }
}
