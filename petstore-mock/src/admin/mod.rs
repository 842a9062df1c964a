//! The mock's own paths, under `/_mock`: outside the service, its keys and its quotas. What they take
//! and answer is described by `admin.yaml`.

mod access;
mod body;
mod clock;
mod docs;
mod documents;
mod health;
mod table;

pub(crate) use self::table::Table;
