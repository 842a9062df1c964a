//! What the service's answers mean for the requests to come: a pure function of events and time.
//!
//! The service keeps an account of each quota and tells of one of them with every answer. This
//! keeps the same accounts from outside: a request may go while, in each live account, more is
//! left than own requests are under way or of unknown fate. Within a window the service's figure
//! only falls, and each answered request is inside the lowest figure seen, so nothing has to be
//! counted down here, and nothing can drift.
//!
//! All times are the service's. There is no clock, lock, socket or async in here; waiting is left
//! to `gate`.

mod account;
mod answer;
mod keeper;
mod lost;
mod note;
mod own;
mod policy;
#[cfg(test)]
mod rules;
mod service_clock;
mod state;
mod time;
mod verdict;

pub(crate) use answer::Rate;
pub(crate) use keeper::{Head, Keeper};
pub(crate) use policy::Policy;
pub(crate) use state::Ticket;
pub(crate) use time::{Local, Time, micros};
pub(crate) use verdict::{Block, Busy, Verdict};
