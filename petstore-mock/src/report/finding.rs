//! What the report consists of: findings, and the evidence for each.

use std::{
    borrow::Cow,
    fmt,
    str::FromStr,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::Method;
use serde::Serialize;

use super::{observed::ObservedExchange, rule::Rule, rules::Offence};
use crate::{exchange::Moment, plan::Plan};

/// How severe a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Severity {
    /// It could be better. A notice never fails a run.
    Notice,
    /// A specification advises against it, or it can't succeed.
    Warning,
    /// The specification forbids it, or it does what can't be undone.
    Violation,
}

/// No severity has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown severity; severities: notice, warning, violation")]
pub struct ParseSeverityError;

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Violation => "violation",
        })
    }
}

impl FromStr for Severity {
    type Err = ParseSeverityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all = [Self::Notice, Self::Warning, Self::Violation];
        all.into_iter().find(|one| one.to_string() == text).ok_or(ParseSeverityError)
    }
}

/// The client that a finding is about: requests with one key and one `User-Agent`, in one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedClient {
    pub(super) key: String,
    pub(super) plan: Option<Plan>,
    pub(super) user_agent: Option<String>,
}

impl ReportedClient {
    /// Returns the name of its key, or its number where it has none; never the key itself.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the plan of its key; nothing without a valid key.
    #[must_use]
    pub const fn plan(&self) -> Option<Plan> {
        self.plan
    }

    /// Returns its `User-Agent`.
    #[must_use]
    pub fn user_agent(&self) -> Option<&str> {
        self.user_agent.as_deref()
    }
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

/// A request that evidence shows: without its body, and with every key masked.
#[derive(Clone, Debug)]
pub struct EvidenceRequest {
    pub(super) role: Role,
    pub(super) number: u64,
    pub(super) connection: u64,
    pub(super) arrived: Moment,
    pub(super) ended: Moment,
    pub(super) method: Method,
    pub(super) target: Arc<str>,
    pub(super) status: Option<u16>,
    pub(super) lost: Option<Cow<'static, str>>,
    pub(super) retry_after: Option<String>,
    pub(super) added: Option<i64>,
    pub(super) is_banned: bool,
}

impl EvidenceRequest {
    /// Returns what it has to do with the finding.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Returns its number in the journal: requests are counted from 1, as they arrive.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Returns the number of its connection, from 1.
    #[must_use]
    pub const fn connection(&self) -> u64 {
        self.connection
    }

    /// Returns when it arrived, on the mock's clock.
    #[must_use]
    pub fn at(&self) -> SystemTime {
        UNIX_EPOCH + self.arrived.at
    }

    /// Returns when its answer was sent or lost, on the mock's clock.
    #[must_use]
    pub fn ended_at(&self) -> SystemTime {
        UNIX_EPOCH + self.ended.at
    }

    /// Returns the method.
    #[must_use]
    pub const fn method(&self) -> &Method {
        &self.method
    }

    /// Returns path and query.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the status of the answer; nothing if none reached the client.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.status.filter(|_| self.lost.is_none())
    }

    /// Returns why no answer, or not all of it, reached the client.
    #[must_use]
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// Returns the id of the pet that it added, whatever was answered.
    #[must_use]
    pub const fn added(&self) -> Option<i64> {
        self.added
    }
}

/// One breach of a rule: what the client was told, what it did, and the requests concerned.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// The number of the request with which it began: the same while a row of retries goes on.
    pub(super) began: u64,
    pub(super) at: Duration,
    pub(super) told: Option<String>,
    pub(super) text: String,
    pub(super) by: Option<Duration>,
    pub(super) added: Vec<i64>,
    pub(super) offences: u64,
    pub(super) requests: Vec<EvidenceRequest>,
    pub(super) omitted: u64,
}

impl Evidence {
    /// How many requests are shown at most.
    const MAX_REQUESTS: usize = 14;
    /// Where a request is left out to make room.
    const OMITTED_AT: usize = 8;

    /// Returns the evidence of a breach that an exchange committed.
    pub(super) fn new(exchange: &ObservedExchange, offence: Offence) -> Self {
        let Offence { began, told, text, by, added, causes, .. } = offence;
        let (at, requests) = (exchange.arrived.at, Vec::new());
        let mut evidence =
            Self { began, at, told, text, by, added, offences: 1, requests, omitted: 0 };
        causes.into_iter().for_each(|request| evidence.add(request));
        evidence.add(exchange.as_evidence(Role::Offence));
        evidence
    }

    /// Returns when the first request that breaks the rule arrived, on the mock's clock.
    #[must_use]
    pub fn at(&self) -> SystemTime {
        UNIX_EPOCH + self.at
    }

    /// Returns what the client was told before, if that is what it ignored.
    #[must_use]
    pub fn told(&self) -> Option<&str> {
        self.told.as_deref()
    }

    /// Returns what happened, in a sentence.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the time that matters: how much too early a request came, or how long after the end of
    /// the one before.
    #[must_use]
    pub const fn by(&self) -> Option<Duration> {
        self.by
    }

    /// Returns the ids of the pets that were added, if they are the same animal.
    #[must_use]
    pub fn added(&self) -> &[i64] {
        &self.added
    }

    /// Returns how many requests broke the rule here.
    #[must_use]
    pub const fn offences(&self) -> u64 {
        self.offences
    }

    /// Returns the requests concerned, and some around them, by number. Of a long row the middle is
    /// left out.
    #[must_use]
    pub fn requests(&self) -> &[EvidenceRequest] {
        &self.requests
    }

    /// Returns the numbers of the requests concerned, without those that are shown for the context.
    pub fn concerned(&self) -> impl Iterator<Item = u64> {
        let concerned = |one: &&EvidenceRequest| matches!(one.role, Role::Cause | Role::Offence);
        self.requests.iter().filter(concerned).map(EvidenceRequest::number)
    }

    /// Adds a request, in the order of the numbers. One that is there already gets the new role if it
    /// is concerned.
    pub(super) fn add(&mut self, request: EvidenceRequest) {
        match self.requests.binary_search_by_key(&request.number, EvidenceRequest::number) {
            Ok(place) if matches!(request.role, Role::Cause | Role::Offence) => {
                self.requests[place] = request;
            }
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
#[derive(Clone, Debug)]
pub struct Finding {
    pub(super) rule: Rule,
    pub(super) severity: Severity,
    pub(super) scope: Arc<str>,
    pub(super) client: ReportedClient,
    pub(super) count: u64,
    pub(super) evidence: Vec<Evidence>,
}

impl Finding {
    /// How many breaches are shown; all are counted.
    pub(super) const MAX_EVIDENCE: usize = 10;

    /// Returns the rule.
    #[must_use]
    pub const fn rule(&self) -> Rule {
        self.rule
    }

    /// Returns how severe it is.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.severity
    }

    /// Returns the scope, or the test, that it belongs to.
    #[must_use]
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// Returns who broke the rule.
    #[must_use]
    pub const fn client(&self) -> &ReportedClient {
        &self.client
    }

    /// Returns how often the rule was broken. A row of retries, and a time that the client was told to
    /// wait, count once however many requests it had.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the evidence for the first 10 times; of a notice, for the first time.
    #[must_use]
    pub fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }
}
