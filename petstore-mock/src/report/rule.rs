//! The rules: names, severities and advice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::text::named;

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

named!(Severity, Rule);

/// A rule of the compliance report.
///
/// ```
/// use petstore_mock::{Rule, Severity};
///
/// let rule: Rule = "told-to-wait".parse()?;
/// assert_eq!(rule, Rule::ToldToWait);
/// assert_eq!(rule.default_severity(), Severity::Violation);
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

    /// Returns the severity of the rule, unless another one is set.
    #[must_use]
    pub const fn default_severity(self) -> Severity {
        match self {
            Self::ToldToWait | Self::BackOff | Self::RepeatedPost | Self::Key => {
                Severity::Violation
            }
            Self::RetryAfter => Severity::Warning,
            Self::Deprecated => Severity::Notice,
        }
    }

    /// Returns what a client should do instead, and on what the rule is based.
    pub(super) const fn advice(self) -> &'static str {
        match self {
            Self::ToldToWait => {
                "After a 429, send nothing with that key until Retry-After has elapsed. \
                 (specification, section 8, rules 3 and 4)"
            }
            Self::BackOff => {
                "Wait before each retry, twice as long as before the last one, with jitter and a \
                 limit. (specification, section 8, rule 4; RFC 9110, section 9.2.2)"
            }
            Self::RepeatedPost => {
                "Check with a GET of its path whether the POST was processed, or don't repeat it. \
                 (RFC 9110, section 9.2.2)"
            }
            Self::Key => {
                "Send the key as `Authorization: Bearer KEY`, and nowhere else. (specification, \
                 section 5; RFC 6750, section 2.3)"
            }
            Self::RetryAfter => {
                "After a 503 with Retry-After, wait that long before the same request is sent \
                 again. (RFC 9110, section 10.2.3)"
            }
            Self::Deprecated => "Use GET /pets with its status filter. (specification, section 9)",
        }
    }

    /// Returns the severity of the rule; `None` if it is off.
    pub(super) fn severity(self, set: &Severities) -> Option<Severity> {
        set.get(&self)
            .copied()
            .unwrap_or(Some(self.default_severity()))
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
            let mut rows = guide
                .lines()
                .filter(|line| line.starts_with(&format!("| `{rule}` |")));
            let end = format!("| {} |", rule.default_severity());
            assert!(rows.next().is_some_and(|row| row.ends_with(&end)), "{rule}");
        }
    }
}
