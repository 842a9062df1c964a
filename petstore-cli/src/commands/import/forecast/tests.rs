//! Tests of the estimates.

use jiff::tz::TimeZone;

use super::*;

/// Sunday 22 November 2026, 06:44:19 UTC.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_329_859)
}

const DAY: Duration = Duration::from_secs(86_400);

const MINUTES: Option<Window> = Some(Window {
    quota: Quota::Minute,
    limit: 60,
    remaining: 57,
    reset: Duration::from_secs(41),
    period: MINUTE,
});
const HOURS: Option<Window> = Some(Window {
    quota: Quota::Hour,
    limit: 300,
    remaining: 240,
    reset: Duration::from_secs(941),
    period: Duration::from_secs(3_600),
});
const DAYS: Option<Window> = Some(Window {
    quota: Quota::Day,
    limit: 1_000,
    remaining: 940,
    reset: Duration::from_secs(62_141),
    period: DAY,
});

#[test]
fn names_the_quota_that_decides() {
    let clock = Clock::new(now).local(TimeZone::fixed(jiff::tz::offset(1)));
    let (impatient, patient) = (Duration::from_secs(120), DAY);
    let day = Quotas([MINUTES, None, DAYS]).forecast(2_980).unwrap();
    let text = "940 rows by 07:59, the rest 1,000 a day: complete Wed 25 Nov, 01:00";
    assert_eq!(day.text(&clock), text);
    assert_eq!(
        day.short(&clock, impatient),
        "60 a minute, day quota ends 07:59"
    );
    assert_eq!(
        day.short(&clock, patient),
        "60 a minute, until Wed 25 Nov, 01:00"
    );
    let end = |rows, max_wait| {
        let forecast = Quotas([MINUTES, None, DAYS]).forecast(rows).unwrap();
        forecast
            .early_end(Duration::from_secs(max_wait))
            .map(|(quota, end)| (quota, end.as_secs()))
    };
    assert_eq!(end(58, 40), Some((Quota::Minute, 0)));
    assert_eq!(
        [end(57, 40), end(58, 41), end(117, 41), end(118, 60)],
        [None; 4]
    );
    assert_eq!(end(118, 41), Some((Quota::Minute, 41)));
    let first_day = 41 + 14 * 60;
    assert_eq!(end(941, 7_200), Some((Quota::Day, first_day)));
    assert_eq!(
        [end(940, 60), end(941, 62_141), end(1_940, 62_141)],
        [None; 3]
    );
    assert_eq!(end(1_941, 62_141), Some((Quota::Day, 62_141 + 16 * 60)));

    let minute = Quotas([MINUTES, None, None]);
    assert_eq!(
        minute.text(),
        "57 of 60 left this minute; day quota not reported yet"
    );
    let text = minute.forecast(3_000).unwrap().text(&clock);
    assert_eq!(text, "50 min by the minute quota, complete at 08:34");
    let text = minute.forecast(10).unwrap().text(&clock);
    assert_eq!(text, "10 rows within the quotas: complete in a moment");
    let text = minute.forecast(1).unwrap().text(&clock);
    assert_eq!(text, "1 row within the quotas: complete in a moment");
    assert_eq!(minute.forecast(0).unwrap().text(&clock), "nothing to send");

    let day = Quotas([None, None, DAYS]);
    assert_eq!(
        day.text(),
        "940 of 1,000 left today; minute quota not reported yet"
    );
    let text = day.forecast(900).unwrap().text(&clock);
    assert_eq!(text, "900 rows within the known quotas");

    let unknown = Quotas([None, None, None]);
    assert_eq!(
        (unknown.forecast(10), unknown.text().as_str()),
        (None, "not known")
    );
}

#[test]
fn an_hours_quota_decides_where_it_lasts_longest() {
    let clock = Clock::new(now).local(TimeZone::fixed(jiff::tz::offset(1)));
    let quotas = Quotas([MINUTES, HOURS, DAYS]);
    assert_eq!(
        quotas.text(),
        "57 of 60 left this minute, 240 of 300 left this hour, 940 of 1,000 left today"
    );
    let hour = quotas.forecast(700).unwrap();
    assert_eq!(
        hour.text(&clock),
        "240 rows by 07:48, the rest 300 an hour: complete 09:02"
    );
    let max_wait = Duration::from_secs(120);
    assert_eq!(
        hour.short(&clock, max_wait),
        "60 a minute, hour quota ends 07:48"
    );
    assert_eq!(
        hour.short(&clock, Duration::from_secs(3_600)),
        "60 a minute, until 09:02"
    );
    let json = hour.json(now(), max_wait);
    assert_eq!(
        (&json["limitedBy"], &json["runEndsBy"]),
        (&json!("hour"), &json!("hour"))
    );
    let day = quotas.forecast(2_000).unwrap();
    assert_eq!(day.json(now(), max_wait)["limitedBy"], "day");
    assert_eq!(
        quotas.forecast(100).unwrap().limited_by,
        Some(Quota::Minute)
    );
}
