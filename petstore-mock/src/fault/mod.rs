//! Faults: the requests that they hit, their effects, and their hit counts. This module is pure;
//! the router applies the faults.

mod socket_effects;
mod trigger;

mod delay;
mod response_effects;

mod effect;

mod spec;

mod registry;

mod builder;

pub use self::{
    builder::{FaultBuilder, FaultGuard},
    delay::Delay,
    effect::Effect,
    registry::{FaultStatus, Faults},
    response_effects::{RateFault, RetryAfter, StatusEffect},
    spec::Fault,
    trigger::HeaderField,
};
pub(crate) use self::{
    registry::ActiveFaults,
    socket_effects::{EarlyEnd, EndMode, Pace, SocketPlan},
    trigger::RequestView,
};
