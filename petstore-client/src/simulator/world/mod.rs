//! The simulated world: clients, the network, the service, and virtual time.

pub(super) mod client;
pub(super) mod network;
mod observations;
mod rng;
pub(super) mod run;
pub(crate) mod scenarios;
pub(super) mod service;
pub(super) mod setup;
pub(super) mod window;
