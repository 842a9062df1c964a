//! The mock's own paths, under `/_mock`: outside the service, its keys and its quotas. What they take
//! and answer is described by `admin.yaml`.

mod access;
mod body;
mod clock;
mod docs;
mod documents;
mod events;
mod faults;
mod health;
mod inspector;
mod keys;
mod metrics;
mod pets;
mod query;
mod reply;
mod report;
mod requests;
mod state;
mod table;
mod unknown;

pub(crate) use self::table::Table;
