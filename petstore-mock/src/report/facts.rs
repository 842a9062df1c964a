//! The facts of one exchange that the rules judge.

use std::{
    borrow::Cow,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{Method, Version};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    exchange::{Admission, Captured, Moment, Record},
    text::unify_integers,
};

/// A request that arrives this soon after a response may have been sent before the response was
/// read.
pub(super) const REACTION: Duration = Duration::from_millis(100);
/// A wait may be this much too short, because clocks and timers differ.
const TOLERANCE: Duration = Duration::from_millis(50);
/// The same for dates, which have whole seconds.
const DATE_TOLERANCE: Duration = Duration::from_secs(1);
/// A longer response body is not searched for its message.
const MAX_ANSWER: usize = 1_024;

/// The facts of one exchange.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    number: u64,
    method: Method,
    target: Arc<str>,
    connection: u64,
    /// When its connection was opened.
    opened: Moment,
    arrived: Moment,
    /// When its response was read or lost.
    ended: Moment,
    /// `None` if the client did not receive the whole response.
    status: Option<u16>,
    /// Why the client did not receive it.
    lost: Option<Cow<'static, str>>,
    asked_wait: Option<AskedWait>,
    /// When the exhausted quota resets, if the response describes one.
    used_up_until: Option<Duration>,
    /// The body of a short response that is an error.
    answer: Bytes,
    added: Option<i64>,
    admission: Admission,
    strikes: u32,
    /// Whether its connection can carry several requests at once (HTTP/2).
    is_multiplexed: bool,
    /// Whether the server closes the connection after its response.
    closes_connection: bool,
    may_be_several: bool,
    identity: Option<u64>,
}

/// The wait that a 429 or 5xx asks for.
#[derive(Clone, Debug)]
struct AskedWait {
    retry_after: Box<str>,
    until: Duration,
    tolerance: Duration,
}

/// The body of an error.
#[derive(Deserialize)]
struct ErrorBody {
    message: String,
}

impl Facts {
    /// Reads the facts of a record. `ended` is when its response was read or lost.
    pub(crate) fn new(record: &Record, ended: Moment) -> Self {
        let is_lost = record.is_lost() || record.status.is_none();
        let status = if is_lost { None } else { record.status };
        let fields = ReplyFields::of(record);
        let used_up_until = fields.used_up_until();
        let is_banned = record.arrival.admission == Admission::Banned;
        let asked_wait = match status {
            Some(429) if !is_banned => fields.asked_wait(record.arrival.now, used_up_until),
            Some(429 | 500..) => fields.asked_wait(record.arrival.now, None),
            _ => None,
        };
        let body = &record.reply_body.start;
        let is_error = status.is_some_and(|status| status >= 400);
        Self {
            number: record.number,
            method: record.method.clone(),
            target: Arc::clone(&record.arrival.target),
            connection: record.caller.connection,
            opened: record.caller.opened,
            arrived: record.arrived,
            ended,
            status,
            lost: is_lost.then(|| cause_of_loss(record)),
            asked_wait,
            used_up_until,
            answer: if is_error && body.len() <= MAX_ANSWER {
                body.clone()
            } else {
                Bytes::new()
            },
            added: record.added,
            admission: record.arrival.admission,
            strikes: record.arrival.strikes,
            is_multiplexed: record.version >= Version::HTTP_2,
            closes_connection: is_close(fields.connection),
            may_be_several: record.sender.may_be_several,
            identity: None,
        }
    }

    /// Sets what [`Self::is_same_as`] compares. It reads the whole body, so it is only done if a
    /// rule compares requests.
    pub(super) fn identify(&mut self, record: &Record) {
        self.identity = Some(identity(record));
    }

