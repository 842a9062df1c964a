//! An exchange as the rules see it: facts only, filled at one place from what was recorded.

use std::{
    borrow::Cow,
    cell::OnceCell,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{Method, Version};
use serde_json::Value;

use super::finding::{EvidenceRequest, Role};
use crate::{
    exchange::{KeyFlaw, Moment, Record},
    operation::Operation,
};

/// A request on another connection may have been sent before the answer was read, for so long.
pub(super) const REACTION: Duration = Duration::from_millis(100);
/// A wait may end this much early: clocks and timers differ.
const TOLERANCE: Duration = Duration::from_millis(50);
/// Dates are whole seconds.
const DATE_TOLERANCE: Duration = Duration::from_secs(1);

/// One exchange, once its answer was taken or lost.
#[derive(Debug)]
pub(crate) struct ObservedExchange {
    pub(super) number: u64,
    pub(super) connection: u64,
    /// 1-based index of the request on its connection.
    pub(super) nth: u64,
    pub(super) opened: Moment,
    pub(super) arrived: Moment,
    pub(super) ended: Moment,
    /// Whether its connection carries several requests at once (HTTP/2).
    pub(super) is_multiplexed: bool,
    /// The most requests of the client in flight at once in the last 60 s.
    pub(super) width: u32,
    /// Whether two requests of the client were in flight at once in the last second.
    pub(super) is_parallel: bool,
    pub(super) method: Method,
    pub(super) target: Arc<str>,
    pub(super) operation: Option<Operation>,
    pub(super) body: ObservedBody,
    pub(super) status: Option<u16>,
    /// Why no answer, or not all of it, reached the client.
    pub(super) lost: Option<Cow<'static, str>>,
    pub(super) retry_after: Option<RetryAfterValue>,
    /// `X-RateLimit-Remaining` and `X-RateLimit-Reset`, as the client was told.
    pub(super) quota: Option<(u64, Duration)>,
    pub(super) is_banned: bool,
    pub(super) flaw: Option<KeyFlaw>,
    /// The id of the pet that it added.
    pub(super) added: Option<i64>,
    /// The beginning of the answer's body.
    pub(super) reply_body: Bytes,
    pub(super) has_user_agent: bool,
    /// Whether the server, not the client, chose to end the connection.
    pub(super) was_cut_off: bool,
    pub(super) fingerprint: OnceCell<u64>,
}

/// The body of a request, to compare with others.
#[derive(Clone, Debug, Default)]
pub(super) struct ObservedBody {
    pub(super) media_type: Vec<u8>,
    /// All of it, if it is short.
    pub(super) start: Bytes,
    pub(super) length: u64,
    /// The same for the same bytes; nothing if the body was not read to its end.
    pub(super) digest: Option<u64>,
}

/// The value of a `Retry-After` that can be understood.
#[derive(Clone, Copy, Debug)]
pub(super) enum RetryAfterValue {
    Seconds(u64),
    /// Since the Unix epoch.
    Date(Duration),
}

/// When a wait ends: as soon as the mock's clock or real time has reached it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToldUntil {
    /// What the client was told, on the mock's clock.
    pub(super) at: Duration,
    tolerance: Duration,
    answered: Moment,
}

impl ToldUntil {
    pub(super) fn is_over(&self, now: &Moment) -> bool {
        let until = self.at.saturating_sub(self.tolerance);
        let wait = until.saturating_sub(self.answered.at);
        now.at >= until || now.real.saturating_duration_since(self.answered.real) >= wait
    }
}

impl ObservedExchange {
    /// Takes the facts from a record.
    pub(crate) fn new(record: &Record, ended: Moment) -> Self {
        let text = |name: &str| str::from_utf8(record.reply_fields.get(name)?).ok();
        let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
        let is_waited_for = record.status.is_some_and(|status| status == 429 || status >= 500);
        let quota = match record.rate {
            // A fault may have changed what the client was told.
            Some(_) if !record.faults.is_empty() => {
                number("x-ratelimit-remaining").zip(number("x-ratelimit-reset"))
            }
            rate => rate.map(|rate| (u64::from(rate.remaining), rate.reset)),
        };
        let field = |name: &str| record.fields.get(name).unwrap_or_default().trim_ascii();
        let closes = record.reply_fields.get("connection") == Some(b"close");
        let is_listed = record.operation == Some(Operation::ListPets);
        Self {
            number: record.number,
            connection: record.connection,
            nth: record.nth,
            opened: record.opened,
            arrived: record.arrived,
            ended,
            is_multiplexed: record.version >= Version::HTTP_2,
            width: record.in_flight.width,
            is_parallel: record.in_flight.is_parallel,
            method: record.method.clone(),
            target: Arc::clone(&record.target),
            operation: record.operation,
            body: ObservedBody {
                media_type: field("content-type").to_vec(),
                start: record.body.start.clone(),
                length: record.body.length,
                digest: record.body.digest,
            },
            status: record.status,
            lost: record.is_lost().then(|| match record.faults.last() {
                Some(fault) => fault.clone(),
                None => "the client left".into(),
            }),
            retry_after: if is_waited_for {
                text("retry-after").and_then(retry_after)
            } else {
                None
            },
            quota: quota.map(|(remaining, reset)| (remaining, Duration::from_secs(reset))),
            is_banned: record.admission == crate::exchange::Admission::Banned,
            flaw: record.flaw.clone(),
            added: record.added,
            reply_body: if is_listed { record.reply_body.start.clone() } else { Bytes::new() },
            has_user_agent: !field("user-agent").is_empty(),
            was_cut_off: !record.faults.is_empty()
                || closes && !field("connection").eq_ignore_ascii_case(b"close"),
            fingerprint: OnceCell::new(),
        }
    }

