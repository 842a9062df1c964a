//! The facts of one exchange that the rules judge.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use serde_json::Value;

use super::finding::{JudgedRequest, Role};
use crate::{
    clock::instant,
    exchange::{Admission, Captured, Moment, Record},
    operation::Operation,
    text::unify_integers,
};

/// A wait may be this much too short, because clocks and timers differ. Dates have whole seconds.
const SLACK: Duration = Duration::from_millis(100);
const DATE_SLACK: Duration = Duration::from_secs(1);
/// A longer wait is absurd: no quota lasts for more than a day.
const LONGEST_WAIT: Duration = Duration::from_secs(25 * 60 * 60);
/// A `Date` that differs by more from the mock's clock was falsified by a fault.
const DATE_DIFFERENCE: Duration = Duration::from_secs(2);

/// The facts of one exchange.
#[derive(Clone)]
pub(super) struct Facts {
    /// The request as the cause of a finding. Its path is not masked.
    request: JudgedRequest,
    operation: Option<Operation>,
    arrived: Moment,
    /// When its response was read or lost.
    ended: Moment,
    told: Option<Told>,
    is_banned: bool,
    /// Whether its connection had been used before.
    was_open: bool,
}

/// The usable `Retry-After` of a 429 or 503.
#[derive(Clone)]
pub(super) struct Told {
    retry_after: Box<str>,
    /// The end of the wait, on the mock's clock.
    until: Duration,
    /// From when on a request is in time; `None` if it is at once.
    ends: Option<Moment>,
}

impl Facts {
    /// Reads the facts of a record. `ended` is when its response was read or lost.
    pub(super) fn new(record: &Record, ended: Moment) -> Self {
        let status = record.status.filter(|_| !record.is_lost());
        let lost = match (status, record.faults.last()) {
            (Some(_), _) => None,
            (None, Some(fault)) => Some(fault.clone()),
            (None, None) => Some("the client left".into()),
        };
        Self {
            request: JudgedRequest {
                number: record.number,
                role: Role::Cause,
                at: instant(record.arrived.at()),
                ended_at: instant(ended.at()),
                method: record.method.to_string(),
                path: Arc::clone(&record.arrival.target),
                connection: record.caller.connection,
                status,
                lost,
                added: record.added,
                early_seconds: None,
            },
            operation: record.arrival.operation,
            arrived: record.arrived,
            ended,
            told: match status {
                Some(429 | 503) => Told::by(record),
                _ => None,
            },
            is_banned: record.arrival.admission == Admission::Banned,
            was_open: record.caller.nth > 1,
        }
    }

    /// Returns the request as the cause of a finding. Its path is not masked.
    pub(super) const fn request(&self) -> &JudgedRequest {
        &self.request
    }

    /// Returns the method and path, without the query, which may contain credentials.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.request.method, self.path())
    }

    /// Returns the path without the query.
    pub(super) fn path(&self) -> &str {
        self.request.path.split('?').next().unwrap_or_default()
    }

    pub(super) const fn operation(&self) -> Option<Operation> {
        self.operation
    }

    pub(super) const fn arrived(&self) -> &Moment {
        &self.arrived
    }

    pub(super) const fn ended(&self) -> &Moment {
        &self.ended
    }

    pub(super) const fn told(&self) -> Option<&Told> {
        self.told.as_ref()
    }

    /// Returns the status; `None` if the client did not receive the whole response.
    pub(super) const fn status(&self) -> Option<u16> {
        self.request.status
    }

    /// Whether the request was refused because its key was banned.
    pub(super) const fn is_banned(&self) -> bool {
        self.is_banned
    }

    /// Whether its connection had been used before.
    pub(super) const fn was_open(&self) -> bool {
        self.was_open
    }

    /// Whether the client got no response, or a 5xx.
    pub(super) fn has_failed(&self) -> bool {
        self.status().is_none_or(|status| status >= 500)
    }

    /// Whether something was created, and the client knows it.
    pub(super) fn has_created(&self) -> bool {
        self.status() == Some(201)
    }

    /// Whether the client looked what is at the path of this `POST`.
    pub(super) fn is_look_after(&self, post: &Self) -> bool {
        self.request.method == "GET"
            && self.status() == Some(200)
            && self.path() == post.path()
            && post.ended.is_before(&self.arrived)
    }

    /// Whether this is a `POST` of which the client cannot know whether it was processed.
    pub(super) fn is_unknown_post(&self) -> bool {
        self.request.method == "POST" && matches!(self.status(), None | Some(500 | 502 | 504))
    }

    /// Returns the pause of the client between this failure and `next`. It is measured from the start of
    /// a slow request. Otherwise a poller whose time-out equals its interval would seem not to pause.
    pub(super) fn pause_before(&self, next: &Self) -> Duration {
        let is_slow = self.ended.gap_since(&self.arrived) >= SLACK;
        let from = if is_slow { &self.arrived } else { &self.ended };
        next.arrived.gap_since(from)
    }
}

