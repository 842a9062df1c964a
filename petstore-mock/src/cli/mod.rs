//! The command line of the mock: the binary `petstore-mock`, and its arguments for other programs
//! to embed.
//!
//! Standard output carries the result: the line with the server's URL, or a document. Everything
//! else goes to standard error.

mod assume;
mod client;
mod exec;
mod flags;
mod gate;
mod greeting;
mod health;
mod outcome;
mod report;
mod request_log;
mod run;
mod serve;
mod signals;
mod variables;

pub use self::{
    outcome::Io,
    run::{MockArgs, run},
    variables::warnings,
};
