//! Tests of rate limits over real sockets: blocks, quotas, shares, and processes that share a key.

mod blocks;
mod in_flight;
mod joining;
mod networks;
mod pace;
mod processes;
mod programs;
mod quotas;
mod shaping;
mod shared;
mod together;
