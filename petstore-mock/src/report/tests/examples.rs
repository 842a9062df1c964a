//! The examples of the guide, and the numbers in the rules.

use super::recording::{broken, judge};
use crate::report::{Report, Role, Rule, Severity};

/// Judges a recording in one text.
fn report(senders: u32, recording: &str) -> Report {
    judge(
        senders,
        recording
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty()),
    )
}

/// Returns the rules that a recording breaks with this number of senders.
fn found(senders: u32, recording: &str) -> Vec<String> {
    broken(&report(senders, recording)).into_iter().collect()
}

/// Returns the sentences of all findings.
fn texts(recording: &str) -> Vec<String> {
    let report = report(1, recording);
    report.findings().map(|one| one.text.clone()).collect()
}

const NOTHING: [&str; 0] = [];

/// Returns a recording that breaks this rule and no other.
fn breach(rule: Rule) -> String {
    match rule {
        Rule::ToldToWait => {
            "1+0.001 1 GET /v1/pets 429 wait=50\n2+0.001 1 GET /v1/pets 200".to_owned()
        }
        Rule::BackOff => failures(&[1.0, 1.0, 1.0]),
        Rule::RepeatedPost => {
            "1+0.001 1 POST /v1/pets 500 body=1\n2+0.001 1 POST /v1/pets 201 body=1".to_owned()
        }
        Rule::Key => "1+0.001 1 GET /v1/pets 200 key-in=token".to_owned(),
        Rule::RetryAfter => {
            "1+0.001 1 GET /v1/pets 503 wait=10\n2+0.001 1 GET /v1/pets 200".to_owned()
        }
        Rule::Deprecated => "1+0.001 1 GET /v1/pets/7 200".to_owned(),
    }
}

#[test]
fn each_rule_can_be_broken_alone() {
    for &rule in Rule::ALL {
        let report = report(1, &breach(rule));
        let findings = report.findings().map(|one| (one.rule, one.severity));
        let expected = (rule, rule.default_severity());
        assert_eq!(findings.collect::<Vec<_>>(), [expected]);
    }
}

#[test]
fn a_request_in_a_wait_is_found_whatever_its_connection() {
    let told = "1+0.001 1 GET /v1/pets 429 wait=50\n";
    let next = |at: &str, connection: u32| {
        format!("{told}{at}+0.001 {connection} GET /v1/pets?limit=5 200")
    };
    assert_eq!(found(1, &next("2", 1)), ["told-to-wait"]);
    assert_eq!(found(1, &next("2", 2)), ["told-to-wait"]);
    assert_eq!(found(1, &next("50.89", 1)), ["told-to-wait"]);
    // Clocks and timers differ by a tenth of a second.
    assert_eq!(found(1, &next("50.9", 1)), NOTHING);
    // It was sent before the client can have known of the wait.
    assert_eq!(found(1, &next("1.0005", 2)), NOTHING);
}

#[test]
fn each_declared_sender_may_have_to_learn_of_a_wait_by_itself() {
    let told = "1+0.001 1 GET /v1/pets 429 wait=50\n";
    let more = "2+0.001 1 GET /v1/pets 429 wait=49\n";
    for (senders, early, is_found) in [(1, 1, true), (8, 7, false), (8, 8, true)] {
        let recording = format!("{told}{}", more.repeat(early));
        let found = found(senders, &recording);
        assert_eq!(found == ["told-to-wait"], is_found, "{senders} {early}");
        assert_eq!(report(senders, &recording).findings().count(), 1);
    }
}

#[test]
fn a_wait_ends_at_the_earliest_time_that_was_named() {
    // The rounded seconds end at 61 s, and the quota resets at 60 s.
    let told = "10.7+0.001 1 GET /v1/pets 429 wait=51 remaining=0 reset=60\n";
    let next = "60+0.001 1 GET /v1/pets 200\n";
    assert_eq!(found(1, &format!("{told}{next}")), NOTHING);
    // A ban does not end at the reset.
    let banned = "10.7+0.001 1 GET /v1/pets 429 banned wait=51 remaining=0 reset=60\n";
    assert_eq!(found(1, &format!("{banned}{next}")), ["told-to-wait"]);
    // Another response names an earlier time.
    let other = "10.7001+0.001 2 GET /v1/pets?limit=5 429 wait=5\n";
    let recording = format!("{told}{other}16+0.001 1 GET /v1/pets 200");
    assert_eq!(found(1, &recording), NOTHING);
    // Dates have whole seconds.
    let date = "1+0.001 1 GET /v1/pets 429 until=11\n";
    assert_eq!(
        found(1, &format!("{date}10+0.001 1 GET /v1/pets 200")),
        NOTHING
    );
    let recording = format!("{date}9.9+0.001 1 GET /v1/pets 200");
    assert_eq!(found(1, &recording), ["told-to-wait"]);
}

