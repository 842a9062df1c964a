//! The evidence of a finding, as it is reported: without bodies, and with every key masked. Its
//! serialized form is a part of the report's JSON.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::Method;
use serde::{Serialize, Serializer};

use super::{
    breach::{Breach, Kept, Series},
    facts::Facts,
};
use crate::{
    clock::{instant, seconds},
    exchange::Moment,
};

/// The minimum difference between the mock's clock and real time that is shown.
const CLOCK_MOVED: Duration = Duration::from_millis(50);

/// The role of a request in a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Role {
    /// Context: the client sent it shortly before.
    Before,
    /// Its response, or the lack of one, makes the later requests a breach.
    Cause,
    /// The request breaks the rule.
    Offence,
    /// Context: the client sent it shortly after.
    After,
}

/// A request in evidence.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JudgedRequest {
    /// The number of the request in the journal, from 1.
    pub number: u64,
    /// The role of the request in the finding.
    pub role: Role,
    /// When the request arrived, on the mock's clock.
    #[serde(serialize_with = "as_instant")]
    pub at: SystemTime,
    /// When its response was read or lost.
    #[serde(serialize_with = "as_instant")]
    pub ended_at: SystemTime,
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
    /// The message of an error.
    pub message: Option<String>,
    /// Why the client did not receive the whole response.
    pub lost: Option<Cow<'static, str>>,
    /// The id of the pet that it created, whatever the response was.
    pub added: Option<i64>,
    /// Whether the request was refused because the key was banned.
    pub banned: bool,
    /// For a request that breaks the rule: the one before it in the same breach.
    pub after: Option<Predecessor>,
    /// The number of requests that break the rule and are not shown, before this one.
    pub omitted_before: u64,
    /// The real time since the first shown request, if the mock's clock was moved since.
    #[serde(skip)]
    pub(super) real_time: Option<Duration>,
}

/// The request before another one in the same breach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Predecessor {
    /// The number of the request in the journal.
    pub number: u64,
    /// The time from the end of its exchange to the arrival of the other request. It is the longer
    /// one of the times by the mock's clock and in real time. In JSON, it is in seconds.
    #[serde(rename = "seconds", serialize_with = "seconds::serialize")]
    pub gap: Duration,
}

/// The evidence of a breach: what the service announced, what the client did, and the requests
/// concerned.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Evidence {
    /// When the first request that broke the rule arrived, on the mock's clock.
    #[serde(serialize_with = "as_instant")]
    pub at: SystemTime,
    /// What the client ignored, for example a `Retry-After`.
    pub told: Option<String>,
    /// What happened, in one sentence.
    pub text: String,
    /// How much too early the first request arrived. For some rules, how long after the end of the
    /// previous one.
    #[serde(rename = "bySeconds", serialize_with = "seconds::serialize")]
    pub by: Option<Duration>,
    /// The ids of pets that a repeated request created.
    pub added: Vec<i64>,
    /// The ban that the requests caused, with the number of all these requests.
    pub ban: Option<String>,
    /// The number of requests that broke the rule. Each is shown with [`Role::Offence`], or counted
    /// in `omitted`.
    pub offences: u64,
    /// The number of requests that broke the rule and are not shown.
    pub omitted: u64,
    /// The requests concerned and some around them, by number.
    pub requests: Vec<JudgedRequest>,
}

impl Evidence {
    /// Converts a breach with its context. `mask` masks the keys in a text.
    pub(super) fn new(
        breach: &Breach,
        before: &[Arc<Facts>],
        after: &[Arc<Facts>],
        mask: &impl Fn(&str) -> String,
    ) -> Self {
        let series = breach.series();
        let mut shown = shown(series, before, after);
        shown.sort_by_key(|one| one.facts.number());
        let begin = shown.first().map(|one| *one.facts.arrived());
        let requests = shown.iter().map(|one| one.to_request(begin.as_ref(), mask));
        let first = shown.iter().find(|one| one.role == Role::Offence);
        let at = first.map(|one| one.facts.arrived().at());
        Self {
            at: instant(at.unwrap_or_default()),
            told: breach.told.as_deref().map(mask),
            text: mask(&breach.text),
            by: breach.by,
            added: breach.added.clone(),
            ban: breach.ban.clone(),
            offences: series.count(),
            omitted: series.omitted(),
            requests: requests.collect(),
        }
    }
}

/// A request to show.
struct Shown<'a> {
    facts: &'a Facts,
    role: Role,
    after: Option<Predecessor>,
    omitted_before: u64,
}

impl<'a> Shown<'a> {
    const fn new(facts: &'a Facts, role: Role) -> Self {
        Self {
            facts,
            role,
            after: None,
            omitted_before: 0,
        }
    }

    fn offence(kept: &'a Kept, omitted_before: u64) -> Self {
        Self {
            after: kept
                .after()
                .map(|(number, gap)| Predecessor { number, gap }),
            omitted_before,
            ..Self::new(kept.facts(), Role::Offence)
        }
    }

    fn to_request(&self, begin: Option<&Moment>, mask: &impl Fn(&str) -> String) -> JudgedRequest {
        let facts = self.facts;
        JudgedRequest {
            number: facts.number(),
            role: self.role,
            at: instant(facts.arrived().at()),
            ended_at: instant(facts.ended().at()),
            method: facts.method().clone(),
            path: mask(facts.target()).into(),
            connection: facts.connection(),
            status: facts.status(),
            retry_after: facts.retry_after().map(str::to_owned),
            message: facts.message().map(|message| mask(&message)),
            lost: facts.lost().cloned(),
            added: facts.added(),
            banned: facts.is_banned(),
            after: self.after,
            omitted_before: self.omitted_before,
            real_time: begin.and_then(|begin| real_time(facts.arrived(), begin)),
        }
    }
}

/// Returns the requests of a breach, and those around them.
fn shown<'a>(
    series: &'a Series,
    before: &'a [Arc<Facts>],
    after: &'a [Arc<Facts>],
) -> Vec<Shown<'a>> {
    let mut shown = Vec::new();
    if let Some(cause) = series.cause() {
        shown.push(Shown::new(cause, Role::Cause));
    }
    let (first, last) = series.kept();
    // Omitted requests come between the first and the last ones. For a ban, they come before all
    // known ones.
    let gap = if last.is_empty() { 0 } else { first.len() };
    for (place, kept) in first.iter().chain(last).enumerate() {
        let omitted_before = if place == gap { series.omitted() } else { 0 };
        shown.push(Shown::offence(kept, omitted_before));
    }
    // Only requests outside of these are context: those in between may be omitted offences.
    let numbers = shown.iter().map(|one| one.facts.number());
    let (least, most) = (numbers.clone().min(), numbers.max());
    let before = before.iter().filter(|facts| Some(facts.number()) < least);
    let after = after.iter().filter(|facts| Some(facts.number()) > most);
    shown.extend(before.map(|facts| Shown::new(facts, Role::Before)));
    shown.extend(after.map(|facts| Shown::new(facts, Role::After)));
    shown
}

/// Returns the real time since the first request, if the mock's clock was moved in the meantime.
fn real_time(now: &Moment, begin: &Moment) -> Option<Duration> {
    let clock = now.at().saturating_sub(begin.at());
    let real = now.real_time_since(begin);
    (clock.abs_diff(real) > CLOCK_MOVED).then_some(real)
}

#[cfg_attr(
    windows,
    expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )
)]
fn as_instant<S: Serializer>(at: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_rfc3339_millis(*at))
}

fn as_text<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(method)
}
