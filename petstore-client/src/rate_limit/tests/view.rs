//! Tests of the public view of a key's rate limits.

use std::time::{Duration, SystemTime};

use http::HeaderMap;

use crate::rate_limit::view::{BlockReason, Blocked, Quota, QuotaWindow, WaitReason};

#[test]
fn a_response_without_a_date_is_read_by_the_wall_clock() {
    let mut headers = HeaderMap::new();
    for (name, value) in [("limit", 60), ("remaining", 59), ("reset", 30)] {
        let name = http::HeaderName::try_from(format!("x-ratelimit-{name}")).unwrap();
        headers.insert(name, value.into());
    }
    let window = QuotaWindow::of(&headers).unwrap();
    assert_eq!(
        (window.quota, window.limit, window.remaining),
        (Quota::Minute, 60, 59)
    );
    for (reset, quota) in [
        (90, Quota::Minute),
        (91, Quota::Unknown),
        (40_000, Quota::Day),
    ] {
        headers.insert("x-ratelimit-reset", reset.into());
        headers.insert("date", "Fri, 15 Jan 2027 08:00:00 GMT".parse().unwrap());
        assert_eq!(QuotaWindow::of(&headers).unwrap().quota, quota, "{reset}");
    }
}

#[test]
fn a_days_quota_resets_at_midnight_or_after_more_than_two_hours() {
    let at = |hour: u64, minute: u64| {
        let minutes = (20_000 * 24 + hour) * 60 + minute;
        SystemTime::UNIX_EPOCH + Duration::from_secs(minutes * 60)
    };
    let quota = |now: SystemTime, reset: SystemTime| {
        Quota::by_reset(reset.duration_since(now).unwrap(), reset)
    };
    assert_eq!(quota(at(7, 0), at(8, 0)), Quota::Unknown);
    assert_eq!(quota(at(7, 59), at(8, 0)), Quota::Minute);
    assert_eq!(quota(at(23, 10), at(24, 0)), Quota::Day);
    assert_eq!(quota(at(7, 0), at(7, 40)), Quota::Unknown);
    assert_eq!(quota(at(7, 0), at(9, 1)), Quota::Day);
}

const NOW: u64 = 1_800_000_000;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn quota(limit: &str, remaining: &str, reset: &str) -> Option<QuotaWindow> {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("x-ratelimit-limit", limit),
        ("x-ratelimit-remaining", remaining),
        ("x-ratelimit-reset", reset),
    ] {
        headers.insert(name, value.parse().unwrap());
    }
    QuotaWindow::read_at(&headers, at(NOW))
}

#[test]
fn reads_the_most_restrictive_of_several_values_in_any_form() {
    for (limit, remaining, reset, expected) in [
        ("60", "59", "1800000060", (60, 59)),
        ("60", "59", "1800000060000", (60, 59)),
        ("60, 50", "7, 9", "10, 60", (50, 7)),
        ("60", "1000000", "60", (60, 60)),
    ] {
        let quota = quota(limit, remaining, reset).unwrap();
        assert_eq!((quota.limit, quota.remaining), expected);
        assert_eq!(quota.reset, at(NOW + 60));
    }
}

#[test]
fn garbage_counts_as_absent() {
    for odd in ["", "-1", "1e30", "99999999999999999999999", "∞"] {
        assert_eq!(quota("60", odd, "60"), None, "{odd}");
        assert_eq!(quota(odd, "1", "60"), None, "{odd}");
        assert_eq!(quota("60", "1", odd), None, "{odd}");
    }
    assert_eq!(quota("60", "1", "18446744073709551615"), None);
    assert_eq!(quota("0", "0", "60"), None, "no quota lets nothing through");
}

#[test]
fn a_block_says_why_until_when_and_for_how_long() {
    let blocked = Blocked {
        reason: BlockReason::Quota(Quota::Minute),
        until: SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000),
        remaining: Duration::new(29, 1),
    };
    let expected = "the minute's quota blocks requests until Fri, 15 Jan 2027 08:00:00 GMT \
                    (another 30 s)";
    assert_eq!(blocked.to_string(), expected);
    assert_eq!(
        WaitReason::OtherProcesses.to_string(),
        "other processes that share the key"
    );
}
