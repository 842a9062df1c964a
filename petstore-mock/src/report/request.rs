//! The form of a request that the rules judge and the evidence shows.

use std::{
    borrow::Cow,
    collections::VecDeque,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use http::{Method, Version};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{
    clock,
    exchange::{Admission, Captured, Moment, Record},
    text::unify_integers,
};

/// A request on another connection may have been sent up to this long before the response was read.
pub(super) const REACTION: Duration = Duration::from_millis(100);
/// The server may notice this late that a client has left.
const NOTICE: Duration = Duration::from_millis(10);
/// A wait may end this much early, because clocks and timers differ.
const TOLERANCE: Duration = Duration::from_millis(50);
/// The same for dates, which have whole seconds.
const DATE_TOLERANCE: Duration = Duration::from_secs(1);

/// The role of a request in a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Role {
    /// Context: the client sent it shortly before.
    Before,
    /// The finding follows from its response, or from its missing response.
    Cause,
    /// It breaks the rule.
    Offence,
    /// Context: the client sent it shortly after.
    After,
}

impl Role {
    /// Whether the finding is about the request.
    pub(super) const fn is_concerned(self) -> bool {
        matches!(self, Self::Cause | Self::Offence)
    }
}

/// A request in evidence, without its body, and with every key masked.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JudgedRequest {
    /// The number of the request in the journal, from 1.
    pub number: u64,
    /// Its role in the finding.
    pub role: Role,
    #[serde(rename = "at", serialize_with = "as_instant")]
    pub(super) arrived: Moment,
    #[serde(rename = "endedAt", serialize_with = "as_instant")]
    pub(super) ended: Moment,
    /// The method.
    #[serde(serialize_with = "as_text")]
    pub method: Method,
    /// The path and query.
    pub path: Arc<str>,
    /// The number of its connection, from 1.
    pub connection: u64,
    /// The status of the response; `None` if the client did not receive the whole response.
    pub status: Option<u16>,
    /// The `Retry-After` of a 429 or 5xx.
    pub retry_after: Option<String>,
    /// Why the client did not receive the whole response.
    pub lost: Option<Cow<'static, str>>,
    /// The id of the pet that it created, whatever the response was.
    pub added: Option<i64>,
    /// Whether it was refused because the key was banned.
    pub banned: bool,
    /// When its connection was opened.
    #[serde(skip)]
    pub(super) opened: Moment,
    /// Whether the client left before the response.
    #[serde(skip)]
    pub(super) has_left: bool,
    /// Whether its connection can carry several requests at once (HTTP/2).
    #[serde(skip)]
    pub(super) is_multiplexed: bool,
    /// The maximum number of the client's requests in flight in the last 60 s.
    #[serde(skip)]
    pub(super) width: u32,
    /// Whether two requests of the client were in flight in the last second.
    #[serde(skip)]
    pub(super) is_parallel: bool,
    /// Equal for requests with the same method, target, media type and body.
    #[serde(skip)]
    pub(super) fingerprint: u64,
    /// Until when the response asks the client to wait, and the tolerance.
    #[serde(skip)]
    pub(super) told_until: Option<(Duration, Duration)>,
    /// When the quota resets that is exhausted according to the response.
    #[serde(skip)]
    pub(super) used_up_until: Option<Duration>,
}

impl JudgedRequest {
    /// Converts a record. `ended` is when its response was read or lost.
    pub(crate) fn new(record: &Record, ended: Moment) -> Self {
        let reply = |name| {
            str::from_utf8(record.reply_fields.get(name)?)
                .ok()
                .map(str::trim)
        };
        let number = |name| reply(name)?.parse::<u64>().ok();
        let is_lost = record.is_lost() || record.status.is_none();
        let status = record.status.filter(|_| !is_lost);
        let banned = record.arrival.admission == Admission::Banned;
        let is_used_up = number("x-ratelimit-remaining") == Some(0);
        let reset = if is_used_up {
            number("x-ratelimit-reset")
        } else {
            None
        };
        let used_up_until = reset.map(Duration::from_secs);
        let may_tell = matches!(status, Some(429 | 500..));
        let retry_after = if may_tell { reply("retry-after") } else { None };
        let reset = used_up_until.filter(|_| status == Some(429) && !banned);
        let told_until = retry_after.and_then(|text| wait_end(text, record.arrived.at, reset));
        let cause = || {
            record
                .faults
                .last()
                .cloned()
                .unwrap_or("the client left".into())
        };
        Self {
            number: record.number,
            role: Role::Offence,
            arrived: record.arrived,
            ended,
            method: record.method.clone(),
            path: Arc::clone(&record.arrival.target),
            connection: record.caller.connection,
            status,
            retry_after: retry_after
                .filter(|_| told_until.is_some())
                .map(str::to_owned),
            lost: is_lost.then(cause),
            added: record.added,
            banned,
            opened: record.caller.opened,
            has_left: record.status.is_none(),
            is_multiplexed: record.version >= Version::HTTP_2,
            width: record.in_flight.width,
            is_parallel: record.in_flight.is_parallel,
            fingerprint: fingerprint(record),
            told_until,
            used_up_until,
        }
    }

