//! The record of an exchange. It is a compact copy, which is not formatted before somebody reads
//! it.

use std::{
    borrow::Cow,
    hash::{DefaultHasher, Hasher as _},
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Serialize;

use super::{
    KeyLabel,
    masking::{MASK, is_credential},
};
use crate::operation::{Operation, Target};

/// When something happened at the mock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// A number that increases with each arrival and each end, even while the clock is frozen.
    order: u64,
    /// The time on the mock's clock, since the Unix epoch.
    at: Duration,
    /// The real time.
    real: Instant,
}

impl Moment {
    /// Creates the moment at which the mock's clock shows `at`. Each moment needs a higher `order`.
    pub(crate) fn new(order: u64, at: Duration, real: Instant) -> Self {
        Self { order, at, real }
    }

    /// Returns the time on the mock's clock, since the Unix epoch.
    pub(crate) fn at(&self) -> Duration {
        self.at
    }

    /// Returns the real time since `earlier`.
    pub(crate) fn real_time_since(&self, earlier: &Self) -> Duration {
        self.real.saturating_duration_since(earlier.real)
    }

    /// Returns the moment this long after it, on both clocks.
    pub(crate) fn after(&self, time: Duration) -> Self {
        Self {
            at: self.at.saturating_add(time),
            real: self.real.checked_add(time).unwrap_or(self.real),
            ..*self
        }
    }

    /// Whether the mock's clock or real time has reached `goal`.
    pub(crate) fn has_reached(&self, goal: &Self) -> bool {
        self.at >= goal.at || self.real >= goal.real
    }

    /// Returns the earlier time of each clock.
    pub(crate) fn earlier_of_each(&self, other: &Self) -> Self {
        Self {
            at: self.at.min(other.at),
            real: self.real.min(other.real),
            ..*self
        }
    }

    /// Whether this moment is before `later`, in the order of arrivals and ends.
    pub(crate) fn is_before(&self, later: &Self) -> bool {
        self.order < later.order
    }

    /// Returns the time since `earlier`, by the mock's clock or in real time, whichever is longer.
    pub(crate) fn gap_since(&self, earlier: &Self) -> Duration {
        let real = self.real_time_since(earlier);
        real.max(self.at.saturating_sub(earlier.at))
    }
}

/// A wrong way to send a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyFlaw {
    /// The key is in this query parameter, or in the path if the name is empty.
    InUrl(Box<str>),
    /// A valid key is in `Authorization`, but not as a bearer token.
    OtherScheme,
    /// A valid key is in `X-Api-Key`.
    OtherHeader,
}

/// Whether the service admitted a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Admission {
    /// The request's key was valid and within its quotas. The response may still be an error.
    Admitted,
    /// A quota of the key was exhausted.
    Refused,
    /// The key was banned.
    Banned,
    /// The request had no valid key.
    Anonymous,
    /// The path is outside the service, and needs no key.
    Outside,
}

/// The values of the `X-RateLimit-*` headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    /// In seconds since the Unix epoch, always later than `now`.
    pub(crate) reset: u64,
}

/// The connection of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) peer: IpAddr,
    /// The number of the connection, from 1.
    pub(crate) connection: u64,
    /// The number of the request on its connection, from 1.
    pub(crate) nth: u64,
}

/// What is known of a request before it is routed.
pub(crate) struct Arrival {
    /// The time on the mock's clock, since the Unix epoch.
    pub(crate) now: Duration,
    /// The path and query as sent.
    pub(crate) target: Arc<str>,
    pub(crate) operation: Option<Operation>,
    /// Whether the service has the operation, or an own route for it.
    pub(crate) is_known: bool,
    pub(crate) key: Option<Arc<KeyLabel>>,
    pub(crate) flaw: Option<KeyFlaw>,
    pub(crate) admission: Admission,
    /// The number of early requests of its key, including this one, if it came before the key's
    /// `Retry-After` had elapsed. If it was banned as well, it is the one that caused the ban.
    pub(crate) strikes: u32,
    /// The rate headers before any fault.
    pub(crate) rate: Option<Rate>,
}

impl Arrival {
    /// Returns the arrival of a request that counts as outside the service until more is known.
    pub(crate) fn new(now: Duration, target: Arc<str>) -> Self {
        Self {
            now,
            target,
            operation: None,
            is_known: false,
            key: None,
            flaw: None,
            admission: Admission::Outside,
            strikes: 0,
            rate: None,
        }
    }
}

/// A request and its response.
pub(crate) struct Record {
    /// The number of the request, from 1.
    pub(crate) number: u64,
    pub(crate) caller: Caller,
    pub(crate) arrival: Arrival,
    /// The number of boundaries before it: see [`Changes::mark_boundary`](crate::changes::Changes).
    pub(crate) boundary: u64,
    pub(crate) arrived: Moment,
    pub(crate) ended: Moment,
    pub(crate) method: Method,
    pub(crate) fields: Fields,
    pub(crate) body: Captured,
    /// `None` if the client left before the response.
    pub(crate) status: Option<u16>,
    pub(crate) reply_fields: Fields,
    pub(crate) reply_body: Captured,
    /// The id of the pet that it created, even if the response does not show it.
    pub(crate) added: Option<i64>,
    /// A remark for the journal.
    pub(crate) note: Option<&'static str>,
    /// The names of the faults that hit.
    pub(crate) faults: Vec<Cow<'static, str>>,
    /// Whether the client cannot have received the whole response.
    pub(crate) lost: AtomicBool,
}

