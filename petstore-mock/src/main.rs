//! The `petstore-mock` binary: passes arguments, streams and variables to the library.

use std::{io::IsTerminal as _, process::ExitCode};

use petstore_mock::cli::{self, Io};

#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "the entry point reads the process environment"
)]
fn main() -> ExitCode {
    let names = std::env::vars_os().map(|(name, _)| name);
    for warning in cli::warnings(names) {
        eprintln!("petstore-mock: {warning}");
    }
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    let is_terminal = out.is_terminal();
    let io = Io {
        out: &mut out,
        err: &mut err,
        is_terminal,
        is_verbose: false,
        variable: &|name| std::env::var_os(name),
    };
    ExitCode::from(cli::run(std::env::args_os(), io))
}
