//! Tests of rate limits over real sockets: blocks, quotas, shares, and processes that share a key.

mod blocks;
mod files;
mod in_flight;
mod programs;
mod quotas;
mod shared;
mod together;
