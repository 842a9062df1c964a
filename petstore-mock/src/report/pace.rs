//! Whether a client sends one request at a time. Only of such a client is it certain what it knew when
//! it sent one: of a client that sends many at once, any may have been on its way already.

use std::time::Duration;

use http::Version;

use super::per_key::PerKey;
use crate::exchange::{Moment, Record};

/// For how long a key counts as used in parallel once two of its requests met.
const MEMORY: Duration = Duration::from_secs(1);

/// How each key sends.
#[derive(Debug, Default)]
pub(super) struct Pace(PerKey<Option<Last>>);

/// The request of a key that ended last.
#[derive(Clone, Copy, Debug)]
struct Last {
    connection: u64,
    ended: Moment,
    /// When two requests of the key were last seen to meet.
    met: Option<Moment>,
}

impl Pace {
    /// Returns whether a request was sent after the one that ended before it was answered, and its
    /// key has sent one at a time lately.
    pub(super) fn is_alone(&mut self, record: &Record) -> bool {
        let state = self.0.of(record);
        let Some(last) = state.as_ref() else {
            *state = Some(Last { connection: record.connection, ended: record.ended, met: None });
            return true;
        };
        // Requests of one connection follow one another, but not those of HTTP/2. A connection that
        // was there already may have had the request on its way.
        let is_next = last.connection == record.connection && record.version < Version::HTTP_2;
        let follows = last.ended.order < record.arrived.order
            && (is_next || last.ended.order < record.opened.order);
        let met = if follows { last.met } else { Some(record.arrived) };
        *state = Some(Last { connection: record.connection, ended: record.ended, met });
        met.is_none_or(|met| record.arrived.gap_since(&met) > MEMORY)
    }
}
