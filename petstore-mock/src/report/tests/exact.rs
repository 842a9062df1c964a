//! Tests of each number in the rules: what is just allowed, and what is just too much.
//!
//! The numbers are written out here. So a changed constant fails a test.

use std::time::Duration;

use super::recording::{Replay, judge};
use crate::report::Rule;

/// Times are in nanoseconds, so that sums are exact.
const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

const LIST: &str = "GET /v1/pets 500";

/// Writes an exchange: when it begins, how long it takes, and the rest of its line.
fn line(at: u64, took: u64, rest: &str) -> String {
    let seconds = |time| format!("{}.{:09}", time / S, time % S);
    format!("{}+{} {rest}", seconds(at), seconds(took))
}

/// Returns requests on one connection, each sent this long after the response before it.
fn row(waits: &[u64], took: u64, rest: &str) -> Vec<String> {
    let mut at = 0;
    let mut lines = vec![line(at, took, &format!("1 {rest}"))];
    for wait in waits {
        at += took + wait;
        lines.push(line(at, took, &format!("1 {rest}")));
    }
    lines
}

/// Returns the texts of the findings of one rule.
fn found(lines: &[String], rule: Rule) -> Vec<String> {
    let report = judge(lines.iter().map(String::as_str));
    let findings = report.findings().filter(|finding| finding.rule == rule);
    let evidence = findings.flat_map(|finding| &finding.evidence);
    evidence.map(|evidence| evidence.text.clone()).collect()
}

/// Checks whether a rule is broken, for each value.
fn check<T: std::fmt::Debug + Copy, const N: usize>(
    rule: Rule,
    cases: [(T, bool); N],
    lines: impl Fn(T) -> Vec<String>,
) {
    for (value, expected) in cases {
        let texts = found(&lines(value), rule);
        assert_eq!(!texts.is_empty(), expected, "{rule} {value:?}: {texts:?}");
    }
}

#[test]
fn retries_are_immediate_below_six_milliseconds() {
    check(
        Rule::BackOff,
        [(6 * MS, false), (6 * MS - 1, true)],
        |wait| row(&[wait; 4], 1, LIST),
    );
}

#[test]
fn three_immediate_retries_are_too_many() {
    check(Rule::BackOff, [(2, false), (3, true)], |repeats| {
        row(&vec![0; repeats], 1, LIST)
    });
}

#[test]
fn more_than_sixty_percent_must_be_immediate() {
    check(
        Rule::BackOff,
        [((3, 2), false), ((14, 9), true)],
        |(immediate, others)| {
            row(
                &[vec![5 * MS; immediate], vec![7 * MS; others]].concat(),
                1,
                LIST,
            )
        },
    );
}

#[test]
fn a_wait_of_a_hundred_milliseconds_excuses_immediate_retries() {
    check(
        Rule::BackOff,
        [(100 * MS, false), (100 * MS - 1, true)],
        |wait| row(&[5 * MS, 5 * MS, 5 * MS, wait], 1, LIST),
    );
    // Not if it came before them.
    check(Rule::BackOff, [(100 * MS, true)], |wait| {
        row(&[wait, 5 * MS, 5 * MS, 5 * MS], 1, LIST)
    });
}

#[test]
fn waits_after_slow_responses_begin_with_the_request() {
    check(
        Rule::BackOff,
        [(500 * MS, false), (500 * MS - 1, true)],
        |took| row(&[0; 4], took, LIST),
    );
}

#[test]
fn one_sender_may_be_four_repeats_ahead_of_the_pace() {
    // The long wait excuses immediate retries, and ends what the sender is ahead.
    let hammering = |wait: u64, repeats: usize| {
        row(&[vec![0, 100 * MS], vec![wait; repeats]].concat(), 1, LIST)
    };
    check(Rule::BackOff, [(4, false), (5, true)], |repeats| {
        hammering(0, repeats)
    });
    // Five repeats, each 3.2 ms ahead.
    let least = 800_000;
    check(Rule::BackOff, [(least, false), (least - 1, true)], |wait| {
        hammering(wait, 5)
    });
}

#[test]
fn several_senders_may_be_two_hundred_and_fifty_repeats_ahead() {
    check(Rule::BackOff, [(250, false), (251, true)], |repeats| {
        (0..=repeats)
            .map(|n| line(2 * n, 1, &format!("{} {LIST}", n % 2 + 1)))
            .collect()
    });
}

#[test]
fn three_waits_below_twenty_milliseconds_are_steady() {
    check(
        Rule::SteadyRetry,
        [(20 * MS, false), (20 * MS - 1, true)],
        |wait| row(&[7 * MS, 7 * MS, wait], 1, LIST),
    );
    check(Rule::SteadyRetry, [(2, false), (3, true)], |repeats| {
        row(&vec![7 * MS; repeats], 1, LIST)
    });
}

#[test]
fn four_equal_waits_are_steady() {
    check(Rule::SteadyRetry, [(3, false), (4, true)], |repeats| {
        row(&vec![S; repeats], 1, LIST)
    });
    // A quarter more than 100 ms, and 10 ms.
    check(
        Rule::SteadyRetry,
        [(135 * MS, true), (135 * MS + 1, false)],
        |longest| row(&[S, 100 * MS, longest, 100 * MS], 1, LIST),
    );
    check(
        Rule::SteadyRetry,
        [(5 * S - 1, true), (5 * S, false)],
        |wait| row(&[wait; 4], 1, LIST),
    );
}

#[test]
fn a_row_is_complete_after_a_second() {
    let lines = row(&[0; 3], 125 * MS / 2, LIST);
    let mut replay = Replay::new();
    replay.run(lines.iter().map(String::as_str));
    let now = replay.moment(0.5);
    let left = replay.audit().undecided(&now, replay.boundary());
    assert_eq!(left, Some(Duration::from_millis(750)));
}

