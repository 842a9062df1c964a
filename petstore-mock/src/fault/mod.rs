//! Faults: the requests that they hit, their effects, and their hit counts. This module is pure;
//! the router applies the faults.

mod random;

mod change;

mod effect;

mod spec;

mod registry;

mod builder;

pub use self::{
    builder::FaultBuilder,
    change::{RateFault, RetryAfter},
    effect::{Delay, Effect},
    registry::{FaultGuard, FaultStatus, Faults},
    spec::Fault,
};
pub(crate) use self::{
    change::{EndMode, Pace, SocketPlan, injected},
    registry::ActiveFaults,
    spec::RequestView,
};
