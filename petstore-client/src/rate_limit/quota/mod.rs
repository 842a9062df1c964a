//! What is known of a key's quotas, and how many requests may be sent. These rules are pure: they use no
//! clock, lock or socket. Read `reading`, `window`, `report`, `ledger` and
//! `ledger/grant` in this order.

pub(crate) mod holder;
pub(crate) mod instant;
pub(crate) mod lost;
pub(crate) mod reading;
pub(crate) mod report;
pub(crate) mod service_clock;
pub(crate) mod terms;
pub(crate) mod window;

pub(crate) mod ledger;

pub(crate) use self::ledger::Ledger;
pub(crate) use self::report::{Answer, Pause, Report};