    /// Whether the request has the same method, target, media type and body as another one. False
    /// if one of the two was not identified.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.identity.is_some() && self.identity == other.identity
    }

    /// Returns the number of the request in the journal, from 1.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    pub(super) const fn method(&self) -> &Method {
        &self.method
    }

    pub(super) const fn target(&self) -> &Arc<str> {
        &self.target
    }

    /// Returns the method and path, without the query, which may contain credentials.
    pub(super) fn name(&self) -> String {
        let path = self.target.split('?').next().unwrap_or_default();
        format!("{} {path}", self.method)
    }

    pub(super) const fn connection(&self) -> u64 {
        self.connection
    }

    pub(super) const fn arrived(&self) -> &Moment {
        &self.arrived
    }

    /// Returns when the response was read or lost.
    pub(super) const fn ended(&self) -> &Moment {
        &self.ended
    }

    /// Returns the status; `None` if the client did not receive the whole response.
    pub(super) const fn status(&self) -> Option<u16> {
        self.status
    }

    /// Returns why the client did not receive the whole response.
    pub(super) const fn lost(&self) -> Option<&Cow<'static, str>> {
        self.lost.as_ref()
    }

    /// Whether the client got no response, or a 5xx.
    pub(super) fn has_failed(&self) -> bool {
        self.status.is_none_or(|status| status >= 500)
    }

    /// Whether the client got no response, or an error.
    pub(super) fn is_error(&self) -> bool {
        self.status.is_none_or(|status| status >= 400)
    }

    /// Returns the message of an error.
    pub(super) fn message(&self) -> Option<String> {
        let body: ErrorBody = serde_json::from_slice(&self.answer).ok()?;
        Some(body.message)
    }

    /// Returns the `Retry-After` of a 429 or 5xx.
    pub(super) fn retry_after(&self) -> Option<&str> {
        Some(&self.asked_wait.as_ref()?.retry_after)
    }

    /// Returns the end of the wait that the response asks for.
    pub(super) fn wait_until(&self) -> Option<Duration> {
        Some(self.asked_wait.as_ref()?.until)
    }

    /// Whether the response asks the client to wait, and the wait has not ended, neither by the
    /// mock's clock nor in real time.
    pub(super) fn asks_to_wait_at(&self, now: &Moment) -> bool {
        let Some(asked) = &self.asked_wait else {
            return false;
        };
        let until = asked.until.saturating_sub(asked.tolerance);
        let length = until.saturating_sub(self.arrived.at());
        now.at() < until && now.real_time_since(&self.arrived) < length
    }

    /// Returns when the exhausted quota resets, if the response describes one.
    pub(super) const fn used_up_until(&self) -> Option<Duration> {
        self.used_up_until
    }

    /// Returns the id of the pet that it created, whatever the response was.
    pub(super) const fn added(&self) -> Option<i64> {
        self.added
    }

    /// Whether the request was refused because its key was banned.
    pub(super) fn is_banned(&self) -> bool {
        self.admission == Admission::Banned
    }

    /// Whether the request was refused because a quota was exhausted.
    pub(super) fn is_refused(&self) -> bool {
        self.admission == Admission::Refused
    }

    /// Returns the number of early requests of its key, including this one; 0 if it was not early.
    pub(super) const fn strikes(&self) -> u32 {
        self.strikes
    }

    /// Whether the request caused the ban of its key.
    pub(super) fn has_caused_ban(&self) -> bool {
        self.is_banned() && self.strikes > 0
    }

    /// Whether its connection can carry several requests at once (HTTP/2).
    pub(super) const fn is_multiplexed(&self) -> bool {
        self.is_multiplexed
    }

    /// Whether the server closes the connection after its response.
    pub(super) const fn closes_connection(&self) -> bool {
        self.closes_connection
    }

    /// Whether its client may be several senders.
    pub(super) const fn may_be_several(&self) -> bool {
        self.may_be_several
    }

    /// Whether its client is a single sender that sends one request after the other (HTTP/1).
    pub(super) const fn is_in_sequence(&self) -> bool {
        !self.may_be_several && !self.is_multiplexed
    }

    /// Whether the request was certainly sent after the client had read an earlier response, or had
    /// given up waiting for it.
    pub(super) fn follows(&self, earlier: &Self) -> bool {
        if self.arrived.is_before(&earlier.ended) {
            return false;
        }
        let is_opened_since = earlier.status.is_none() && earlier.ended.is_before(&self.opened);
        let is_next = self.connection == earlier.connection || is_opened_since;
        self.is_in_sequence() && is_next || self.arrived.gap_since(&earlier.ended) >= REACTION
    }
}

fn cause_of_loss(record: &Record) -> Cow<'static, str> {
    let fault = record.faults.last().cloned();
    fault.unwrap_or(Cow::Borrowed("the client left"))
}

/// The fields of a response that the rules read, as sent. This runs for every request, so one pass
/// finds all of them, and only the needed ones are parsed.
#[derive(Default)]
struct ReplyFields<'a> {
    retry_after: Option<&'a [u8]>,
    remaining: Option<&'a [u8]>,
    reset: Option<&'a [u8]>,
    connection: Option<&'a [u8]>,
}

