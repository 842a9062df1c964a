//! The proxy: forwards requests to a real service, and checks that the service keeps its contract.

mod contract;
mod observer;
#[cfg_attr(
    not(feature = "cli"),
    allow(dead_code, reason = "only the command line writes recordings")
)]
mod recorder;
mod upstream;

pub use self::observer::{ServiceBreach, ServiceReport};
pub(crate) use self::{
    contract::Sent,
    observer::ServiceObserver,
    upstream::{ParseUpstreamError, Upstream, UpstreamError},
};
