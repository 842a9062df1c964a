//! How processes share the quotas of a key: each is a member that updates a small record in a store.
//! Read `slot`, `division`, `record`, `update`, `member`, `exchange` in this order, and `alone` for what
//! a member does while the store is unreachable.

pub(crate) mod slot;

pub(crate) mod division;
pub(crate) mod members;
pub(crate) mod store;

pub(crate) mod record;

pub(crate) mod update;

pub(crate) mod alone;

pub(crate) mod member;
mod outcomes;

pub(crate) mod engine;

pub(crate) mod exchange;

pub(crate) mod stores;

pub(crate) mod member_limiter;