impl Told {
    /// Reads the `Retry-After` of a response; `None` if it is missing, unusable or absurd.
    fn by(record: &Record) -> Option<Self> {
        let field = |name| {
            let value = record.reply_fields.get(name)?;
            str::from_utf8(value).ok().map(str::trim)
        };
        let now = record.arrived.at();
        let retry_after = field("retry-after")?;
        let (mut until, slack) = match date(retry_after) {
            Some(date) => (date, DATE_SLACK),
            // Rust's numbers may have a sign, unlike those of HTTP.
            None if retry_after.starts_with('+') => return None,
            None => {
                let seconds = Duration::from_secs(retry_after.parse().ok()?);
                (now.saturating_add(seconds), SLACK)
            }
        };
        if until.saturating_sub(now) > LONGEST_WAIT {
            return None;
        }
        // A client may also wait for the reset of the exhausted quota, which comes earlier than the
        // rounded seconds. A ban does not end then.
        let is_exhausted = field("x-ratelimit-remaining") == Some("0");
        let is_quota = record.status == Some(429) && record.arrival.admission != Admission::Banned;
        if slack == SLACK
            && is_exhausted
            && is_quota
            && let Some(reset) = field("x-ratelimit-reset").and_then(|reset| reset.parse().ok())
        {
            until = until.min(Duration::from_secs(reset));
        }
        let is_falsified = field("date").is_some_and(|shown| is_falsified(shown, record));
        let length = until.saturating_sub(slack).saturating_sub(now);
        let ends = (!length.is_zero() && !is_falsified).then(|| record.arrived.after(length));
        Some(Self {
            retry_after: retry_after.into(),
            until,
            ends,
        })
    }

    pub(super) fn retry_after(&self) -> &str {
        &self.retry_after
    }

    /// Returns the end of the wait, on the mock's clock.
    pub(super) const fn until(&self) -> Duration {
        self.until
    }

    /// Returns from when on a request is in time; `None` if it is at once.
    pub(super) const fn ends(&self) -> Option<&Moment> {
        self.ends.as_ref()
    }
}

fn date(text: &str) -> Option<Duration> {
    let date = httpdate::parse_http_date(text).ok()?;
    date.duration_since(UNIX_EPOCH).ok()
}

/// Whether a `Date` is not that of the mock's clock.
fn is_falsified(shown: &str, record: &Record) -> bool {
    let earliest = record.arrived.at().saturating_sub(DATE_DIFFERENCE);
    let latest = record.ended.at().saturating_add(DATE_DIFFERENCE);
    date(shown).is_none_or(|date| date < earliest || date > latest)
}

/// Returns a number that is equal for the same requests of a key: by method, target, `X-Mock-Fault` and
/// body. Requests with another `Authorization` have another key.
pub(super) fn identity(record: &Record) -> u64 {
    let mut hasher = identity_of_head(record);
    match json(&record.body) {
        Some(json) => json.hash(&mut hasher),
        None => record.body.digest.hash(&mut hasher),
    }
    hasher.finish()
}

/// Returns such a number that is cheap. It differs if the same JSON is written otherwise.
pub(super) fn identity_of_bytes(record: &Record) -> u64 {
    let mut hasher = identity_of_head(record);
    record.body.digest.hash(&mut hasher);
    hasher.finish()
}

fn identity_of_head(record: &Record) -> DefaultHasher {
    let mut hasher = DefaultHasher::new();
    (&record.method, &record.arrival.target).hash(&mut hasher);
    record.fields.get("x-mock-fault").hash(&mut hasher);
    if record.body.digest.is_none() {
        // A body that was not read completely is equal to no other.
        record.number.hash(&mut hasher);
    }
    hasher
}

/// Returns a body as JSON, if all of it was kept. So the order of members and the form of numbers
/// do not matter.
fn json(body: &Captured) -> Option<Value> {
    if body.digest.is_none() || body.start.len() as u64 != body.length {
        return None;
    }
    let mut json = serde_json::from_slice(&body.start).ok()?;
    unify_integers(&mut json);
    Some(json)
}