    /// Returns whether no answer reached the client.
    pub(super) const fn is_lost(&self) -> bool {
        self.lost.is_some() || self.status.is_none()
    }

    /// Returns whether the client got no answer, or a 5xx.
    pub(super) fn has_failed(&self) -> bool {
        self.is_lost() || self.status.is_some_and(|status| status >= 500)
    }

    /// Returns the path, without the query: that may hold credentials.
    pub(super) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Returns the status that reached the client.
    pub(super) fn answer(&self) -> Option<u16> {
        self.status.filter(|_| !self.is_lost())
    }

    /// Returns until when the answer tells the client to wait.
    pub(super) fn told_until(&self) -> Option<ToldUntil> {
        self.answer()?;
        let (at, tolerance) = match self.retry_after? {
            RetryAfterValue::Seconds(seconds) => {
                let at = self.arrived.at.saturating_add(Duration::from_secs(seconds));
                let reset = self.quota.filter(|(remaining, _)| {
                    *remaining == 0 && self.status == Some(429) && !self.is_banned
                });
                (reset.map_or(at, |(_, reset)| at.min(reset)), TOLERANCE)
            }
            RetryAfterValue::Date(date) => (date, DATE_TOLERANCE),
        };
        Some(ToldUntil { at, tolerance, answered: self.arrived })
    }

    /// Returns a number that two requests of a client share if method, target, media type and body
    /// are the same. JSON is compared by value, if it is short enough to be kept.
    pub(super) fn fingerprint(&self) -> u64 {
        *self.fingerprint.get_or_init(|| {
            let mut hasher = DefaultHasher::new();
            self.method.hash(&mut hasher);
            self.target.hash(&mut hasher);
            self.body.hash(&mut hasher);
            if self.body.digest.is_none() {
                self.number.hash(&mut hasher);
            }
            hasher.finish()
        })
    }

    /// Returns what evidence shows of it.
    pub(super) fn as_evidence(&self, role: Role) -> EvidenceRequest {
        EvidenceRequest {
            number: self.number,
            role,
            at: UNIX_EPOCH + self.arrived.at,
            ended_at: UNIX_EPOCH + self.ended.at,
            method: self.method.clone(),
            path: Arc::clone(&self.target),
            connection: self.connection,
            status: self.answer(),
            lost: self.lost.clone(),
            retry_after: self.retry_after.map(|value| match value {
                RetryAfterValue::Seconds(seconds) => seconds.to_string(),
                RetryAfterValue::Date(date) => httpdate::fmt_http_date(UNIX_EPOCH + date),
            }),
            added: self.added,
            banned: self.is_banned,
            arrived: self.arrived,
            ended: self.ended,
        }
    }
}

/// Reads the seconds or the date of a `Retry-After`.
pub(super) fn retry_after(text: &str) -> Option<RetryAfterValue> {
    let text = text.trim();
    if let Ok(seconds) = text.parse() {
        return Some(RetryAfterValue::Seconds(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    date.duration_since(UNIX_EPOCH).ok().map(RetryAfterValue::Date)
}

impl Hash for ObservedBody {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let essence = self.media_type.split(|byte| *byte == b';').next().unwrap_or_default();
        essence.trim_ascii().to_ascii_lowercase().hash(state);
        let is_kept = self.digest.is_some() && self.start.len() as u64 == self.length;
        match serde_json::from_slice(&self.start) {
            Ok(json) if is_kept && !self.start.is_empty() => hash_json(&json, state),
            _ => self.digest.hash(state),
        }
    }
}

/// Hashes JSON by its value: the order of members and the form of a number make no difference.
fn hash_json<H: Hasher>(json: &Value, state: &mut H) {
    match json {
        Value::Null => 0_u8.hash(state),
        Value::Bool(value) => value.hash(state),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.hash(state),
            None => hash_float(number.as_f64().unwrap_or_default(), state),
        },
        Value::String(text) => text.hash(state),
        Value::Array(items) => {
            items.len().hash(state);
            items.iter().for_each(|item| hash_json(item, state));
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            members.len().hash(state);
            for (name, value) in members {
                name.hash(state);
                hash_json(value, state);
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "it is checked to be an exact integer")]
fn hash_float<H: Hasher>(float: f64, state: &mut H) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if float.fract() == 0.0 && float.abs() <= EXACT {
        (float as i64).hash(state);
    } else {
        float.to_bits().hash(state);
    }
}
