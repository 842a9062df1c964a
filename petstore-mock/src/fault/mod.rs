//! Faults: the requests they hit (by operation, key, header, count, chance), what they do to the
//! response, and how often each has hit. All of it is pure; the router applies it.

mod socket_effects;
mod trigger;

mod response_effects;

mod effect;

mod spec;

mod registry;

mod guard;

mod builder;

pub use self::{
    builder::FaultBuilder,
    effect::{Delay, Effect},
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
