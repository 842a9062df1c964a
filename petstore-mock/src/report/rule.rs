//! The 12 rules: their names, how severe a breach is, and on what they rest.

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

use super::finding::Severity;

/// A rule of the compliance report.
///
/// ```
/// use petstore_mock::{Rule, Severity};
///
/// let rule: Rule = "told-to-wait".parse()?;
/// assert_eq!(rule, Rule::ToldToWait);
/// assert_eq!(rule.severity(), Severity::Violation);
/// assert_eq!("burst".parse(), Ok(Rule::QuotaIgnored), "names of older versions are accepted");
/// # Ok::<(), petstore_mock::ParseRuleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// A request was sent before the `Retry-After` of a 429 had elapsed.
    ToldToWait,
    /// A failed request was repeated without exponential back-off.
    BackOff,
    /// A `POST` was repeated after an outcome that the client can't know.
    RepeatedPost,
    /// A key was sent in the URL.
    KeyInUrl,
    /// A request was repeated before the `Retry-After` of its 503 had elapsed.
    RetryAfter,
    /// A failed request was repeated at a steady pace.
    SteadyRetry,
    /// A request that was refused for its content was sent again unchanged, five times.
    RepeatedError,
    /// A valid key was sent otherwise than as a bearer token.
    KeyScheme,
    /// Requests were sent although the quota was known to be used up, or many at once beyond it.
    QuotaIgnored,
    /// The deprecated operation was used.
    Deprecated,
    /// Each request opened a connection of its own.
    KeepAlive,
    /// Requests had no `User-Agent`.
    UserAgent,
}

/// What is known of a rule.
struct About {
    name: &'static str,
    title: &'static str,
    severity: Severity,
    source: &'static str,
    reason: &'static str,
    advice: &'static str,
}

/// No rule has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown rule; rules: {}", Rule::ALL.map(Rule::name).join(", "))]
pub struct ParseRuleError;

impl Rule {
    /// All rules, the most severe first.
    pub const ALL: [Self; 12] = [
        Self::ToldToWait,
        Self::BackOff,
        Self::RepeatedPost,
        Self::KeyInUrl,
        Self::RetryAfter,
        Self::SteadyRetry,
        Self::RepeatedError,
        Self::KeyScheme,
        Self::QuotaIgnored,
        Self::Deprecated,
        Self::KeepAlive,
        Self::UserAgent,
    ];

