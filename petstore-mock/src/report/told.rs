//! What a client was told not to do before a certain time, and whether it can have known that when
//! it sent a request: one that was on its way already is not held against it.

use std::{collections::VecDeque, time::Duration};

use http::Version;

use super::{finding::Evidence, write::seconds};
use crate::exchange::{Moment, Record};

/// How long after an answer a request of another connection may still have been sent before it, in
/// real time.
const REACTION: Duration = Duration::from_millis(100);
/// The same on the mock's clock, which may run faster.
const LEAP: Duration = Duration::from_secs(1);

/// How many different times, and connections that were told each, are remembered.
const MOST_TIMES: usize = 8;
const MOST_CONNECTIONS: usize = 64;

/// What one key was told.
#[derive(Debug, Default)]
pub(super) struct Told(VecDeque<Telling>);

/// One time before which nothing was to be sent.
#[derive(Debug)]
pub(super) struct Telling {
    /// On the mock's clock, since the Unix epoch.
    pub(super) until: Duration,
    /// The number of the request that was answered this first.
    pub(super) by: u64,
    since: Moment,
    /// Those on which it was said, of HTTP/1.
    connections: Vec<u64>,
}

impl Telling {
    /// Returns the evidence of a request that came before that; `what` it was too early for.
    pub(super) fn evidence(&self, record: &Record, what: &str) -> Evidence {
        let early = self.until - record.arrived.at;
        Evidence {
            requests: vec![self.by, record.number],
            at: record.arrived.at,
            by: Some(early),
            text: format!("sent {} {what}", seconds(early)),
        }
    }
}

impl Told {
    /// Notes that the answer to a request said so.
    pub(super) fn tell(&mut self, record: &Record, until: Duration) {
        let known = self.0.iter().position(|telling| telling.until == until);
        if known.is_none() {
            self.0.retain(|telling| telling.until > record.ended.at);
            if self.0.len() == MOST_TIMES {
                self.0.pop_front();
            }
            let since = record.ended;
            self.0.push_back(Telling { until, by: record.number, since, connections: Vec::new() });
        }
        let place = known.unwrap_or(self.0.len() - 1);
        let telling = &mut self.0[place];
        let is_serial = record.version < Version::HTTP_2;
        if is_serial && telling.connections.len() < MOST_CONNECTIONS {
            telling.connections.push(record.connection);
        }
    }

    /// Returns the latest time that the sender of a request knew it had to wait for, and which has not
    /// come yet. A request that is `alone` was sent after everything before it was answered.
    pub(super) fn known_to(&self, record: &Record, alone: bool) -> Option<&Telling> {
        let knew = |telling: &&Telling| {
            telling.until > record.arrived.at
                && telling.since.order < record.arrived.order
                && (alone
                    || telling.connections.contains(&record.connection)
                    || record.arrived.real.saturating_duration_since(telling.since.real) > REACTION
                    || record.arrived.at.saturating_sub(telling.since.at) > LEAP)
        };
        self.0.iter().filter(knew).max_by_key(|telling| telling.until)
    }

    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}
