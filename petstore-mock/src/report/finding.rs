//! What the report consists of: findings, and the evidence for each. Their JSON is that of the report.

use std::{
    borrow::Cow,
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::Method;
use serde::{Serialize, Serializer};

use super::rule::{Rule, Severity};
use crate::{exchange::Moment, plan::Plan};

/// The client that a finding is about: requests with one key and one `User-Agent`, in one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReportedClient {
    /// The name of its key, or the number where it has none; never the key itself.
    pub key: String,
    /// The plan of its key; nothing without a valid key.
    #[serde(serialize_with = "as_text")]
    pub plan: Option<Plan>,
    /// Its `User-Agent`.
    pub user_agent: Option<String>,
}

impl fmt::Display for ReportedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agent = self.user_agent.as_deref().unwrap_or("no User-Agent");
        match self.plan {
            Some(plan) => write!(f, "key {} ({plan}), {agent}", self.key),
            None => write!(f, "{}, {agent}", self.key),
        }
    }
}

/// What a request has to do with a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Role {
    /// The client sent it shortly before; it is shown for the context.
    Before,
    /// The finding follows from its answer, or from the want of one.
    Cause,
    /// It breaks the rule.
    Offence,
    /// The client sent it shortly after; it is shown for the context.
    After,
}

impl Role {
    /// Whether the finding is about the request.
    pub(super) const fn is_concerned(self) -> bool {
        matches!(self, Self::Cause | Self::Offence)
    }
}

/// A request that evidence shows: without its body, and with every key masked.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EvidenceRequest {
    /// Its number in the journal: requests are counted from 1, as they arrive.
    pub number: u64,
    /// What it has to do with the finding.
    pub role: Role,
    /// When it arrived, on the mock's clock.
    #[serde(serialize_with = "as_instant")]
    pub at: SystemTime,
    /// When its answer was sent or lost, on the mock's clock.
    #[serde(serialize_with = "as_instant")]
    pub ended_at: SystemTime,
    /// The method.
    #[serde(serialize_with = "as_method")]
    pub method: Method,
    /// Path and query.
    pub path: Arc<str>,
    /// The number of its connection, from 1.
    pub connection: u64,
    /// The status of the answer; nothing if none reached the client.
    pub status: Option<u16>,
    /// The `Retry-After` of the answer.
    pub retry_after: Option<String>,
    /// Why no answer, or not all of it, reached the client.
    pub lost: Option<Cow<'static, str>>,
    /// The id of the pet that it added, whatever was answered.
    pub added: Option<i64>,
    /// Whether it was refused because the key is banned.
    pub banned: bool,
    #[serde(skip)]
    pub(super) arrived: Moment,
    #[serde(skip)]
    pub(super) ended: Moment,
}

/// One breach of a rule: what the client was told, what it did, and the requests concerned.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Evidence {
    /// When the first request that breaks the rule arrived, on the mock's clock.
    #[serde(serialize_with = "as_instant")]
    pub at: SystemTime,
    /// What the client was told before, if that is what it ignored.
    pub told: Option<String>,
    /// What happened, in a sentence.
    pub text: String,
    /// How much too early a request came, or how long after the end of the one before.
    #[serde(rename = "bySeconds", serialize_with = "as_seconds")]
    pub by: Option<Duration>,
    /// The ids of the pets that were added, if they are the same animal.
    pub added: Vec<i64>,
    /// How many requests broke the rule here.
    pub offences: u64,
    /// How many requests of a long row are left out.
    pub omitted: u64,
    /// The requests concerned, and some around them, by number.
    pub requests: Vec<EvidenceRequest>,
    /// The number of the request with which it began: the same while a row of retries goes on.
    #[serde(skip)]
    pub(super) began: u64,
}

impl Evidence {
    /// How many requests are shown at most.
    const MAX_REQUESTS: usize = 14;
    /// Where a request is left out to make room.
    const OMITTED_AT: usize = 8;

    /// Returns the numbers of the requests concerned, without those that are shown for the context.
    pub fn concerned(&self) -> impl Iterator<Item = u64> {
        self.requests.iter().filter(|one| one.role.is_concerned()).map(|one| one.number)
    }

    /// Adds a request, in the order of the numbers. One that is there already gets the new role if it
    /// is concerned.
    pub(super) fn add(&mut self, request: EvidenceRequest) {
        match self.requests.binary_search_by_key(&request.number, |one| one.number) {
            Ok(place) if request.role.is_concerned() => self.requests[place] = request,
            Ok(_) => {}
            Err(place) => self.requests.insert(place, request),
        }
        if self.requests.len() > Self::MAX_REQUESTS {
            self.requests.remove(Self::OMITTED_AT);
            self.omitted += 1;
        }
    }
}

/// A rule that one client broke, how often, and the evidence.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// How severe it is.
    pub severity: Severity,
    /// The scope, or the test, that it belongs to.
    pub scope: Arc<str>,
    /// Who broke the rule.
    pub client: ReportedClient,
    /// How often the rule was broken. A row of retries, and a time in which the client was told to wait,
    /// count once however many requests they had.
    pub count: u64,
    /// The section of the specification, or of an RFC, that the rule rests on.
    pub source: &'static str,
    /// What the client should do instead.
    pub advice: &'static str,
    /// The evidence for the first 10 times; of a notice, for the first time.
    pub evidence: Vec<Evidence>,
}

fn as_text<S: Serializer>(plan: &Option<Plan>, serializer: S) -> Result<S::Ok, S::Error> {
    plan.map(|plan| plan.to_string()).serialize(serializer)
}

fn as_instant<S: Serializer>(at: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_rfc3339_millis(*at))
}

fn as_method<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(method.as_str())
}

fn as_seconds<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs_f64()).serialize(serializer)
}