    /// Returns a copy with another role.
    pub(super) fn with_role(&self, role: Role) -> Self {
        Self {
            role,
            ..self.clone()
        }
    }

    /// Whether the client got no response, or a 5xx.
    pub(super) fn has_failed(&self) -> bool {
        self.status.is_none_or(|status| status >= 500)
    }

    /// Returns the method and path, without the query, which may contain credentials.
    pub(super) fn name(&self) -> String {
        format!(
            "{} {}",
            self.method,
            self.path.split('?').next().unwrap_or_default()
        )
    }

    /// Whether the client should still wait: neither clock has reached the end.
    pub(super) fn tells_to_wait_at(&self, now: &Moment) -> bool {
        self.told_until.is_some_and(|(until, tolerance)| {
            let until = until.saturating_sub(tolerance);
            let wait = until.saturating_sub(self.arrived.at);
            now.at < until && now.real.saturating_duration_since(self.arrived.real) < wait
        })
    }

    /// Whether it was certainly sent after the client read the response to an earlier request, or
    /// gave up on it.
    pub(super) fn follows(&self, earlier: &Self) -> bool {
        let is_opened_after = self.opened.order > earlier.ended.order
            || earlier.has_left && earlier.ended.gap_since(&self.opened) < NOTICE;
        earlier.ended.order < self.arrived.order
            && (self.connection == earlier.connection && !self.is_multiplexed
                || is_opened_after && !self.is_parallel
                || self.arrived.gap_since(&earlier.ended) >= REACTION)
    }

    /// Whether its sender knew an earlier response: it used the same connection, or repeated the
    /// same request.
    pub(super) fn was_told_by(&self, earlier: &Self) -> bool {
        let is_repeat =
            self.fingerprint == earlier.fingerprint && self.opened.order > earlier.ended.order;
        self.follows(earlier) && (self.connection == earlier.connection || is_repeat)
    }
}

/// Adds to a queue of at most `max` items, and drops the first one if it is full.
pub(super) fn push_bounded<T>(queue: &mut VecDeque<T>, item: T, max: usize) {
    if queue.len() >= max {
        queue.pop_front();
    }
    queue.push_back(item);
}

/// Returns the end of a `Retry-After` and the tolerance. `reset` is that of an exhausted quota.
fn wait_end(text: &str, now: Duration, reset: Option<Duration>) -> Option<(Duration, Duration)> {
    if let Ok(seconds) = text.parse() {
        let until = now.saturating_add(Duration::from_secs(seconds));
        return Some((reset.map_or(until, |reset| until.min(reset)), TOLERANCE));
    }
    let date = httpdate::parse_http_date(text)
        .ok()?
        .duration_since(UNIX_EPOCH)
        .ok()?;
    Some((date, DATE_TOLERANCE))
}

fn fingerprint(record: &Record) -> u64 {
    let mut hasher = DefaultHasher::new();
    let media_type = record.fields.get("content-type").unwrap_or_default();
    let essence = media_type
        .split(|byte| *byte == b';')
        .next()
        .unwrap_or_default();
    (&record.method, &record.arrival.target).hash(&mut hasher);
    essence.trim_ascii().to_ascii_lowercase().hash(&mut hasher);
    match (json(&record.body), record.body.digest) {
        (Some(json), _) => json.hash(&mut hasher),
        (None, Some(digest)) => digest.hash(&mut hasher),
        // A body that was not read completely equals no other.
        (None, None) => record.number.hash(&mut hasher),
    }
    hasher.finish()
}

/// Returns a body as JSON, if all of it was kept. The order of members and the form of numbers do
/// not matter.
fn json(body: &Captured) -> Option<Value> {
    if body.digest.is_none() || body.start.len() as u64 != body.length {
        return None;
    }
    serde_json::from_str(&unify_integers(&body.start)?).ok()
}

pub(super) fn as_instant<S: Serializer>(moment: &Moment, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&instant(moment.at))
}

fn as_text<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(method)
}

/// Formats a duration in seconds, with up to three decimals.
pub(super) fn seconds(time: Duration) -> String {
    let text = format!("{:.3}", time.as_secs_f64());
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats a date and time in UTC, at most the end of the year 9999.
pub(super) fn instant(at: Duration) -> impl fmt::Display {
    humantime::format_rfc3339_millis(clock::instant(at))
}

/// Formats the time of day in UTC.
pub(super) fn clock_time(at: Duration) -> String {
    let text = instant(at).to_string();
    text.get(11..23).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_no_needless_digits() {
        for (milliseconds, text) in [
            (0, "0 s"),
            (50_000, "50 s"),
            (1_500, "1.5 s"),
            (3, "0.003 s"),
            (100_000, "100 s"),
        ] {
            assert_eq!(seconds(Duration::from_millis(milliseconds)), text);
        }
    }

    #[test]
    fn only_a_body_that_was_read_and_kept_as_a_whole_is_compared_as_json() {
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
}