#[test]
fn a_wait_ends_when_either_clock_reaches_its_end() {
    let told = "1+0.001 1 GET /v1/pets 429 wait=50\n";
    let moved = format!("{told}61+0.001 1 GET /v1/pets 200 real=2");
    assert_eq!(found(1, &moved), NOTHING);
    let frozen = format!("{told}1.001+0.001 1 GET /v1/pets 200 real=61");
    assert_eq!(found(1, &frozen), NOTHING);
}

#[test]
fn what_the_mock_falsified_and_what_is_unusable_begins_no_wait() {
    for wait in [
        "wait=1767225650",
        "wait=90001",
        "wait=soon",
        "wait=-5",
        "wait=+5",
        "wait=0",
        "wait=50 date=Thu,_01_Jan_2026_01:00:00_GMT",
        "wait=50 date=today",
    ] {
        let recording = format!(
            "1+0.001 1 GET /v1/pets 429 {wait}\n2+0.001 1 GET /v1/pets 200\n\
             3+0.001 1 GET /v1/pets 503 {wait}\n4+0.001 1 GET /v1/pets 503"
        );
        assert_eq!(found(1, &recording), NOTHING, "{wait}");
    }
    for wait in [
        "wait=90000",
        "wait=50 date=Thu,_01_Jan_2026_00:00:01_GMT",
        "wait=50 date=Wed,_31_Dec_2025_23:59:59_GMT",
    ] {
        let recording = format!("1+0.001 1 GET /v1/pets 429 {wait}\n2+0.001 1 GET /v1/pets 200");
        assert_eq!(found(1, &recording), ["told-to-wait"], "{wait}");
    }
}

#[test]
fn the_wait_after_a_503_is_about_the_same_request() {
    let told = "1+0.001 1 GET /v1/pets 503 wait=10\n";
    let other = "2+0.001 1 GET /v1/pets?limit=5 200";
    assert_eq!(found(1, &format!("{told}{other}")), NOTHING);
    let same = "6+0.001 2 GET /v1/pets 200";
    assert_eq!(found(1, &format!("{told}{same}")), ["retry-after"]);
    assert_eq!(found(2, &format!("{told}{same}")), NOTHING);
    assert_eq!(found(1, &format!("{told}! 5\n{same}")), NOTHING);
    // A response that was told to wait is no failure for `back-off`.
    let obeyed = "1+0.001 1 GET /v1/pets 503 wait=0\n".repeat(9);
    assert_eq!(found(1, &obeyed), NOTHING);
}

#[test]
fn a_report_is_the_same_after_its_json_was_read() {
    let recording = "1+0.001 1 GET /v1/pets 429 wait=50\n2+0.001 2 GET /v1/pets -\n\
                     3+0.001 1 GET /v1/pets/7 200 key-in=token";
    let report = report(1, recording);
    let read: Report = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(read.findings().count(), 3);
    assert_eq!(read.to_text(), report.to_text());
    assert_eq!(read.to_json(), report.to_json());
    #[cfg(feature = "junit")]
    assert_eq!(read.to_junit(), report.to_junit());
}

/// Returns failures of the same request, with these pauses in milliseconds.
fn failures(pauses: &[f64]) -> String {
    let mut at = 1.0;
    let mut lines = String::new();
    for pause in [&[0.0], pauses].concat() {
        at += pause / 1_000.0;
        lines += &format!("{at:.5}+0.001 1 GET /v1/pets 503\n");
        at += 0.001;
    }
    lines
}

