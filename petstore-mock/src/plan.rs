//! The plans and their quotas (specification, section 8).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The plan of a key: its requests per minute and per day.
///
/// ```
/// use petstore_mock::Plan;
///
/// let plan: Plan = "enterprise:5000/200000".parse()?;
/// assert_eq!(plan, Plan::enterprise(5_000, 200_000));
/// assert_eq!(Plan::Free.per_minute(), 60);
/// # Ok::<(), petstore_mock::ParsePlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[non_exhaustive]
pub enum Plan {
    /// 60 requests per minute, 1,000 per day.
    Free,
    /// 300 requests per minute, 10,000 per day.
    Pro,
    /// 1,000 requests per minute, 100,000 per day.
    Business,
    /// Custom quotas.
    Enterprise {
        /// Requests per minute; 0 refuses every request.
        per_minute: u32,
        /// Requests per day; 0 refuses every request.
        per_day: u32,
    },
}

impl Plan {
    /// Returns an Enterprise plan with these quotas. A quota of 0 refuses every request.
    #[must_use]
    pub const fn enterprise(per_minute: u32, per_day: u32) -> Self {
        Self::Enterprise {
            per_minute,
            per_day,
        }
    }

    /// Returns the default Enterprise plan: 1,000,000 requests per minute and 100,000,000 per day
    /// (an assumption: the specification says "custom").
    #[must_use]
    pub const fn default_enterprise() -> Self {
        Self::enterprise(1_000_000, 100_000_000)
    }

    /// Returns the requests per minute.
    #[must_use]
    pub const fn per_minute(self) -> u32 {
        match self {
            Self::Free => 60,
            Self::Pro => 300,
            Self::Business => 1_000,
            Self::Enterprise { per_minute, .. } => per_minute,
        }
    }

    /// Returns the requests per day.
    #[must_use]
    pub const fn per_day(self) -> u32 {
        match self {
            Self::Free => 1_000,
            Self::Pro => 10_000,
            Self::Business => 100_000,
            Self::Enterprise { per_day, .. } => per_day,
        }
    }
}

impl fmt::Display for Plan {
    /// Writes the format that [`FromStr`] parses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Free => f.pad("free"),
            Self::Pro => f.pad("pro"),
            Self::Business => f.pad("business"),
            Self::Enterprise {
                per_minute,
                per_day,
            } => write!(f, "enterprise:{per_minute}/{per_day}"),
        }
    }
}

impl From<Plan> for String {
    fn from(plan: Plan) -> Self {
        plan.to_string()
    }
}

impl TryFrom<String> for Plan {
    type Error = ParsePlanError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// The error for a text that is not a plan.
///
/// The message does not contain the text, because it may contain a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a plan is free, pro, business, enterprise or enterprise:MINUTE/DAY with whole numbers up to \
     4294967295, such as enterprise:5000/200000"
)]
pub struct ParsePlanError;

impl FromStr for Plan {
    type Err = ParsePlanError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "free" => return Ok(Self::Free),
            "pro" => return Ok(Self::Pro),
            "business" => return Ok(Self::Business),
            "enterprise" => return Ok(Self::default_enterprise()),
            _ => {}
        }
        let quotas = text.strip_prefix("enterprise:").ok_or(ParsePlanError)?;
        let (minute, day) = quotas.split_once('/').ok_or(ParsePlanError)?;
        Ok(Self::enterprise(number(minute)?, number(day)?))
    }
}

fn number(text: &str) -> Result<u32, ParsePlanError> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParsePlanError);
    }
    text.parse().map_err(|_| ParsePlanError)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::DEFAULT_KEYS;

    const NAMES: [&str; 4] = ["free", "pro", "business", "enterprise"];

    #[test]
    fn reads_every_plan() {
        let plans = [
            Plan::Free,
            Plan::Pro,
            Plan::Business,
            Plan::default_enterprise(),
        ];
        assert_eq!(NAMES.map(|name| name.parse::<Plan>().unwrap()), plans);
        let default = Plan::enterprise(1_000_000, 100_000_000);
        assert_eq!("enterprise".parse(), Ok(default));
        assert_eq!("enterprise:7/9".parse(), Ok(Plan::enterprise(7, 9)));
    }

    #[test]
    fn refuses_invalid_plans() {
        for text in [
            "",
            "Free",
            "gold",
            "enterprise:",
            "enterprise:5",
            "enterprise:5/",
            "enterprise:/5",
            "enterprise:+5/5",
            "enterprise:5/-1",
            "enterprise:5//5",
            "enterprise:5/5/5",
            "enterprise:4294967296/1",
        ] {
            assert_eq!(text.parse::<Plan>(), Err(ParsePlanError), "{text}");
        }
    }

    #[test]
    fn writes_what_it_reads() {
        let named = NAMES.map(|name| name.parse::<Plan>().unwrap());
        for plan in named.into_iter().chain([Plan::enterprise(3, 4)]) {
            assert_eq!(plan.to_string().parse(), Ok(plan));
        }
    }

    #[test]
    fn each_plan_has_a_default_key_and_is_documented() {
        let admin = include_str!("../admin.yaml");
        let openapi = include_str!("../openapi.yaml");
        let flags = include_str!("cli/flags.rs");
        let exec = include_str!("cli/exec.rs");
        let builder = include_str!("server/builder.rs");
        let guide = include_str!("../guide/specification.md");
        for name in NAMES {
            let key = format!("{name}-key");
            let plan = name.parse().unwrap();
            assert!(DEFAULT_KEYS.contains(&(&*key, plan)), "{key}");
            for text in [openapi, builder, guide] {
                assert!(text.contains(&format!("`{key}`")), "{key}");
            }
            assert!(flags.contains(&format!("{key}={name}")), "{key}");
        }
        let pattern = format!("pattern: '^({}(", NAMES.join("|"));
        let list = format!("{} or enterprise:MINUTE/DAY", NAMES.join(", "));
        assert!(admin.contains(&pattern), "{pattern}");
        for text in [admin, flags, exec] {
            assert!(text.contains(&list), "{list}");
        }
        assert!(ParsePlanError.to_string().contains(&list), "{list}");
    }

    #[test]
    fn allows_what_the_specification_states() {
        let quotas = [Plan::Free, Plan::Pro, Plan::Business].map(|p| (p.per_minute(), p.per_day()));
        assert_eq!(quotas, [(60, 1_000), (300, 10_000), (1_000, 100_000)]);
    }
}
