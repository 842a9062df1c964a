//! The commands that need no server, and the way from the arguments to each command.

use std::ffi::OsString;

use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;

use super::{
    args::{Command, DocumentFormat, MockArgs, OpenApiArgs, ServeArgs},
    exec, health,
    outcome::{DONE, FAILED, Io, USAGE},
    serve,
};
use crate::openapi::OpenApi;

/// A mock server that implements the whole Pet Store service.
///
/// Where the service's specification is silent, the mock takes the plainest reading. Each of these
/// is marked below as an assumption, with the flag that chooses another.
///
/// Without a command, `petstore-mock` serves.
#[derive(Parser)]
#[command(
    name = "petstore-mock",
    version,
    args_conflicts_with_subcommands = true,
    max_term_width = 100
)]
struct Program {
    #[command(subcommand)]
    command: Option<ProgramCommand>,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Subcommand)]
enum ProgramCommand {
    #[command(flatten)]
    Mock(Command),
    /// Prints a script by which a shell completes the commands and flags of petstore-mock.
    Completions {
        /// Shell to print it for.
        shell: Shell,
    },
}

/// Runs the whole command, `args[0]` being its name, and returns its exit status.
///
/// It makes a tokio runtime of its own, so it must not be called from within one.
pub fn run(args: impl IntoIterator<Item = OsString>, mut io: Io<'_>) -> u8 {
    let Program { command, serve } = match Program::try_parse_from(args) {
        Ok(program) => program,
        Err(error) => {
            let to = if error.use_stderr() { io.err } else { io.out };
            // Where the stream is closed, nobody reads it.
            let _ = write!(to, "{}", error.render());
            return u8::try_from(error.exit_code()).unwrap_or(USAGE);
        }
    };
    let command = match command {
        Some(ProgramCommand::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Program::command(), "petstore-mock", &mut script);
            return print(&mut io, &script);
        }
        Some(ProgramCommand::Mock(command)) => Some(command),
        None => None,
    };
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(MockArgs { command, serve }.run(io)),
        Err(error) => {
            let _ = writeln!(io.err, "petstore-mock: can't prepare to serve: {error}");
            FAILED
        }
    }
}

impl MockArgs {
    /// Runs the command on the tokio runtime this is awaited on, and returns the exit status. Messages
    /// go to `io`.
    ///
    /// `serve` and `exec` catch the process's signals: a program that embeds them must not end on
    /// SIGINT by itself.
    pub async fn run(self, mut io: Io<'_>) -> u8 {
        let done = match self.command {
            None => serve::run(&self.serve, &mut io).await,
            Some(Command::Serve(args)) => serve::run(&args, &mut io).await,
            Some(Command::Exec(args)) => exec::run(&args, &mut io).await,
            Some(Command::Health(args)) => return health::run(&args, &mut io).await,
            Some(Command::OpenApi(args)) => return openapi(&args, &mut io),
        };
        done.unwrap_or_else(|error| {
            let _ = writeln!(io.err, "petstore-mock: {error}");
            error.status
        })
    }
}

fn openapi(args: &OpenApiArgs, io: &mut Io<'_>) -> u8 {
    let document = if args.admin { OpenApi::Administration } else { OpenApi::Service };
    match args.format {
        DocumentFormat::Yaml => print(io, document.yaml().as_bytes()),
        DocumentFormat::Json => print(io, format!("{}\n", document.json()).as_bytes()),
    }
}

/// Prints a result. A reader that has closed the stream does not want the rest: that is no error.
fn print(io: &mut Io<'_>, text: &[u8]) -> u8 {
    match io.out.write_all(text).and_then(|()| io.out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            let _ = writeln!(io.err, "petstore-mock: can't print: {error}");
            FAILED
        }
        _ => DONE,
    }
}
