//! The quotas of one key, as one process knows them: pure rules without a clock, a lock or a socket.
//! Read `reading`, `window`, `refusals`, `ledger`, `policy`, `decision` and `local` in this order.

pub(crate) mod clock;
pub(crate) mod others;
pub(crate) mod outstanding;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod reading;
pub(crate) mod refusals;
pub(crate) mod window;

pub(crate) mod ledger;

pub(crate) mod decision;

pub(crate) mod local;
