//! The `petstore-mock` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    petstore_mock::cli::main()
}