impl Record {
    /// Returns how many bytes of memory it uses, approximately.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>()
            + self.arrival.target.len()
            + self.fields.len()
            + self.reply_fields.len()
            + self.body.start.len()
            + self.reply_body.start.len()
    }

    /// Whether the target means this request.
    pub(crate) fn is_meant(&self, target: &Target) -> bool {
        target.matches(self.arrival.operation, &self.method, self.path())
    }

    /// Returns the path as sent.
    pub(crate) fn path(&self) -> &str {
        let target = &self.arrival.target;
        target.split_once('?').map_or(target, |(path, _)| path)
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}

/// The beginning, length and digest of a body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Captured {
    /// At most [`Captured::MAX`].
    pub(crate) start: Bytes,
    /// The length of the body, as far as it was read.
    pub(crate) length: u64,
    /// A digest that is equal for bodies with the same bytes; `None` if the body was not read
    /// completely.
    pub(crate) digest: Option<u64>,
}

impl Captured {
    /// The maximum number of bytes of a body that are kept: 16 KiB.
    pub(crate) const MAX: usize = 16 * 1024;

    /// Captures a body, or the part of it that was read. Only the whole body of a request has a digest.
    pub(crate) fn new(body: &[u8], has_digest: bool) -> Self {
        let digest = || {
            let mut hasher = DefaultHasher::new();
            hasher.write(body);
            hasher.finish()
        };
        Self {
            start: Bytes::copy_from_slice(&body[..body.len().min(Self::MAX)]),
            length: body.len() as u64,
            digest: has_digest.then(digest),
        }
    }
}

/// The header fields of a message, in one block of bytes. Each name and each value ends with a zero
/// byte, which neither can contain.
///
/// Recording only copies the fields. Values of credential fields are masked when they are read.
#[derive(Clone, Default)]
pub(crate) struct Fields(Box<[u8]>);

impl Fields {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let length = headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + 2);
        let mut all = Vec::with_capacity(length.sum());
        for (name, value) in headers {
            for part in [name.as_str().as_bytes(), value.as_bytes()] {
                all.extend_from_slice(part);
                all.push(0);
            }
        }
        Self(all.into_boxed_slice())
    }

    /// Returns the fields as a map, in their order, with masked credentials.
    pub(crate) fn to_map(&self) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in self.iter() {
            // Name and value come from a map, so both are valid.
            let Ok(name) = HeaderName::from_bytes(name) else {
                continue;
            };
            if let Ok(value) = HeaderValue::from_bytes(without_secret(name.as_str(), value)) {
                map.append(name, value);
            }
        }
        map
    }

    /// Returns the first value of a field with this lower-case name, masked if it is a credential.
    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter()
            .find(|(one, _)| *one == name.as_bytes())
            .map(|(_, value)| without_secret(name, value))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut parts = self.0.split(|byte| *byte == 0);
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }
}

/// Returns the value, masked if it is a credential.
fn without_secret<'a>(name: &str, value: &'a [u8]) -> &'a [u8] {
    if !is_credential(name) {
        return value;
    }
    let is_authorization = matches!(name, "authorization" | "proxy-authorization");
    if is_authorization && value.len() > 7 && value[..7].eq_ignore_ascii_case(b"bearer ") {
        return b"Bearer ***";
    }
    MASK.as_bytes()
}

#[cfg(test)]
mod tests {
    use http::header::{AUTHORIZATION, COOKIE};

    use super::*;

    #[test]
    fn returns_the_fields_with_masked_secrets() {
        let mut map = HeaderMap::new();
        map.append("accept", HeaderValue::from_static("a: b"));
        map.append("x-a", HeaderValue::from_static(""));
        map.append("x-a", HeaderValue::from_bytes(b"\xff").unwrap());
        map.append(AUTHORIZATION, HeaderValue::from_static("bearer secret"));
        map.append(AUTHORIZATION, HeaderValue::from_static("secret"));
        map.append(COOKIE, HeaderValue::from_static("secret"));
        let fields = Fields::of(&map);
        assert_eq!(fields.get("authorization"), Some(&b"Bearer ***"[..]));
        assert_eq!(fields.get("cookie"), Some(&b"***"[..]));
        let back = fields.to_map();
        let seen: Vec<_> = back
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        assert_eq!(
            seen,
            [
                ("accept", &b"a: b"[..]),
                ("x-a", b""),
                ("x-a", b"\xff"),
                ("authorization", b"Bearer ***"),
                ("authorization", b"***"),
                ("cookie", b"***"),
            ]
        );
    }

    #[test]
    fn finds_a_field() {
        let mut map = HeaderMap::new();
        map.append("retry-after", HeaderValue::from_static("50"));
        let fields = Fields::of(&map);
        assert_eq!(fields.get("retry-after"), Some(&b"50"[..]));
        assert_eq!(fields.get("retry"), None);
    }
}
