//! What the report consists of: a finding for each rule, and the evidence for it.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::Serialize;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Severity {
    /// It could be better.
    Notice,
    /// It does harm, or can't succeed.
    Warning,
    /// The specification forbids it, or it can do what can't be undone.
    Violation,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Violation => "violation",
        })
    }
}

/// What a rule is called, and what it is about.
#[derive(Debug)]
pub(super) struct About {
    pub(super) rule: &'static str,
    pub(super) title: &'static str,
    pub(super) severity: Severity,
    pub(super) paragraph: &'static str,
}

/// One time that a rule was broken.
#[derive(Clone, Debug)]
pub struct Evidence {
    pub(super) requests: Vec<u64>,
    pub(super) at: Duration,
    pub(super) by: Option<Duration>,
    pub(super) text: String,
}

impl Evidence {
    /// Returns the numbers of the requests it is about; the last one is the one that broke the rule.
    #[must_use]
    pub fn requests(&self) -> &[u64] {
        &self.requests
    }

    /// Returns when that was, on the mock's clock.
    #[must_use]
    pub fn at(&self) -> SystemTime {
        UNIX_EPOCH + self.at
    }

    /// Returns by how much the rule was missed, where that is a time: how much too early, say.
    #[must_use]
    pub const fn by(&self) -> Option<Duration> {
        self.by
    }

    /// Returns what happened, as a phrase.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A rule, how often it was broken, and the evidence.
#[derive(Clone, Debug)]
pub struct Finding {
    pub(super) about: &'static About,
    pub(super) count: u64,
    pub(super) evidence: Vec<Evidence>,
}

impl Finding {
    /// How many times a rule is broken are shown; they are all counted.
    pub(super) const MOST: usize = 20;

    pub(super) const fn none(about: &'static About) -> Self {
        Self { about, count: 0, evidence: Vec::new() }
    }

    /// Counts one more time; its evidence is asked for only if it is to be kept.
    pub(super) fn add(&mut self, evidence: impl FnOnce() -> Evidence) {
        self.count += 1;
        if self.evidence.len() < Self::MOST {
            self.evidence.push(evidence());
        }
    }

    /// Returns the name of the rule, such as `told-to-wait`.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        self.about.rule
    }

    /// Returns the rule in a few words.
    #[must_use]
    pub const fn title(&self) -> &'static str {
        self.about.title
    }

    /// Returns how bad it is.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.about.severity
    }

    /// Returns what the rule asks for, and why.
    #[must_use]
    pub const fn paragraph(&self) -> &'static str {
        self.about.paragraph
    }

    /// Returns how often the rule was broken.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the evidence for the first 20 times.
    #[must_use]
    pub fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }
}