#[test]
fn three_quick_repeats_of_a_failure_are_found() {
    for (senders, pauses, is_found) in [
        (1, &[2.0, 2.0, 2.0][..], true),
        (1, &[7.9, 7.9, 7.9], true),
        (1, &[8.1, 8.1, 8.1], false),
        (1, &[2.0, 2.0], false),
        (1, &[2.0, 2.0, 500.0, 2.0, 2.0], false),
        // In a row of which at least three quarters are quick.
        (1, &[500.0, 2.0, 2.0, 2.0], true),
        (1, &[2.0, 2.0, 2.0, 500.0], true),
        (1, &[2.0, 2.0, 2.0, 500.0, 1_000.0], false),
        (2, &[2.0; 5], false),
        (2, &[2.0; 6], true),
    ] {
        let found = found(senders, &failures(pauses));
        assert_eq!(found == ["back-off"], is_found, "{senders} {pauses:?}");
    }
}

#[test]
fn a_row_ends_with_a_success_a_told_wait_and_a_boundary() {
    let twice = failures(&[2.0, 2.0]);
    let again = "1.1+0.001 1 GET /v1/pets 503\n1.103+0.001 1 GET /v1/pets 503\n";
    for between in [
        "1.05+0.001 1 GET /v1/pets 200\n",
        "1.05+0.001 1 GET /v1/pets 503 wait=0\n",
        "1.05+0.001 1 GET /v1/pets 429\n",
        "! 1.05\n",
        "~ 1.05\n",
    ] {
        let recording = format!("{twice}{between}{again}");
        assert_eq!(report(1, &recording).findings().count(), 0, "{between}");
    }
    // A slow failure is measured from its start.
    let slow = "1+0.1 1 GET /v1/pets -\n1.1001+0.1 1 GET /v1/pets -\n\
                1.2002+0.1 1 GET /v1/pets -\n1.3003+0.1 1 GET /v1/pets -\n";
    assert_eq!(found(1, slow), NOTHING);
    assert_eq!(found(1, &slow.replace("+0.1 ", "+0.09999 ")), ["back-off"]);
}

#[test]
fn a_frozen_clock_makes_nobody_quick() {
    let mut recording = String::new();
    for second in 1..9 {
        recording += &format!("1.{second:04}+0.00001 1 GET /v1/pets 503 real={second}\n");
    }
    assert_eq!(found(1, &recording), NOTHING);
}

#[test]
fn a_repeated_post_is_found_unless_the_client_looked() {
    let first =
        |status: &str| format!("1+0.001 1 POST /v1/pets {status} body={{\"a\":1,\"b\":2.0}}\n");
    let again = "9+0.001 2 POST /v1/pets 201 added=7 body={\"b\":2,\"a\":1}\n";
    for (status, is_found) in [
        ("-", true),
        ("500", true),
        ("502", true),
        ("504", true),
        ("503", false),
        ("429", false),
        ("400", false),
        ("201", false),
    ] {
        let found = found(1, &format!("{}{again}", first(status)));
        assert_eq!(found == ["repeated-post"], is_found, "{status}");
    }
    for (between, is_found) in [
        ("2+0.001 1 GET /v1/pets?limit=5 200\n", false),
        ("2+0.001 1 GET /v1/pets 500\n", true),
        ("2+0.001 1 GET /v1/store/orders 200\n", true),
        ("0.9+3 3 GET /v1/pets 200\n", true),
        ("! 2\n", false),
    ] {
        let recording = format!("{}{between}{again}", first("500"));
        assert_eq!(
            found(1, &recording) == ["repeated-post"],
            is_found,
            "{between}"
        );
    }
    assert_eq!(found(2, &format!("{}{again}", first("-"))), NOTHING);
    // A look is at the path of the POST.
    for (look, is_found) in [("/v1/store/orders?limit=5", false), ("/v1/pets", true)] {
        let recording = format!(
            "1+0.001 1 POST /v1/store/orders 502\n2+0.001 1 GET {look} 200\n\
             3+0.001 1 POST /v1/store/orders 201"
        );
        assert_eq!(
            found(1, &recording) == ["repeated-post"],
            is_found,
            "{look}"
        );
    }
    // Equal pets are wanted if one was added before.
    let wanted = first("201").replace("1+", "0.1+");
    assert_eq!(
        found(1, &format!("{wanted}{}{again}", first("500"))),
        NOTHING
    );
}

