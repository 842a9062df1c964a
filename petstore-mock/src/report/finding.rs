//! The findings, as a program reads them. Their JSON form is that of the report.

use std::{borrow::Cow, fmt, sync::Arc, time::SystemTime};

use serde::{Deserialize, Serialize};

use super::{
    rule::{Rule, Severity},
    text::{clock_time, count, seconds},
};
use crate::plan::Plan;

/// The maximum number of requests of a finding in the text.
const MAX_LINES: usize = 5;

/// A rule that the requests of a key broke, or that they may have broken.
///
/// All early requests in one wait are one finding, and so are all repeats of one failed request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The severity: that of the rule, or [`Severity::Notice`] if it may be the work of the
    /// declared number of senders.
    pub severity: Severity,
    /// The name of the key, or its number; never the key itself.
    pub key: String,
    /// The plan of the key; `None` without a valid key.
    pub plan: Option<Plan>,
    /// The most requests of the key that may be under way at once, as declared.
    pub senders: u32,
    /// What happened, in one sentence.
    pub text: String,
    /// The number of requests that broke the rule.
    pub offences: u64,
    /// The request before them that explains why, and the first ones that broke the rule.
    pub requests: Vec<JudgedRequest>,
    /// What the client should do instead, and on what the rule is based.
    pub advice: Cow<'static, str>,
    /// What to declare if the finding is wrong.
    pub remedy: Option<String>,
}

/// The role of a request in a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Role {
    /// Its response, or the lack of one, makes the later requests break the rule.
    Cause,
    /// The request breaks the rule.
    Offence,
}

/// A request in a finding, without bodies, and with every key masked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JudgedRequest {
    /// The number of the request in the journal, from 1.
    pub number: u64,
    /// The role of the request in the finding.
    pub role: Role,
    /// When the request arrived, on the mock's clock.
    #[serde(with = "date")]
    pub at: SystemTime,
    /// When its response was read or lost.
    #[serde(with = "date")]
    pub ended_at: SystemTime,
    /// The method.
    pub method: String,
    /// The path and query.
    pub path: Arc<str>,
    /// The number of its connection, from 1.
    pub connection: u64,
    /// The status of the response; `None` if the client did not receive the whole response.
    pub status: Option<u16>,
    /// Why the client did not receive the whole response.
    pub lost: Option<Cow<'static, str>>,
    /// The id of the pet that it created, whatever the response was.
    pub added: Option<i64>,
    /// How many seconds too early it arrived.
    pub early_seconds: Option<f64>,
}

impl fmt::Display for JudgedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.role {
            Role::Cause => '*',
            Role::Offence => '!',
        };
        let at = clock_time(self.at);
        write!(
            f,
            "{mark} #{} {at} {} {} -> ",
            self.number, self.method, self.path
        )?;
        match (self.status, &self.lost) {
            (Some(status), _) => write!(f, "{status}")?,
            (None, cause) => {
                let cause = cause.as_deref().unwrap_or("the client left");
                write!(f, "no response ({cause})")?;
            }
        }
        if let Some(early) = self.early_seconds {
            write!(f, ", {} too early", seconds(early))?;
        }
        match self.added {
            Some(id) => write!(f, ", pet {id} was created"),
            None => Ok(()),
        }
    }
}

impl Finding {
    /// Returns the number of the first request.
    pub(super) fn first_request(&self) -> Option<u64> {
        self.requests.first().map(|request| request.number)
    }

    /// Returns the key and what happened.
    pub(crate) fn sentence(&self) -> String {
        let Self { key, text, .. } = self;
        match self.plan {
            Some(plan) => format!("key {key} ({plan}): {text}"),
            // The text says where a valid key was.
            None if self.rule == Rule::Key => text.clone(),
            None => format!("{key}: {text}"),
        }
    }
}

impl fmt::Display for Finding {
    /// Writes what happened. Unless it is a notice, then come the requests, and what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} [{}]  {}", self.severity, self.rule, self.sentence())?;
        if self.severity == Severity::Notice {
            return Ok(());
        }
        let is_cause = |request: &&JudgedRequest| request.role == Role::Cause;
        let causes = self.requests.iter().filter(is_cause).count();
        let shown = &self.requests[..self.requests.len().min(MAX_LINES + causes)];
        for request in shown {
            writeln!(f, "  {request}")?;
        }
        let more = self.offences - (shown.len() - causes) as u64;
        if more > 0 {
            writeln!(f, "  ! and {}", count(more, "more request"))?;
        }
        writeln!(f, "  do: {}", self.advice)?;
        match &self.remedy {
            Some(remedy) => writeln!(f, "  {remedy}"),
            None => Ok(()),
        }
    }
}

/// A date in JSON.
mod date {
    use super::SystemTime;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[cfg_attr(
        windows,
        expect(
            clippy::trivially_copy_pass_by_ref,
            reason = "serde passes a reference"
        )
    )]
    pub(super) fn serialize<S: Serializer>(at: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&humantime::format_rfc3339_millis(*at))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
        humantime::parse_rfc3339(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}
