//! The command line of the mock: the `petstore-mock` binary, and the same for other binaries to embed.
//!
//! Standard output carries what was asked for: the one line that says where the server listens, or a
//! document. All else goes to standard error.

mod args;
mod exec;
mod health;
mod outcome;
mod report;
mod run;
mod serve;
mod signals;

pub use self::{args::MockArgs, outcome::Io, run::run};
