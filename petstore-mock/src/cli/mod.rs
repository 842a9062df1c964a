//! The command line of the mock: the `petstore-mock` binary, and its `serve` for other binaries to
//! embed. It turns flags into a [`Builder`](crate::Builder), and signals into a clean stop.
//!
//! Standard output carries the one line that says where the server listens, and nothing else.

mod args;
mod error;
mod limits;
mod port_file;
mod run;
mod signals;

pub use self::{
    args::ServeArgs,
    error::ServeError,
    run::{run, serve},
};