#[test]
fn five_refusals_at_once_are_no_burst() {
    check(Rule::QuotaIgnored, [(5, false), (6, true)], |refused| {
        (0..refused)
            .map(|n| line(0, 1, &format!("{n} GET /v1/pets 429 wait=9")))
            .collect()
    });
    // The last one comes when the first moments have ended.
    check(
        Rule::QuotaIgnored,
        [(100 * MS - 1, true), (100 * MS, false)],
        |last| {
            let at = [0, 0, 0, 0, 0, last + 1];
            let lines = at.iter().enumerate();
            lines
                .map(|(n, at)| line(*at, 1, &format!("{n} GET /v1/pets 429 wait=9")))
                .collect()
        },
    );
}

#[test]
fn ten_early_requests_of_several_workers_are_excused() {
    check(Rule::ToldToWait, [(10, false), (11, true)], |early| {
        let mut lines = vec![
            line(0, 100 * S, "9 GET /v1/pets?n=9 200"),
            line(0, 1, "1 GET /v1/pets 429 wait=50"),
        ];
        lines.extend((0..early).map(|n| line(S + n, 1, &format!("1 GET /v1/pets?n={n} 200"))));
        lines
    });
}

#[test]
fn a_wait_goes_on_while_one_response_asks_for_it() {
    // Two workers come back after a second, as asked. One of them is told to wait again. The third
    // response still asks to wait, so the early requests from before count.
    let lines = |wait: u32| {
        let mut lines = vec![
            line(0, 100 * S, "9 GET /v1/pets?n=9 200"),
            line(0, 1, "1 GET /v1/pets 429 wait=1"),
            line(0, 1, "2 GET /v1/pets 429 wait=1"),
            line(0, 1, &format!("3 GET /v1/pets 429 wait={wait}")),
        ];
        lines.extend((0..10).map(|n| line(S / 2 + n, 1, &format!("1 GET /v1/pets?n={n} 200"))));
        lines.push(line(2 * S, 1, "1 GET /v1/pets 429 wait=50"));
        lines.push(line(3 * S, 1, "2 GET /v1/pets?n=10 200"));
        lines.push(line(4 * S, 1, "3 GET /v1/pets?n=11 200"));
        lines
    };
    check(Rule::ToldToWait, [(100, true), (1, false)], lines);
}

#[test]
fn a_wait_may_be_fifty_milliseconds_too_short() {
    check(
        Rule::ToldToWait,
        [(950 * MS, false), (950 * MS - 1, true)],
        |wait| {
            vec![
                line(0, 1, "1 GET /v1/pets 429 wait=1"),
                line(wait, 1, "1 GET /v1/pets?n=1 200"),
            ]
        },
    );
}

#[test]
fn another_process_knows_of_a_wait_after_a_second() {
    check(Rule::RetryAfter, [(S - 1, false), (S, true)], |wait| {
        vec![
            line(0, 1, "1 GET /v1/pets 503 wait=50"),
            line(1 + wait, 1, "2 GET /v1/pets 200"),
        ]
    });
}

#[test]
fn a_post_is_remembered_for_five_minutes() {
    check(
        Rule::RepeatedPost,
        [(300 * S, true), (300 * S + 1, false)],
        |wait| row(&[wait], 1, "POST /v1/pets 500"),
    );
}

#[test]
fn another_worker_may_send_within_a_tenth_of_a_second() {
    // After the repeat, the client is seen as several.
    check(
        Rule::RepeatedPost,
        [(100 * MS - 2, false), (100 * MS, true)],
        |wait| {
            vec![
                line(0, 1, "1 POST /v1/pets 500"),
                line(1 + wait, 10 * MS, "1 POST /v1/pets 201"),
                line(2 + wait, 10 * MS, "2 GET /v1/pets 200"),
                line(S, 1, "1 GET /v1/pets 200"),
            ]
        },
    );
}

#[test]
fn a_client_counts_as_several_for_a_minute() {
    // Two requests overlap. Later one worker retries at once.
    check(
        Rule::ToldToWait,
        [(60 * S - 1, false), (60 * S, true)],
        |later| {
            vec![
                line(0, 2, "2 GET /v1/pets?n=2 200"),
                line(1, 1, "1 GET /v1/pets 429 wait=90"),
                line(1 + later, 1, "1 GET /v1/pets?n=1 200"),
            ]
        },
    );
}

#[test]
fn the_fourth_repeat_of_a_refused_request_is_too_many() {
    let refused = "POST /v1/pets 422";
    check(Rule::RepeatedError, [(3, false), (4, true)], |repeats| {
        row(&vec![10 * S; repeats], 1, refused)
    });
    check(
        Rule::RepeatedError,
        [(30 * S, true), (30 * S + 1, false)],
        |last| row(&[S, S, S, last], 1, refused),
    );
}

#[test]
fn ten_new_connections_in_a_row_are_too_many() {
    let lines = |connections: u64, last_pause: u64| {
        let mut at = 0;
        let mut lines = Vec::new();
        for n in 1..=connections {
            at += 1 + if n == connections { last_pause } else { S };
            lines.push(line(at, 1, &format!("{n}<0.001 GET /v1/pets 200")));
        }
        lines
    };
    check(Rule::KeepAlive, [(9, false), (10, true)], |connections| {
        lines(connections, S)
    });
    check(
        Rule::KeepAlive,
        [(5 * S, true), (5 * S + 1, false)],
        |pause| lines(10, pause),
    );
}
