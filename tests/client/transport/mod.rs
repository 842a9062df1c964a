//! Tests of transports, runtimes and futures.

mod custom;
mod futures;
mod runtimes;
