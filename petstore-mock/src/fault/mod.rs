//! Faults: the requests that they hit, their effects, and their hit counts. This module is pure;
//! the router applies the faults.

mod random;
mod socket_effects;

mod change;
mod headers;

mod effect;

mod spec;

mod registry;

mod builder;

pub use self::{
    builder::{FaultBuilder, FaultGuard},
    effect::{Delay, Effect},
    headers::{RateFault, RetryAfter},
    registry::{FaultStatus, Faults},
    spec::Fault,
};
pub(crate) use self::{
    registry::ActiveFaults,
    socket_effects::{EndMode, Pace, SocketPlan},
    spec::RequestView,
};
