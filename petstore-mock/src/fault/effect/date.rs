//! Date: a service whose clock is off. Quotas and everything else go on by the true one.

use std::time::{Duration, UNIX_EPOCH};

use http::{HeaderValue, header::DATE};
use httpdate::HttpDate;
use serde::{Deserialize, Serialize};

use super::answer::{Act, Answer};

/// How far it is off: ahead, or behind where negative.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Date {
    pub(super) offset_seconds: i64,
}

impl Act for Date {
    fn act(&self, answer: &mut Answer) -> bool {
        let offset = Duration::from_secs(self.offset_seconds.unsigned_abs());
        let at = if self.offset_seconds < 0 {
            answer.now.saturating_sub(offset)
        } else {
            answer.now.saturating_add(offset)
        };
        let Some(date) = http_date(at) else {
            return false;
        };
        answer.headers.insert(DATE, date);
        self.offset_seconds != 0
    }
}

/// Writes a time since the Unix epoch; nothing beyond the year 9999, which HTTP can't name.
pub(super) fn http_date(at: Duration) -> Option<HeaderValue> {
    let end = crate::clock::END;
    let text = HttpDate::from(UNIX_EPOCH.checked_add(at.min(end))?).to_string();
    HeaderValue::try_from(text).ok()
}
