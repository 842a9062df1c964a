//! Faults: which requests they hit (by operation, key, header, count, chance), what they do to the
//! response, and how often each has hit. All of it is pure; the router applies it.

mod builder;
mod effect;
mod guard;
mod registry;
mod response_effects;
mod socket_effects;
mod spec;
mod trigger;

pub use self::{
    builder::{FaultBuilder, Faults},
    effect::{Delay, Effect},
    guard::FaultGuard,
    registry::FaultStatus,
    response_effects::{RateFault, RetryAfter},
    spec::Fault,
};
pub(crate) use self::{
    registry::ActiveFaults,
    socket_effects::{At, End, How, Pace, SocketPlan},
    trigger::RequestView,
};
