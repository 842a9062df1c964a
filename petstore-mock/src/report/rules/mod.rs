//! The rules: pure code over the exchanges of one client, each with a bounded state.

mod hygiene;
mod limits;
mod repeats;
mod retries;

pub(super) use self::{hygiene::Hygiene, limits::KnownLimits, repeats::Repeats, retries::Retries};