#[test]
fn the_same_request_has_the_same_body_fault_and_key() {
    let first = "1+0.001 1 POST /v1/pets 500 body={\"a\":1}\n";
    let second = "2+0.001 1 POST /v1/pets 500";
    assert_eq!(
        found(1, &format!("{first}{second} body={{\"a\": 1}}")),
        ["repeated-post"]
    );
    for other in [
        "body={\"a\":2}",
        "fault=500 body={\"a\":1}",
        "key=2 body={\"a\":1}",
    ] {
        assert_eq!(
            found(1, &format!("{first}{second} {other}")),
            NOTHING,
            "{other}"
        );
    }
    // A body that was not read completely is equal to no other.
    let partial = format!("{first}{second} body={{\"a\":1}}").replace(" body", " partial body");
    assert_eq!(found(1, &partial), NOTHING);
}

#[test]
fn only_the_last_64_requests_of_a_key_are_remembered() {
    let mut recording = "1+0.001 1 POST /v1/pets 500 body=0\n".to_owned();
    for number in 1..64 {
        recording += &format!("2+0.001 1 POST /v1/pets 500 body={number}\n");
    }
    let again = "3+0.001 1 POST /v1/pets 201 body=0\n";
    assert_eq!(found(1, &format!("{recording}{again}")), ["repeated-post"]);
    recording += "2.5+0.001 1 POST /v1/pets 500 body=64\n";
    assert_eq!(found(1, &format!("{recording}{again}")), NOTHING);
}

#[test]
fn a_key_in_the_wrong_place_is_found() {
    let recording = "1+0.001 1 GET /v1/pets 200 key-in=api_key\n\
                     2+0.001 1 GET /v1/pets 200 key-in=api_key\n\
                     3+0.001 1 GET /v1/pets 200 key-in=\n\
                     4+0.001 1 GET /v1/pets 401 other-scheme";
    assert_eq!(found(10, recording), ["key"]);
    assert_eq!(
        texts(recording),
        [
            "the query parameter `api_key` is a key of this server (#1 and #2)",
            "a segment of the path is a key of this server (#3)",
            "`Authorization` has a key of this server, without `Bearer` (#4)",
        ]
    );
}

#[test]
fn the_deprecated_operation_is_a_notice() {
    let recording = "1+0.001 1 GET /v1/pets/5 200\n".repeat(14);
    let report = report(1, &recording);
    let found: Vec<_> = report.findings().collect();
    assert_eq!(
        (found[0].rule, found[0].severity),
        (Rule::Deprecated, Severity::Notice)
    );
    assert_eq!(
        found[0].text,
        "GET /pets/{petId} will be removed on 5 December 2030 (#1, #2, #3, #4, #5, #6, #7, #8, \
         #9, #10, #11, #12 and 2 more)"
    );
}

#[test]
fn a_ban_is_named_with_the_request_that_caused_it() {
    let recording = "1+0.01 1 GET /v1/pets 429 wait=50\n\
                     1.001+0.01 2 GET /v1/pets 429 wait=50 strikes=1\n\
                     1.002+0.01 3 GET /v1/pets 429 wait=50 strikes=2\n\
                     1.003+0.01 4 GET /v1/pets 429 banned wait=300 strikes=3\n";
    let report = report(8, recording);
    let ban = report.findings().next().unwrap();
    assert_eq!(
        (ban.rule, ban.severity),
        (Rule::ToldToWait, Severity::Notice)
    );
    assert_eq!(
        ban.text,
        "the key was banned at #4, because 3 requests arrived before its used-up quota had reset"
    );
    assert_eq!(
        report.summary_line(),
        "compliance: 1 notice in 4 requests; 4 were answered 429"
    );
}

