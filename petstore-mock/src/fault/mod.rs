//! Faults: which requests they hit (by operation, key, header, count, chance), what they do to the
//! answer, and how often each has hit. All of it is pure; the router asks for the faults of a request
//! and applies them, and what concerns the socket is carried out in `accept`.

mod effect;
mod faults;
mod guard;
mod matcher;
mod random;
mod registry;
mod spec;
mod when;

pub(crate) use self::{
    effect::{Answer, At, End, How, Pace, Script},
    matcher::Facts,
    registry::Chosen,
};
pub use self::{
    effect::{Delay, Effect, RateFault, RetryAfter},
    faults::{FaultBuilder, Faults},
    guard::FaultGuard,
    registry::FaultStatus,
    spec::Fault,
};
