//! The rules: names, severities and sources.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::text::{ParseNameError, parse_name};

/// The severity of a finding. Its text form is `notice`, `warning` or `violation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Severity {
    /// Something that could be better. A notice never fails a run.
    Notice,
    /// A specification advises against it, or it cannot succeed.
    Warning,
    /// The specification forbids it, or its effect cannot be undone.
    Violation,
}

impl Severity {
    /// All severities, the least severe first.
    pub const ALL: &'static [Self] = &[Self::Notice, Self::Warning, Self::Violation];
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl FromStr for Severity {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_name(text)
    }
}

/// A rule of the compliance report.
///
/// ```
/// use petstore_mock::{Rule, Severity};
///
/// let rule: Rule = "told-to-wait".parse()?;
/// assert_eq!(rule, Rule::ToldToWait);
/// assert_eq!(rule.about().severity, Severity::Violation);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Rule {
    /// Requests were sent before the `Retry-After` of a 429 had elapsed.
    ToldToWait,
    /// A failed request was sent again at once.
    BackOff,
    /// A `POST` was sent again after an outcome that the client cannot know.
    RepeatedPost,
    /// A key was sent in the URL, or not as a bearer token.
    Key,
    /// A request was sent again before the `Retry-After` of its 503 had elapsed.
    RetryAfter,
    /// The deprecated operation was used.
    Deprecated,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl FromStr for Rule {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_name(text)
    }
}

/// The description of a rule.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct About {
    /// What a client did, in a few words.
    pub title: &'static str,
    /// The default severity.
    pub severity: Severity,
    /// The section of the specification or an RFC on which the rule is based.
    pub source: &'static str,
    /// What the rule requires, and the effect of a breach.
    pub reason: &'static str,
    /// What the client should do instead.
    pub advice: &'static str,
}

impl Rule {
    /// All rules, the most severe first.
    pub const ALL: &'static [Self] = &[
        Self::ToldToWait,
        Self::BackOff,
        Self::RepeatedPost,
        Self::Key,
        Self::RetryAfter,
        Self::Deprecated,
    ];

    /// Returns the description of the rule.
    #[must_use]
    pub const fn about(self) -> &'static About {
        match self {
            Self::ToldToWait => &About {
                title: "sent before Retry-After elapsed",
                severity: Severity::Violation,
                source: "specification, section 8, rules 3 and 4",
                reason: "After a 429, the client must wait for the time in Retry-After. Repeated \
                         requests may lead to a ban of the key, which stops every program that \
                         uses it.",
                advice: "After a 429, send nothing with that key until Retry-After has elapsed.",
            },
            Self::BackOff => &About {
                title: "retries without back-off",
                severity: Severity::Violation,
                source: "specification, section 8, rule 4; RFC 9110, section 9.2.2",
                reason: "Retries without exponential backoff multiply the load on a service that \
                         is failing.",
                advice: "Wait before each retry, twice as long as before the last one, with \
                         jitter and a limit.",
            },
            Self::RepeatedPost => &About {
                title: "a POST sent again after an unknown outcome",
                severity: Severity::Violation,
                source: "RFC 9110, section 9.2.2",
                reason: "The first POST may have been applied. The specification has no \
                         idempotency key: only a list shows whether it was.",
                advice: "Check with GET /pets whether the pet was created, or don't repeat the \
                         POST.",
            },
            Self::Key => &About {
                title: "a key that is not sent as a bearer token",
                severity: Severity::Violation,
                source: "specification, section 5; RFC 6750, section 2.3",
                reason: "URLs are written to the logs of servers and proxies, where others can \
                         read the key. Under another scheme, a valid key is answered 401.",
                advice: "Send the key as `Authorization: Bearer KEY`, and nowhere else.",
            },
            Self::RetryAfter => &About {
                title: "sent again before the Retry-After of a 503",
                severity: Severity::Warning,
                source: "RFC 9110, section 10.2.3",
                reason: "Retry-After says how long the client ought to wait before it repeats the \
                         request.",
                advice: "After a 503 with Retry-After, wait that long before the same request is \
                         sent again.",
            },
            Self::Deprecated => &About {
                title: "the deprecated operation",
                severity: Severity::Notice,
                source: "specification, section 9",
                reason: "GET /pets/{petId} will be removed on 5 December 2030. Until then it may \
                         be used.",
                advice: "Use GET /pets with its status filter.",
            },
        }
    }

    /// Returns the severity of the rule; `None` if it is off.
    pub(super) fn severity(self, set: &Severities) -> Option<Severity> {
        set.get(&self)
            .copied()
            .unwrap_or(Some(self.about().severity))
    }
}

/// The severities that differ from the defaults; `None` for the rules that are off.
pub(crate) type Severities = BTreeMap<Rule, Option<Severity>>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of values.
    fn names(values: &[impl ToString]) -> Vec<String> {
        values.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_lists_of_all_are_complete_and_read_what_they_write() {
        let rules = "told to wait".parse::<Rule>().unwrap_err().names();
        assert_eq!(names(Rule::ALL), rules);
        let severities = "fatal".parse::<Severity>().unwrap_err().names();
        assert_eq!(names(Severity::ALL), severities);
        for rule in Rule::ALL {
            assert_eq!(rule.to_string().parse(), Ok(*rule));
        }
    }

    #[test]
    fn the_guide_names_every_rule_and_its_severity() {
        let guide = include_str!("../../guide/compliance.md");
        for rule in Rule::ALL {
            let About {
                title, severity, ..
            } = rule.about();
            let row = format!("| `{rule}` | {title} | {severity} |\n");
            assert!(guide.contains(&row), "{row}");
        }
    }
}
