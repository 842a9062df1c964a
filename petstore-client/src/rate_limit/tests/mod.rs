//! Tests of the rate limiter.

mod clocks;
mod cost;
mod hostile_headers;
mod in_flight;
#[cfg(shuttle)]
mod model;
mod order;
mod registry;
mod rules;
mod sharing;
mod stored;
mod story;
mod view;
pub(crate) mod waiting;