impl<'a> ReplyFields<'a> {
    fn of(record: &'a Record) -> Self {
        let mut fields = Self::default();
        for (name, value) in record.reply_fields.iter() {
            match name {
                b"retry-after" => fields.retry_after = Some(value),
                b"x-ratelimit-remaining" => fields.remaining = Some(value),
                b"x-ratelimit-reset" => fields.reset = Some(value),
                b"connection" => fields.connection = Some(value),
                _ => {}
            }
        }
        fields
    }

    /// Returns when the quota resets, if none is left.
    fn used_up_until(&self) -> Option<Duration> {
        if self.remaining?.trim_ascii() != b"0" {
            return None;
        }
        number(self.reset?).map(Duration::from_secs)
    }

    /// Reads the `Retry-After` of a response to a request that arrived at `now`. `reset` is that of
    /// an exhausted quota. A wait in seconds ends then at the latest.
    fn asked_wait(&self, now: Duration, reset: Option<Duration>) -> Option<AskedWait> {
        let retry_after = str::from_utf8(self.retry_after?).ok()?.trim();
        let (until, tolerance) = match retry_after.parse() {
            Ok(seconds) => {
                let until = now.saturating_add(Duration::from_secs(seconds));
                (reset.map_or(until, |reset| until.min(reset)), TOLERANCE)
            }
            Err(_) => {
                let date = httpdate::parse_http_date(retry_after).ok()?;
                (date.duration_since(UNIX_EPOCH).ok()?, DATE_TOLERANCE)
            }
        };
        Some(AskedWait {
            retry_after: retry_after.into(),
            until,
            tolerance,
        })
    }
}

fn number(value: &[u8]) -> Option<u64> {
    str::from_utf8(value.trim_ascii()).ok()?.parse().ok()
}

/// Whether the value of a `Connection` field is `close`.
pub(super) fn is_close(value: Option<&[u8]>) -> bool {
    value.is_some_and(|value| value.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// Returns a number that is equal for requests with the same method, target, media type and body.
fn identity(record: &Record) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&record.method, &record.arrival.target).hash(&mut hasher);
    let media_type = record.fields.get("content-type").unwrap_or_default();
    let essence = media_type.split(|byte| *byte == b';').next();
    let essence = essence.unwrap_or_default().trim_ascii();
    essence.to_ascii_lowercase().hash(&mut hasher);
    match (json(&record.body), record.body.digest) {
        (Some(json), _) => json.hash(&mut hasher),
        (None, Some(digest)) => digest.hash(&mut hasher),
        // A body that was not read completely is equal to no other.
        (None, None) => record.number.hash(&mut hasher),
    }
    hasher.finish()
}

/// Returns a body as JSON, if all of it was kept. So the order of members and the form of numbers
/// do not matter.
fn json(body: &Captured) -> Option<Value> {
    if body.digest.is_none() || body.start.len() as u64 != body.length {
        return None;
    }
    serde_json::from_str(&unify_integers(&body.start)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_body_is_compared_as_json() {
        let body = |length, digest| Captured {
            start: "[1]".into(),
            length,
            digest,
        };
        for (length, digest, is_json) in [
            (3, Some(7), true),
            (3, None, false),
            (4, Some(7), false),
            (4, None, false),
        ] {
            assert_eq!(
                json(&body(length, digest)).is_some(),
                is_json,
                "{length} {digest:?}"
            );
        }
    }

    #[test]
    fn a_wait_in_seconds_ends_at_the_quotas_reset() {
        let now = Duration::from_millis(10_700);
        let until = |retry_after, reset| {
            let fields = ReplyFields {
                retry_after: Some(str::as_bytes(retry_after)),
                ..ReplyFields::default()
            };
            let asked = fields.asked_wait(now, reset);
            asked.map(|asked| (asked.until.as_millis(), asked.tolerance.as_millis()))
        };
        let reset = Some(Duration::from_secs(60));
        assert_eq!(until("50", None), Some((60_700, 50)));
        assert_eq!(until("50", reset), Some((60_000, 50)));
        let date = "Thu, 01 Jan 1970 00:01:40 GMT";
        assert_eq!(until(date, reset), Some((100_000, 1_000)));
        assert_eq!(until("soon", None), None);
        assert!(until(&u64::MAX.to_string(), None).is_some());
    }
}