    /// Returns the name, such as `told-to-wait`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.about().name
    }

    /// Returns what a client did that breaks the rule, in a few words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.about().title
    }

    /// Returns how severe a breach is unless set otherwise.
    #[must_use]
    pub const fn severity(self) -> Severity {
        self.about().severity
    }

    /// Returns the section of the specification, or of an RFC, that the rule rests on.
    #[must_use]
    pub const fn source(self) -> &'static str {
        self.about().source
    }

    /// Returns what the rule asks for, and why a breach is as severe as it is.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        self.about().reason
    }

    /// Returns what the client should do instead.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        self.about().advice
    }

    const fn about(self) -> &'static About {
        match self {
            Self::ToldToWait => &TOLD_TO_WAIT,
            Self::BackOff => &BACK_OFF,
            Self::RepeatedPost => &REPEATED_POST,
            Self::KeyInUrl => &KEY_IN_URL,
            Self::RetryAfter => &RETRY_AFTER,
            Self::SteadyRetry => &STEADY_RETRY,
            Self::RepeatedError => &REPEATED_ERROR,
            Self::KeyScheme => &KEY_SCHEME,
            Self::QuotaIgnored => &QUOTA_IGNORED,
            Self::Deprecated => &DEPRECATED,
            Self::KeepAlive => &KEEP_ALIVE,
            Self::UserAgent => &USER_AGENT,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Rule {
    type Err = ParseRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "banned" => Ok(Self::ToldToWait),
            "remaining-zero" | "burst" => Ok(Self::QuotaIgnored),
            name => Self::ALL.into_iter().find(|rule| rule.name() == name).ok_or(ParseRuleError),
        }
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// How severe a breach of each rule is; nothing for the rules that are off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Severities([Option<Severity>; Rule::ALL.len()]);

impl Severities {
    pub(crate) fn set(&mut self, rule: Rule, severity: Option<Severity>) {
        self.0[rule as usize] = severity;
    }

    pub(crate) const fn of(&self, rule: Rule) -> Option<Severity> {
        self.0[rule as usize]
    }
}

impl Default for Severities {
    fn default() -> Self {
        Self(Rule::ALL.map(|rule| Some(rule.severity())))
    }
}

static TOLD_TO_WAIT: About = About {
    name: "told-to-wait",
    title: "sent while told to wait",
    severity: Severity::Violation,
    source: "specification, section 8, rules 3 and 4",
    reason: "After a 429 the client is to wait for the time given in Retry-After; repeated requests \
             may lead to a ban of the key, which stops every program that uses it.",
    advice: "After a 429, send nothing with that key until Retry-After has elapsed.",
};

static BACK_OFF: About = About {
    name: "back-off",
    title: "retries without back-off",
    severity: Severity::Violation,
    source: "specification, section 8, rule 4; RFC 9110, section 9.2.2",
    reason: "Clients are told to use exponential backoff. Retries without waits multiply the load on \
             a service that is failing already.",
    advice: "Wait before each retry, twice as long as before the last one, with jitter and a limit.",
};

static REPEATED_POST: About = About {
    name: "repeated-post",
    title: "a POST sent again after an unknown outcome",
    severity: Severity::Violation,
    source: "RFC 9110, section 9.2.2",
    reason: "A request with a non-idempotent method is not to be retried automatically unless the \
             first one is known not to have been applied. The specification has no idempotency key, \
             and no way to remove an animal that was added twice.",
    advice: "Look with GET /pets whether the animal was added, or don't repeat the POST.",
};

static KEY_IN_URL: About = About {
    name: "key-in-url",
    title: "a key in the URL",
    severity: Severity::Violation,
    source: "specification, section 5; RFC 6750, section 2.3",
    reason: "The key belongs in the Authorization header. URLs are written to the logs of servers and \
             proxies, where anyone who reads them has the key.",
    advice: "Send the key as `Authorization: Bearer KEY`, and nowhere else.",
};

static RETRY_AFTER: About = About {
    name: "retry-after",
    title: "repeated before the Retry-After of a 503",
    severity: Severity::Warning,
    source: "RFC 9110, section 10.2.3",
    reason: "Retry-After says how long the client ought to wait before it repeats the request. That \
             is advice, and the specification has no 503: a warning.",
    advice: "After a 503 with Retry-After, wait that long before the same request is sent again.",
};

static STEADY_RETRY: About = About {
    name: "steady-retry",
    title: "retries at a steady pace",
    severity: Severity::Warning,
    source: "specification, section 8, rule 4",
    reason: "Clients are told to use exponential backoff: waits that grow. Even waits keep the load on \
             a failing service as high as it was, which does less harm than no waits: a warning.",
    advice: "Double the wait before each further retry, up to a limit.",
};

static REPEATED_ERROR: About = About {
    name: "repeated-error",
    title: "a refused request sent again unchanged",
    severity: Severity::Warning,
    source: "RFC 9110, section 15.5",
    reason: "A 4xx says that the client seems to have erred: the same request is refused again. It \
             uses quota and does no other harm: a warning, at the fifth time in a row.",
    advice: "Don't retry a 4xx other than 408, 425 and 429; report it.",
};

static KEY_SCHEME: About = About {
    name: "key-scheme",
    title: "a key that is not sent as a bearer token",
    severity: Severity::Warning,
    source: "specification, section 5",
    reason: "The key is sent as a bearer token; sent otherwise, the request is answered 401 though the \
             key is valid. Nothing but the request is lost: a warning.",
    advice: "Send `Authorization: Bearer KEY`.",
};

static QUOTA_IGNORED: About = About {
    name: "quota-ignored",
    title: "sent beyond the known quota",
    severity: Severity::Notice,
    source: "specification, section 8, rules 1 and 2",
    reason: "An answer with X-RateLimit-Remaining: 0 says that the next request will be refused until \
             X-RateLimit-Reset. The specification asks for a wait only after the 429: a notice.",
    advice: "Hold requests back once Remaining is 0, and send at most as many at once as are left.",
};

static DEPRECATED: About = About {
    name: "deprecated",
    title: "the deprecated operation",
    severity: Severity::Notice,
    source: "specification, section 9",
    reason: "GET /pets/{petId} will be removed on 5 December 2030. Until then it may be used.",
    advice: "Use GET /pets with its status filter.",
};

static KEEP_ALIVE: About = About {
    name: "keep-alive",
    title: "a new connection for every request",
    severity: Severity::Notice,
    source: "RFC 9112, section 9.3",
    reason: "Opening a connection costs more time than most requests, and with TLS much more. It is \
             allowed. Counted are 10 requests in a row, at most 5 s apart, each on a new connection.",
    advice: "Make one client and use it for all requests.",
};

static USER_AGENT: About = About {
    name: "user-agent",
    title: "no User-Agent",
    severity: Severity::Notice,
    source: "RFC 9110, section 10.1.5",
    reason: "Without a User-Agent, whoever runs the service can't tell whom to ask before a client \
             that does harm is blocked. It is not required.",
    advice: "Send a User-Agent that names the program and its version.",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_names_every_rule_its_source_and_its_severity() {
        let readme = include_str!("../../README.md");
        for rule in Rule::ALL {
            let line = readme.lines().find(|line| line.starts_with(&format!("| `{rule}` |")));
            let line = line.unwrap_or_default();
            for part in [rule.title(), rule.source(), &rule.severity().to_string()] {
                assert!(line.contains(part), "{part}: {line}");
            }
        }
    }

    #[test]
    fn a_rule_is_found_by_its_name_and_by_the_names_of_merged_rules() {
        for rule in Rule::ALL {
            assert_eq!(rule.name().parse(), Ok(rule));
        }
        assert_eq!("banned".parse(), Ok(Rule::ToldToWait));
        assert_eq!("remaining-zero".parse(), Ok(Rule::QuotaIgnored));
        let error = "told to wait".parse::<Rule>().unwrap_err().to_string();
        assert!(error.starts_with("unknown rule; rules: told-to-wait, back-off"), "{error}");
    }
}
