//! The command line of the mock: the `petstore-mock` binary, and the same for other binaries to embed.
//!
//! Standard output carries what was asked for: the one line that says where the server listens, or a
//! document. All else goes to standard error.

mod args;
mod command;
mod error;
mod exec;
pub mod exit;
mod health;
mod io;
mod limits;
mod report;
mod run;
mod serve;
mod signals;
#[cfg(feature = "tls")]
mod trust;
mod whole_file;

use self::{args::ServeArgs, error::ServeError};
pub use self::{command::MockArgs, io::Io, run::run};
