//! The quotas of one key, as one process knows them: pure rules without a clock, a lock or a socket.

pub(crate) mod clock;
pub(crate) mod outstanding;
pub(crate) mod plan;
pub(crate) mod reading;
pub(crate) mod window;

pub(crate) mod ledger;

pub(crate) mod decision;
