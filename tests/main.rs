//! The tests of several crates, as one binary.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod cli;
mod client;
mod contract;
mod hostile;
#[path = "../petstore-mock/tests/openapi/mod.rs"]
mod openapi;
mod tidy;
