//! The rules, one file each, in the order of the report: what the specification forbids first.

mod back_off;
mod banned;
mod burst;
mod deprecated;
mod keep_alive;
mod key_in_url;
mod key_scheme;
mod remaining_zero;
mod repeated_error;
mod repeated_post;
mod rule;
mod told_to_wait;
mod user_agent;

#[cfg(test)]
mod kit;

#[cfg(test)]
pub(super) use self::kit::Client;
pub(super) use self::rule::{Rule, Sent, all};
