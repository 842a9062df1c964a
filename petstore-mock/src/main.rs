//! The `petstore-mock` binary: passes arguments, streams and variables to the library.

use std::process::ExitCode;

use petstore_mock::cli::{self, Io};

#[expect(
    clippy::disallowed_methods,
    reason = "the entry point reads the process environment"
)]
fn main() -> ExitCode {
    let io = Io {
        out: &mut std::io::stdout(),
        err: &mut std::io::stderr(),
        admin_token: std::env::var("PETSTORE_MOCK_ADMIN_TOKEN").ok(),
        trusted: std::env::var_os("SSL_CERT_FILE").map(Into::into),
    };
    ExitCode::from(cli::run(std::env::args_os(), io))
}
