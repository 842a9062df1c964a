//! Tests of the client over real sockets.

mod kit;
mod logs;
mod service;
mod wire;

mod alone;
mod blocks;
mod bodies;
mod deprecation;
mod ended;
mod events;
mod extension;
mod faults;
mod folders;
mod futures;
mod hostile;
mod joining;
mod keys;
mod messages;
mod networks;
mod not_sent;
mod pace;
mod paging;
mod processed;
mod programs;
mod quotas;
mod requests;
mod responses;
mod retries;
mod retry_after;
mod routes;
mod runtimes;
mod secrecy;
mod settings;
mod shaping;
mod shared;
mod spans;
mod test_util;
mod timeouts;
mod together;
mod transport;

pub(crate) use kit::{START, answer, at, mock, reason, sources};
pub(crate) use wire::{Act, Seen, Wire};