#[test]
fn a_finding_says_what_happened_and_what_to_do() {
    let early = "1+0.01 1 GET /v1/pets 429 wait=50\n\
                 1.4+0.01 1 GET /v1/pets?limit=5 429 wait=50\n";
    let text = report(1, early).to_text();
    let guide = include_str!("../../../guide/compliance.md");
    let sample = guide.split("```").nth(1).unwrap();
    assert_eq!(sample, format!("text\n{text}"));
    assert_eq!(
        texts(&failures(&[2.0, 3.0, 4.0])),
        ["GET /v1/pets failed and was sent again 3 times, 3 ms after each failure on average"]
    );
    assert_eq!(
        texts(
            "1+0.1 1 POST /v1/pets - added=27 body=0\n\
             1.1004+0.1 1 POST /v1/pets 201 added=28 body=0"
        ),
        [
            "the same POST /v1/pets came again 0.4 ms after no response (#1), without a look at \
             GET /v1/pets; pets 27 and 28 are duplicates"
        ]
    );
    assert_eq!(
        texts("1+0.1 1 POST /v1/a?b=1 502\n1.101+0.1 1 POST /v1/a?b=1 201"),
        ["the same POST /v1/a came again 1 ms after 502 (#1), without a look at GET /v1/a"]
    );
    assert_eq!(
        texts("1+0.1 1 GET /v1/pets 503 wait=10\n2+0.1 1 GET /v1/pets 200"),
        [
            "GET /v1/pets came again once while it was told to wait until 00:00:11 (503, \
             Retry-After: 10, at 00:00:01)"
        ]
    );
}

#[test]
fn the_remedy_is_only_named_for_a_key_with_one_sender() {
    let early = "1+0.01 1 GET /v1/pets 429 wait=50\n".to_owned()
        + &"2+0.01 1 GET /v1/pets 429 wait=49\n".repeat(8);
    for (senders, is_named) in [(1, true), (2, false), (9, false)] {
        let report = report(senders, &early);
        let remedy = report.findings().next().unwrap().remedy.as_deref();
        assert_eq!(remedy.is_some(), is_named, "{senders}");
    }
}

#[test]
fn the_remedy_counts_the_connections_that_were_open() {
    let remedy = |recording: &str| {
        let report = report(1, recording);
        report.findings().next().unwrap().remedy.clone().unwrap()
    };
    let told = |connections: &[u32]| -> String {
        let lines = connections.iter().enumerate();
        lines
            .map(|(at, connection)| {
                format!("{}+0.1 {connection} GET /v1/pets 429 wait=90\n", at + 5)
            })
            .collect()
    };
    let worked = "1+0.1 3 GET /v1/pets 200\n2+0.1 1 GET /v1/pets 200\n3+0.1 2 GET /v1/pets 200\n";
    for (recording, end) in [
        (
            worked.to_owned() + &told(&[2, 1, 3]),
            " (at least 3 connections were open)",
        ),
        (
            told(&[1, 2, 3, 3, 1, 2]),
            " (at least 3 connections were open)",
        ),
        // One after the other.
        (told(&[1, 2, 3]), "`.senders(N)`"),
        (told(&[1, 1, 2, 2, 3, 3]), "`.senders(N)`"),
    ] {
        let remedy = remedy(&recording);
        assert!(remedy.ends_with(end), "{recording}{remedy}");
    }
}

#[test]
fn a_notice_says_if_only_the_declared_senders_keep_it_from_more() {
    let early = "1+0.01 1 GET /v1/pets 429 wait=50\n2+0.01 1 GET /v1/pets 429 wait=49";
    let post = "1+0.01 1 POST /v1/pets 500 body=1\n2+0.01 1 POST /v1/pets 500 body=1";
    // Too few quick ones whatever is declared.
    let slow = failures(&[2.0, 2.0, 2.0, 500.0, 500.0]);
    let retries = failures(&[2.0, 2.0, 2.0]);
    let deprecated = "1+0.01 1 GET /v1/pets/5 200";
    for (recording, senders, is_said) in [
        (early, 1, false),
        (early, 2, true),
        (post, 2, true),
        (&retries, 2, true),
        (&slow, 1, false),
        (deprecated, 2, false),
    ] {
        let report = report(senders, recording);
        let text = &report.findings().next().unwrap().text;
        let end = format!("; this is a notice because {senders} senders are declared");
        assert_eq!(text.ends_with(&end), is_said, "{text}");
    }
}

