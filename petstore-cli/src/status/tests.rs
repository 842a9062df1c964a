//! Tests of the forms of the status line.

use petstore_client::limits::{BlockReason, Quota};

use super::*;
use crate::session::words::{exhausted, limit_name};

/// A status line whose wait began two seconds ago.
fn status(progress: Option<Progress>, activity: Option<Activity>) -> Status {
    let since = Instant::now().checked_sub(Duration::from_secs(2)).unwrap();
    Status {
        progress,
        activity: activity.map(|activity| (activity, since)),
        frame: 0,
    }
}

fn line(width: usize, progress: Option<Progress>, activity: Option<Activity>) -> String {
    let screen = Screen::plain(Some(width));
    status(progress, activity).line(&screen).unwrap()
}

fn end(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

fn bar(forecast: &str) -> Option<Progress> {
    Some(Progress::Bar {
        done: 12_345,
        all: 30_000,
        forecast: forecast.to_owned(),
    })
}

fn pets(verb: &'static str) -> Option<Progress> {
    let count = 12_345;
    Some(Progress::Pets { verb, count })
}

fn paused(text: &str, short: &str, seconds: u64) -> Activity {
    Activity::pause(text, short, end(seconds), "Mon 01:00".to_owned())
}

fn blocked(reason: BlockReason, seconds: u64) -> Activity {
    let text = format!("{}; continues", exhausted(reason));
    paused(&text, limit_name(reason), seconds)
}

fn retry(cause: &str, short_cause: &str) -> Activity {
    Activity::retry(cause, short_cause, "attempt 2 of 4", end(30))
}

/// Every wait, with the words that stay of its reason and of its time.
fn waits() -> Vec<(Activity, [&'static str; 2])> {
    let quota = |quota, seconds| blocked(BlockReason::Quota(quota), seconds);
    let host = "staging.petstore.example";
    vec![
        (
            Activity::reading("/home/me/shop/of/pets/pets.csv"),
            ["reading /", ", 2 s"],
        ),
        (Activity::response(host), ["waiting for sta", ", 2 s"]),
        (Activity::share(), ["other programs", ", 2 s"]),
        (Activity::first_response(), ["limits of the key", ", 2 s"]),
        (
            Activity::requests_in_flight(),
            ["requests in flight", ", 2 s"],
        ),
        (retry("503 from the service", "503"), ["503", " 30 s"]),
        (
            retry("connection lost", "connection lost"),
            ["connection lost", " 30 s"],
        ),
        (Activity::arrivals(end(89)), ["rows may", " 1 min 29 s"]),
        (quota(Quota::Minute, 41), ["minute quota", " 41 s"]),
        (quota(Quota::Hour, 3_540), ["hour quota", " 59 min"]),
        (quota(Quota::Day, 62_141), ["day quota", " 17 h 16 min"]),
        (blocked(BlockReason::Ban, 298), ["ban", " 4 min 58 s"]),
        (
            paused(
                "the service does not respond; continues",
                "no response, paused",
                15,
            ),
            ["no response", " 15 s"],
        ),
        (
            paused(
                "the connection was lost; continues",
                "connection lost, paused",
                15,
            ),
            ["connection", " 15 s"],
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_narrow_line_keeps_the_count_the_reason_and_the_wait() {
    tokio::time::advance(Duration::from_secs(60)).await;
    let mut lost = Vec::new();
    for progress in [None, bar("60 a minute"), pets("listing"), pets("exporting")] {
        for (activity, [reason, wait]) in waits() {
            let is_bar = matches!(progress, Some(Progress::Bar { .. }));
            let is_shown = !is_bar || activity.is_beside_bar;
            let line = line(40, progress.clone(), Some(activity));
            let has_count = progress.is_none() || line.contains("12,345");
            let has_wait = line.contains(reason) && line.contains(wait);
            if line.width() > 39 || !has_count || has_wait != is_shown {
                lost.push(line);
            }
        }
    }
    assert_eq!(lost, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn late_rows_and_their_end_fit_on_a_narrow_line() {
    tokio::time::advance(Duration::from_secs(60)).await;
    let shown = |width| line(width, None, Some(Activity::arrivals(end(29))));
    assert_eq!(
        [shown(80), shown(40)],
        [
            "⠙ rows may still arrive; the check begins in 29 s",
            "⠙ rows may arrive: 29 s"
        ]
    );
}

#[test]
fn a_narrow_bar_drops_an_estimate_that_does_not_fit() {
    let estimate = "60 a minute, day quota ends Mon 23 Nov, 09:02";
    assert_eq!(line(40, bar(estimate), None), "12,345 of 30,000  41%");
    assert_eq!(
        line(40, bar("60 a minute"), None),
        "12,345 of 30,000  41%  60 a minute"
    );
}

#[tokio::test(start_paused = true)]
async fn a_bar_mentions_a_wait_without_an_end_but_no_request() {
    tokio::time::advance(Duration::from_secs(60)).await;
    let shown = |activity| line(80, bar("60 a minute"), Some(activity));
    let progress = "████████░░░░░░░░░░░░  12,345 of 30,000  41%  ";
    assert_eq!(
        [shown(Activity::response("host")), shown(Activity::share())],
        [
            format!("{progress}60 a minute"),
            format!("{progress}other programs, 2 s")
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_bar_loses_its_parts_before_the_count_and_the_wait() {
    tokio::time::advance(Duration::from_secs(60)).await;
    let progress = || {
        let (done, all) = (537, 3_000);
        let forecast = "60 a minute".to_owned();
        Some(Progress::Bar {
            done,
            all,
            forecast,
        })
    };
    let shown = |width| line(width, progress(), Some(paused("", "minute quota", 41)));
    assert_eq!(
        shown(80),
        "███░░░░░░░░░░░░░░░░░  537 of 3,000  17%  minute quota: 41 s (Mon 01:00)"
    );
    assert_eq!(shown(40), "537 of 3,000  17%  minute quota: 41 s");
    assert_eq!(shown(30), "537  minute quota: 41 s");
}
