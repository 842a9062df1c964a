//! An exchange as it is kept: copied, not formatted, and no longer than its parts. What may be shown
//! of it is left to `shown`.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use http::{Method, Version};
use serde::Serialize;

use super::{Captured, Fields, KeyLabel};
use crate::{operation::Operation, quota::Rate};

/// When something happened at the mock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Arrivals and ends are counted together: a higher number is later, also where the clock
    /// stands still.
    pub(crate) order: u64,
    /// On the mock's clock, since the Unix epoch.
    pub(crate) at: Duration,
    /// In real time, whatever the mock's clock does.
    pub(crate) real: Instant,
}

impl Moment {
    /// Returns how long ago the other was, by the clock on which it is longer.
    pub(crate) fn gap_since(&self, earlier: &Self) -> Duration {
        let real = self.real.saturating_duration_since(earlier.real);
        real.max(self.at.saturating_sub(earlier.at))
    }
}

/// What is wrong with how a key was sent, where it was known by that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyFlaw {
    /// It is in this query parameter, or in the path, where the name is empty.
    InUrl(Box<str>),
    /// It is valid, but was not sent as a bearer token.
    OtherScheme,
}

/// Which client sent a request, and what else of it was in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InFlight {
    pub(crate) client: u64,
    /// The most requests of the client in flight at once in the last minute.
    pub(crate) width: u32,
    /// Whether several were in flight at once in the last second.
    pub(crate) is_parallel: bool,
}

/// Whether a request was let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Admission {
    /// Its key let it in; it may have been answered an error all the same.
    Admitted,
    /// A quota of its key was used up.
    Refused,
    /// Its key was banned.
    Banned,
    /// It had no valid key.
    Stranger,
    /// The server refused it before it looked at its key: it was malformed, too large or too slow, or
    /// its connection was one too many.
    Rejected,
    /// Its path is none of the service's, so that nobody asked for a key.
    Outside,
}

/// One request and its answer.
#[derive(Debug)]
pub(crate) struct Record {
    /// From 1, by arrival.
    pub(crate) number: u64,
    pub(crate) connection: u64,
    /// When its connection was opened.
    pub(crate) opened: Moment,
    /// The how-manieth request of its connection it is, from 1.
    pub(crate) nth: u64,
    pub(crate) in_flight: InFlight,
    pub(crate) arrived: Moment,
    pub(crate) ended: Moment,
    pub(crate) method: Method,
    pub(crate) version: Version,
    /// Path and query, as they were sent.
    pub(crate) target: Arc<str>,
    pub(crate) fields: Fields,
    pub(crate) body: Captured,
    pub(crate) key: Option<Arc<KeyLabel>>,
    pub(crate) flaw: Option<KeyFlaw>,
    pub(crate) operation: Option<Operation>,
    pub(crate) admission: Admission,
    /// What the rate headers were to say, before any fault.
    pub(crate) rate: Option<Rate>,
    /// Nothing where the client left before it was answered.
    pub(crate) status: Option<u16>,
    pub(crate) reply_fields: Fields,
    pub(crate) reply_body: Captured,
    /// The id of the pet that it added, whatever the client was answered.
    pub(crate) added: Option<i64>,
    /// What else there is to know of it.
    pub(crate) note: Option<&'static str>,
    /// The names of the faults that hit.
    pub(crate) faults: Vec<Cow<'static, str>>,
    /// Whether the client can't have had all of the answer.
    pub(crate) lost: AtomicBool,
}

impl Record {
    /// Returns about how much memory it takes.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>()
            + self.target.len()
            + self.fields.len()
            + self.reply_fields.len()
            + self.body.start.len()
            + self.reply_body.start.len()
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}
