//! The limiter of one key in one process, for clients with the same settings: calls wait for a permit, send,
//! and report the response.
//!
//! The ledger in the store decides how many may send. Read `state` (what is known between two exchanges),
//! `exchange`, and `acquire` (a waiting call) in this order.

mod alone;
mod permits;
mod queue;
mod state;

mod alarm;
mod exchange;

mod acquire;
mod control;

pub(crate) use self::acquire::{Acquire, Permit, Refused};
pub(crate) use self::exchange::Limiter;
pub(crate) use self::state::Wait;
