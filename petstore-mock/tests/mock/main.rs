//! The mock across sockets and as a process: every operation, status and header of the contract, and every
//! decision where the contract is silent. It is asked by reqwest and by raw bytes, never by our own client.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

#[path = "../openapi/mod.rs"]
mod openapi;

mod access;
mod administration;
mod arranging;
mod bans;
mod blocking;
mod bodies;
#[cfg(unix)]
mod commands;
mod compliance;
mod cors;
mod credentials;
mod data;
mod deprecation;
mod documents;
mod durable;
mod faults;
mod handles;
mod help;
mod journal;
mod lifecycle;
mod messages;
mod operations;
mod paging;
mod process;
mod protocols;
mod quotas;
mod refusals;
mod routing;
mod serving;
mod slow_clients;
mod socket_faults;
mod support;
mod time;
mod tls;
mod verification;
mod watching;
