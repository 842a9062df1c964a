//! The command line of `petstore-mock`.
//!
//! Standard output carries the result: the line with the server's URL, or a document. Everything
//! else goes to standard error.

mod assume;
mod client;
mod exec;
mod flags;
mod gate;
mod github;
mod outcome;
mod request_log;
mod run;
mod serve;
mod signals;
mod variables;

pub use self::run::main;
