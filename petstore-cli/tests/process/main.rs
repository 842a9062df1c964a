//! Tests of `petstore` as a process: pipes, signals, terminals, shells, and processes that share limits.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod commands;
mod completions;
mod export;
mod import;
mod limits;
#[cfg(feature = "mock")]
mod mock;
mod support;
#[cfg(feature = "mock")]
mod terminal;
#[cfg(any(feature = "rustls", feature = "aws-lc-rs", feature = "native-tls"))]
mod tls;
