//! Tests of the client over real sockets.

mod kit;
mod logs;
mod service;
mod wire;

mod closing;
mod deprecation;
mod errors;
mod extension;
mod first_lines;
mod keys;
mod limits;
mod observability;
mod paging;
mod requests;
mod settings;
mod test_util;
mod transport;

pub(crate) use kit::{START, answer, at, mock, reason, sources};
pub(crate) use wire::{Act, Seen, Wire};
