//! The rules. Each file keeps what its rules need to know of one client since the last boundary.

mod ban;
mod doubt;
mod hygiene;
mod posts;
mod quota;
mod refusals;
mod retries;
mod waits;

pub(super) use self::{
    ban::{Ban, Strikes},
    hygiene::Hygiene,
    posts::Posts,
    quota::KnownQuota,
    refusals::Refusals,
    retries::Retries,
    waits::Waits,
};