#[test]
fn the_last_line_counts_what_went_wrong() {
    for (recording, line) in [
        ("", "nothing found in 0 requests"),
        ("1+1 1 GET /v1/pets 200", "nothing found in 1 request"),
        (
            "1+1 1 GET /v1/pets 429\n3+1 1 GET /v1/pets 500\n5+1 1 GET /v1/pets?limit=1 -",
            "nothing found in 3 requests; 1 was answered 429, 1 5xx, 1 without a response",
        ),
        (
            "1+1 1 GET /v1/pets 500\n3+1 1 GET /v1/pets 503",
            "nothing found in 2 requests; 2 were answered 5xx",
        ),
        (
            "1+1 1 GET /v1/pets 429 wait=9\n3+1 1 GET /v1/pets 429",
            "1 violation in 2 requests; 2 were answered 429",
        ),
        (
            "1+1 1 GET /v1/pets 401 unknown-key\n3+1 1 GET /pets 404 unknown-key\n5+1 1 GET /v1/x 404",
            "nothing found in 3 requests; 2 for an unknown operation, 1 without a valid key",
        ),
    ] {
        let report = report(1, recording);
        assert_eq!(report.summary_line(), format!("compliance: {line}"));
        assert!(report.to_text().ends_with(&format!("compliance: {line}\n")));
    }
}

#[test]
fn long_findings_show_their_first_requests_and_count_the_rest() {
    let early = "1+0.01 1 GET /v1/pets 429 wait=50\n".to_owned()
        + &"2+0.01 1 GET /v1/pets 429 wait=49\n".repeat(40);
    let report = report(1, &early);
    let finding = report.findings().next().unwrap();
    let offences = finding
        .requests
        .iter()
        .filter(|it| it.role == Role::Offence);
    assert_eq!((finding.offences, offences.count()), (40, 12));
    let text = report.to_text();
    assert!(text.contains("  ! and 35 more requests\n"), "{text}");
}

#[test]
fn at_most_a_thousand_findings_are_kept() {
    let mut recording = String::new();
    for number in 0..1_010 {
        recording += &format!("1+0.001 1 POST /v1/pets 500 body={number}\n");
        recording += &format!("2+0.001 1 POST /v1/pets 500 body={number}\n! 3\n");
    }
    // Each post is within its own time, so that the boundaries separate them.
    let mut lines = Vec::new();
    for (place, line) in recording.lines().enumerate() {
        let (_, rest) = line.split_once(['+', ' ']).unwrap();
        let second = place + 1;
        lines.push(match line.starts_with('!') {
            true => format!("! {second}"),
            false => format!("{second}+{rest}"),
        });
    }
    let report = report(1, &lines.join("\n"));
    assert_eq!(report.findings().count(), 1_000);
    assert!(
        report.summary_line().contains("1010 violations"),
        "{}",
        report.summary_line()
    );
    assert!(
        report
            .to_text()
            .contains("\n10 more violations, not listed\n")
    );
}

#[cfg(feature = "junit")]
#[test]
fn junit_has_a_case_for_each_key_and_rule() {
    let recording = "1+0.01 1 GET /v1/pets 429 wait=50\n2+0.01 1 GET /v1/pets/5 200";
    let junit = report(1, recording).to_junit();
    for rule in Rule::ALL {
        assert!(
            junit.contains(&format!("name=\"{rule}, ci\"")),
            "{rule}: {junit}"
        );
    }
    assert_eq!(junit.matches("<failure").count(), 1, "{junit}");
    assert!(
        junit.contains("1 violation, 1 notice in 2 requests"),
        "{junit}"
    );
}

#[test]
fn json_has_the_findings_the_answers_and_the_rules() {
    let recording = "1+0.01 1 GET /v1/pets 429 wait=50\n2+0.01 1 GET /v1/pets 200";
    let json: serde_json::Value = serde_json::from_str(&report(1, recording).to_json()).unwrap();
    assert_eq!(json["compliant"], false);
    assert_eq!(json["answered429"], 1);
    assert_eq!(json["keys"]["ci"], 2);
    let finding = &json["findings"][0];
    assert_eq!(finding["rule"], "told-to-wait");
    assert_eq!(
        (&finding["key"], &finding["plan"]),
        (&"ci".into(), &"free".into())
    );
    assert_eq!(finding["requests"][1]["earlySeconds"], 49.0);
    let advice = finding["advice"].as_str().unwrap();
    assert!(advice.starts_with("After a 429, send nothing"), "{advice}");
    assert_eq!(json["rules"].as_object().unwrap().len(), Rule::ALL.len());
    assert_eq!(json["rules"]["retry-after"], "warning");
}
