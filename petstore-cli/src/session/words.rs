//! Describes rate limits in words, and shortens the service's texts, for messages, tables and
//! status lines.

use std::error::Error as StdError;

use petstore_client::Error;
use petstore_client::rate_limit::{BlockReason, Quota, QuotaWindow};

use crate::escape;
use crate::time::count;

/// The maximum length of the service's message that is shown.
const MAX_MESSAGE: usize = 300;

/// An error among the causes of another one.
pub(super) type Cause = dyn StdError + 'static;

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
        BlockReason::Quota(Quota::Minute) => "minute quota",
        BlockReason::Quota(Quota::Hour) => "hour quota",
        BlockReason::Quota(Quota::Day) => "day quota",
        BlockReason::Ban => "end of the ban",
        _ => "rate limit",
    }
}

/// Returns the remaining requests: `56 of 60 left this minute`.
pub(crate) fn quota_left(window: &QuotaWindow) -> String {
    let period = match window.quota {
        Quota::Minute => " this minute",
        Quota::Hour => " this hour",
        Quota::Day => " today",
        _ => "",
    };
    let left = count(window.remaining);
    let limit = count(window.limit);
    format!("{left} of {limit} left{period}")
}

/// Returns an error and its causes, the outermost first.
pub(super) fn causes(error: &Error) -> impl Iterator<Item = &Cause> {
    let first: &Cause = error;
    std::iter::successors(Some(first), |cause| (**cause).source())
}

/// Returns text from the service for a message: escaped, and cut.
pub(super) fn shortened(text: &str) -> String {
    let short: String = text.chars().take(MAX_MESSAGE).collect();
    let rest = match short.len() < text.len() {
        true => "…",
        false => "",
    };
    format!("{}{rest}", escape::line(&short))
}

/// Returns a cause and the error that it wraps, if it is an `io::Error`.
#[cfg(feature = "native-tls")]
pub(super) fn with_inner(cause: &Cause) -> impl Iterator<Item = &Cause> {
    std::iter::successors(Some(cause), |outer| inner(*outer))
}

#[cfg(feature = "native-tls")]
fn inner(cause: &Cause) -> Option<&Cause> {
    let outer = cause.downcast_ref::<std::io::Error>()?;
    let inner = outer.get_ref()?;
    Some(inner)
}
