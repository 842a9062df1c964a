//! A report in JSON, as far as it decides and is shown as annotations.

use serde::{Deserialize, Deserializer, de::Error as _};

use crate::report::Severity;

/// The fields of a JSON report that decide.
#[derive(Debug, Deserialize)]
pub(super) struct Judgement {
    pub(super) requests: u64,
    pub(super) violations: u64,
    pub(super) warnings: u64,
    pub(super) findings: Vec<FoundRule>,
}

/// A finding, as far as an annotation shows it.
#[derive(Debug, Deserialize)]
pub(super) struct FoundRule {
    pub(super) rule: String,
    #[serde(deserialize_with = "severity")]
    pub(super) severity: Severity,
    pub(super) scope: String,
    pub(super) count: u64,
    #[serde(default)]
    pub(super) reason: String,
    #[serde(default)]
    pub(super) advice: String,
    #[serde(default)]
    pub(super) evidence: Vec<FoundEvidence>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FoundEvidence {
    #[serde(default)]
    pub(super) text: String,
}

fn severity<'de, D: Deserializer<'de>>(from: D) -> Result<Severity, D::Error> {
    let text = String::deserialize(from)?;
    text.parse()
        .map_err(|_| D::Error::custom("unknown severity"))
}
