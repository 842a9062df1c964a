//! Tests of failed calls: their errors, their retries, and hostile servers.

mod faults;
mod hostile;
mod messages;
mod not_sent;
mod processed;
mod responses;
mod retries;
mod retry_after;
mod services;
mod timeouts;
