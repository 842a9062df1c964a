//! The tests that span the crates, as one binary. A file without a `mod` line would silently not
//! be compiled; `tidy` notices.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod cli;
mod client;
mod contract;
mod hostile;
#[path = "../petstore-mock/tests/openapi/mod.rs"]
mod openapi;
mod tidy;
