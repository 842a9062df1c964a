//! Tests of the mock over sockets and as a process: every operation, status and header of the
//! contract, and every assumption. Requests come from reqwest and raw bytes, never from this
//! project's client.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

#[path = "../openapi/mod.rs"]
mod openapi;

mod access;
mod administration;
mod bodies;
mod compliance;
mod credentials;
mod data;
mod deprecation;
mod documents;
mod durable;
#[cfg(unix)]
mod exec;
mod faults;
#[cfg(unix)]
mod first_minute;
#[cfg(unix)]
mod gate;
mod handles;
mod isolation;
mod journal;
mod lifecycle;
mod operations;
mod process;
mod protocols;
mod quotas;
mod refusals;
mod routes;
mod routing;
mod serving;
mod socket_faults;
mod support;
mod time;
mod tls;
mod watching;
