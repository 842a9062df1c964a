//! Faults: the requests that they hit, their effects, and their hit counts. This module is pure;
//! the router applies the faults.

mod socket_effects;
mod trigger;

mod delay;
mod response_effects;

mod effect;

mod spec;

mod registry;

mod guard;

mod builder;

pub use self::{
    builder::FaultBuilder,
    delay::Delay,
    effect::Effect,
    guard::FaultGuard,
    registry::{FaultStatus, Faults},
    response_effects::{RateFault, RetryAfter},
    spec::Fault,
};
pub(crate) use self::{
    registry::ActiveFaults,
    socket_effects::{At, End, How, Pace, SocketPlan},
    trigger::RequestView,
};
