//! The `petstore-mock` binary as a process: what it prints, how it ends, and with which status. What
//! it serves is tested in process.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod help;
mod refusals;
mod serving;
mod support;
#[cfg(feature = "tls")]
mod tls;
