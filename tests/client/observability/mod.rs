//! Tests of what a call reports: events, spans and log records, without the key.

mod ended;
mod events;
mod secrecy;
mod spans;
