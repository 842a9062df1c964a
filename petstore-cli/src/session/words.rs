//! Describes rate limits in words, for messages, tables and status lines.

use petstore_client::limits::{BlockReason, Quota};

use crate::time::count;

/// What the command line says of a quota.
#[derive(Debug)]
pub(crate) struct QuotaWords {
    quota: Quota,
    name: &'static str,
    full_name: &'static str,
    now: &'static str,
    is_specified: bool,
}

/// The quotas, in the order of [`Quota::ALL`].
pub(crate) const QUOTAS: [QuotaWords; Quota::ALL.len()] = [
    QuotaWords {
        quota: Quota::Minute,
        name: "minute",
        full_name: "minute quota",
        now: "this minute",
        is_specified: true,
    },
    QuotaWords {
        quota: Quota::Hour,
        name: "hour",
        full_name: "hour quota",
        now: "this hour",
        is_specified: false,
    },
    QuotaWords {
        quota: Quota::Day,
        name: "day",
        full_name: "day quota",
        now: "today",
        is_specified: true,
    },
];

impl QuotaWords {
    /// Returns the words for a quota with a period.
    pub(crate) fn of(quota: Quota) -> Option<&'static Self> {
        QUOTAS.iter().find(|words| words.quota == quota)
    }

    pub(crate) fn quota(&self) -> Quota {
        self.quota
    }

    /// Returns the name of the quota, such as `minute`.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns whether each key has this quota by the specification.
    pub(crate) fn is_specified(&self) -> bool {
        self.is_specified
    }
}

/// Describes an exhausted limit: `minute quota used up`.
pub(crate) fn exhausted(reason: BlockReason) -> String {
    match reason {
        BlockReason::Ban => "key banned".to_owned(),
        reason => format!("{} used up", limit_name(reason)),
    }
}

/// Describes a limit: `minute quota`.
pub(crate) fn limit_name(reason: BlockReason) -> &'static str {
    match reason {
        BlockReason::Quota(quota) => quota_name(quota),
        BlockReason::Ban => "end of the ban",
        _ => "rate limit",
    }
}

/// Describes a quota: `minute quota`.
pub(crate) fn quota_name(quota: Quota) -> &'static str {
    QuotaWords::of(quota).map_or("rate limit", |words| words.full_name)
}

/// Returns the remaining requests: `56 of 60 left this minute`.
pub(crate) fn quota_left(quota: Quota, remaining: u64, limit: u64) -> String {
    let (left, limit) = (count(remaining), count(limit));
    match QuotaWords::of(quota) {
        Some(words) => format!("{left} of {limit} left {}", words.now),
        None => format!("{left} of {limit} left"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_quota_has_words() {
        for (quota, words) in Quota::ALL.iter().zip(&QUOTAS) {
            assert_eq!(words.quota, *quota);
            for text in [words.full_name, words.now] {
                assert!(text.contains(words.name) || text == "today", "{text}");
            }
        }
        assert!(QuotaWords::of(Quota::Unknown).is_none());
    }
}
