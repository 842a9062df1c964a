//! The rules: names, severities and sources.

use std::collections::BTreeMap;

use serde::Serialize;
use strum::{Display, EnumString};

/// The severity of a finding. Its text form is `notice`, `warning` or `violation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
#[derive(Display, EnumString)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[strum(serialize_all = "camelCase")]
#[strum(parse_err_ty = ParseSeverityError, parse_err_fn = unknown_severity)]
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

/// The error for a text that is not the name of a [`Severity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a severity is notice, warning or violation")]
pub struct ParseSeverityError;

fn unknown_severity(_: &str) -> ParseSeverityError {
    ParseSeverityError
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(Display, EnumString)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[strum(serialize_all = "kebab-case")]
#[strum(parse_err_ty = ParseRuleError, parse_err_fn = unknown_rule)]
#[non_exhaustive]
pub enum Rule {
    /// A request was sent before the `Retry-After` of a 429 had elapsed.
    ToldToWait,
    /// A failed request was repeated without exponential back-off.
    BackOff,
    /// A `POST` was repeated after an outcome that the client cannot know.
    RepeatedPost,
    /// A key was sent in the URL.
    KeyInUrl,
    /// A request was repeated before the `Retry-After` of its 503 had elapsed.
    RetryAfter,
    /// A request that was refused for its content was sent five times, unchanged.
    RepeatedError,
    /// A valid key was not sent as a bearer token.
    KeyScheme,
    /// A failed request was repeated with waits that don't grow.
    SteadyRetry,
    /// Requests were sent although the quota was known to be exhausted, or too many were sent at
    /// once. Or a key was banned because of requests whose senders could not know that they had to
    /// wait.
    QuotaIgnored,
    /// The deprecated operation was used.
    Deprecated,
    /// Each request opened a new connection.
    KeepAlive,
    /// Requests had no `User-Agent`.
    UserAgent,
}

/// The error for a text that is not the name of a [`Rule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a rule is one of `Rule::ALL`, such as told-to-wait")]
pub struct ParseRuleError;

fn unknown_rule(_: &str) -> ParseRuleError {
    ParseRuleError
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
    pub(super) const FIRST: Self = Self::ToldToWait;

    /// All rules, the most severe first.
    pub const ALL: &'static [Self] = &[
        Self::ToldToWait,
        Self::BackOff,
        Self::RepeatedPost,
        Self::KeyInUrl,
        Self::RetryAfter,
        Self::RepeatedError,
        Self::KeyScheme,
        Self::SteadyRetry,
        Self::QuotaIgnored,
        Self::Deprecated,
        Self::KeepAlive,
        Self::UserAgent,
    ];

    /// Returns the description of the rule.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "each rule has a description")]
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
            Self::KeyInUrl => &About {
                title: "a key in the URL",
                severity: Severity::Violation,
                source: "specification, section 5; RFC 6750, section 2.3",
                reason: "URLs are written to the logs of servers and proxies, where others can \
                         read the key.",
                advice: "Send the key as `Authorization: Bearer KEY`, and nowhere else.",
            },
            Self::RetryAfter => &About {
                title: "repeated before the Retry-After of a 503",
                severity: Severity::Warning,
                source: "RFC 9110, section 10.2.3",
                reason: "Retry-After says how long the client ought to wait before it repeats the \
                         request.",
                advice: "After a 503 with Retry-After, wait that long before the same request is \
                         sent again.",
            },
            Self::RepeatedError => &About {
                title: "a refused request sent again unchanged",
                severity: Severity::Warning,
                source: "RFC 9110, section 15.5",
                reason: "A 4xx means that the request is wrong, so the same request fails again.",
                advice: "Don't retry a 4xx other than 408, 425 and 429; report it.",
            },
            Self::KeyScheme => &About {
                title: "a key that is not sent as a bearer token",
                severity: Severity::Warning,
                source: "specification, section 5",
                reason: "A valid key is answered 401 unless it is sent as a bearer token.",
                advice: "Send `Authorization: Bearer KEY`.",
            },
            Self::SteadyRetry => &About {
                title: "retries at a steady pace",
                severity: Severity::Notice,
                source: "specification, section 8, rule 4",
                reason: "Waits that don't grow keep the load on a failing service as high as it \
                         was. Pollers and the users of a gateway look the same, so this is a \
                         notice.",
                advice: "Double the wait before each further retry, up to a limit. To make it \
                         fail the tests of a single client that retries, set `--rule \
                         steady-retry=warning`.",
            },
            Self::QuotaIgnored => &About {
                title: "sent beyond the known quota",
                severity: Severity::Notice,
                source: "specification, section 8, rules 1 and 2",
                reason: "After X-RateLimit-Remaining: 0 the next request is refused until \
                         X-RateLimit-Reset, and refused requests can lead to a ban of the key.",
                advice: "Send no more requests at once than Remaining, and none when it is 0.",
            },
            Self::Deprecated => &About {
                title: "the deprecated operation",
                severity: Severity::Notice,
                source: "specification, section 9",
                reason: "GET /pets/{petId} will be removed on 5 December 2030. Until then it may \
                         be used.",
                advice: "Use GET /pets with its status filter.",
            },
            Self::KeepAlive => &About {
                title: "a new connection for every request",
                severity: Severity::Notice,
                source: "RFC 9112, section 9.3",
                reason: "Opening a connection costs more time than most requests. The rule counts \
                         10 consecutive requests on new connections, at most 5 s apart.",
                advice: "Create one client and use it for all requests.",
            },
            Self::UserAgent => &About {
                title: "no User-Agent",
                severity: Severity::Notice,
                source: "RFC 9110, section 10.1.5",
                reason: "Operators need it to find the author of a harmful client. It is not \
                         required.",
                advice: "Send a User-Agent that names the program and its version.",
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
    use strum::VariantArray as _;

    use super::*;

    #[test]
    fn the_lists_of_all_are_complete() {
        assert_eq!(Severity::ALL, Severity::VARIANTS);
        assert_eq!(Rule::ALL, Rule::VARIANTS);
    }

    #[test]
    fn the_errors_of_unknown_names_show_names() {
        let problem = "fatal".parse::<Severity>().unwrap_err().to_string();
        for severity in Severity::ALL {
            assert!(problem.contains(&severity.to_string()), "{problem}");
        }
        let problem = "manners".parse::<Rule>().unwrap_err().to_string();
        assert!(problem.contains(&Rule::FIRST.to_string()), "{problem}");
    }

    #[test]
    fn the_guide_names_every_rule_its_source_and_its_severity() {
        let guide = include_str!("../../guide/compliance.md");
        for rule in Rule::ALL {
            let line = guide
                .lines()
                .find(|line| line.starts_with(&format!("| `{rule}` |")));
            let line = line.unwrap_or_default();
            let About {
                title,
                source,
                severity,
                ..
            } = rule.about();
            for part in [*title, *source, &severity.to_string()] {
                assert!(line.contains(part), "{part}: {line}");
            }
        }
    }

    #[test]
    fn a_rule_is_found_by_its_name() {
        for rule in Rule::ALL {
            assert_eq!(rule.to_string().parse(), Ok(*rule));
            assert_eq!(serde_json::to_value(rule).unwrap(), rule.to_string());
        }
        assert!("told to wait".parse::<Rule>().is_err());
    }
}
