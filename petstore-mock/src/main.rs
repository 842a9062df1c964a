//! The `petstore-mock` binary: hands its arguments and streams to the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    let status = petstore_mock::cli::run(
        std::env::args_os(),
        &mut std::io::stdout(),
        &mut std::io::stderr(),
    );
    ExitCode::from(status)
}
