//! The process: gathers arguments, variables and streams, and hands them to the library.

mod terminal;

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write};
use std::process::ExitCode;

use petstore_cli::{Dirs, Env, Stream};

#[expect(clippy::disallowed_methods, reason = "the edge where the process is met")]
fn main() -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "error: could not start: {problem}");
            return ExitCode::FAILURE;
        }
    };
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value));
    let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
    let vars = std::env::vars_os().filter_map(text).collect();
    let terminal = terminal::Terminal::default();
    let env = Env {
        args: std::env::args_os().collect(),
        dirs: Dirs::from_vars(&vars),
        vars,
        prompt: terminal.prompt(),
        stdin: Box::new(std::io::stdin()),
        stdout: Stream { is_terminal: stdout.is_terminal(), writer: Box::new(stdout) },
        stderr: Stream { is_terminal: stderr.is_terminal(), writer: Box::new(stderr) },
        now: std::time::SystemTime::now,
        width: terminal_size::terminal_size().map(|(width, _)| width.0),
        interrupts: Box::pin(futures_util::stream::unfold((), |()| async {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
            Some(((), ()))
        })),
    };
    let exit = runtime.block_on(petstore_cli::run(env));
    // A name look-up that still hangs must not keep the process.
    runtime.shutdown_background();
    terminal.restore();
    ExitCode::from(exit.code())
}
