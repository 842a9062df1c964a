//! Builds a client.

mod client_builder;
mod hooks;
mod quota;

pub use client_builder::ClientBuilder;
