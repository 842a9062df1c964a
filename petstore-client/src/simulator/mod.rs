//! The ledger against a simulated service, in virtual time.
//!
//! A seed determines each run. The real ledger decides which requests may be sent. The service, the
//! network, the tasks and their queue are models.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the numbers of a simulation are far from any bound"
)]

mod alone;
mod bursts;
mod goals;
mod hostile_headers;
mod latencies;
mod lost;
mod order;
mod parsers;
mod picture;
mod properties;
mod quirks;
mod sharing;
mod table;
pub(crate) mod world;
