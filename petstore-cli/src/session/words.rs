//! Describes rate limits in words, for messages, tables and status lines.

use petstore_client::limits::{BlockReason, Quota, QuotaWindow};

use crate::time::count;

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
    match quota {
        Quota::Minute => "minute quota",
        Quota::Day => "day quota",
        _ => "rate limit",
    }
}

/// Returns the remaining requests: `56 of 60 left this minute`.
pub(crate) fn quota_left(window: &QuotaWindow) -> String {
    let now = match window.quota {
        Quota::Minute => " this minute",
        Quota::Day => " today",
        _ => "",
    };
    let (remaining, limit) = (count(window.remaining), count(window.limit));
    format!("{remaining} of {limit} left{now}")
}
