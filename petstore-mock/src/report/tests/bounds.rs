//! Tests that the memory of the report is bounded, that what falls out of it is judged at that
//! time, and that open series are judged when they are complete.

use std::time::Duration;

use super::recording::{Replay, audit, judge};
use crate::report::{Rule, Severity};

fn is_found(lines: &[String], rule: Rule) -> bool {
    let report = judge(lines.iter().map(String::as_str));
    report.findings().any(|finding| finding.rule == rule)
}

/// Returns an incomplete row of immediate retries.
fn retries_at_once(begin: f64, more: &str) -> Vec<String> {
    let line = |n: u32| {
        let at = begin + f64::from(n) * 0.001;
        format!("{at}+0.0001 1 GET /v1/pets 500{more}")
    };
    (0..4).map(line).collect()
}

#[test]
fn the_first_of_many_requests_is_forgotten() {
    let line = |n: u32, id, rest: &str| {
        let (method, rest) = rest.split_once(' ').unwrap();
        let at = f64::from(n) * 0.2;
        format!("{at}+0.0001 1 {method} /v1/pets?n={id} {rest}")
    };
    for (rule, first, again) in [
        (Rule::RepeatedPost, "POST 500", "POST 201"),
        (Rule::RetryAfter, "GET 503 wait=1000", "GET 200"),
    ] {
        for (others, expected) in [(63, true), (64, false)] {
            let mut lines: Vec<_> = (0..=others).map(|n| line(n, n, first)).collect();
            lines.push(line(others + 1, 0, again));
            assert_eq!(is_found(&lines, rule), expected, "{rule} {others}");
        }
    }
}

#[test]
fn waits_that_were_kept_displace_no_other() {
    let get =
        |at: f64, id: u32, status: &str| format!("{at}+0.0001 1 GET /v1/pets?n={id} {status}");
    let mut lines = vec![get(0.0, 0, "503 wait=1000")];
    for id in 1..=64 {
        let at = f64::from(id) * 2.0;
        lines.push(get(at, id, "503 wait=1"));
        lines.push(get(at + 1.5, id, "200"));
    }
    assert!(!is_found(&lines, Rule::RetryAfter));
    lines.push(get(200.0, 0, "200"));
    assert!(is_found(&lines, Rule::RetryAfter));
}

#[test]
fn a_row_is_judged_when_it_leaves_its_clients_memory() {
    let other = |n: u32| {
        let at = 1.0 + f64::from(n) * 0.2;
        format!("{at}+0.0001 1 GET /v1/pets?n={n} 500")
    };
    for others in [63, 64, 100] {
        let mut lines = retries_at_once(0.0, "");
        lines.extend((0..others).map(other));
        // If the row was still open, this long wait would turn it into a back-off.
        lines.push("60+0.0001 1 GET /v1/pets 500".to_owned());
        assert_eq!(is_found(&lines, Rule::BackOff), others >= 64, "{others}");
    }
}

#[test]
fn a_row_is_judged_when_its_client_falls_out_of_memory() {
    let mut lines = retries_at_once(0.0, "");
    let other = |n: u32| format!("{}+0.0001 2 GET /v1/pets 200 agent={n}", n + 1);
    lines.extend((0..1_024).map(other));
    let report = judge(lines.iter().map(String::as_str));
    assert_eq!(report.of(Severity::Violation).count(), 1);
    assert!(is_found(&lines, Rule::BackOff));
}

#[test]
fn a_row_is_judged_at_a_boundary() {
    let mut lines = retries_at_once(0.0, "");
    lines.push("! 0.1".to_owned());
    lines.push("60+0.0001 1 GET /v1/pets 500".to_owned());
    assert!(is_found(&lines, Rule::BackOff));
    // Two repeats before a boundary and two after it do not form one row.
    let mut lines = retries_at_once(0.0, "");
    lines.pop();
    lines.push("! 0.1".to_owned());
    lines.extend(retries_at_once(0.2, "").into_iter().take(3));
    assert!(!is_found(&lines, Rule::BackOff));
}

#[test]
fn an_open_row_is_certain_a_second_after_its_last_request() {
    let mut replay = Replay::new();
    let lines = retries_at_once(0.0, "");
    replay.run(lines.iter().map(String::as_str));
    let mut undecided = |at| {
        let now = replay.moment(at);
        replay.audit().undecided(&now, replay.boundary())
    };
    let left = undecided(0.0031).unwrap();
    assert!(left > Duration::from_millis(990), "{left:?}");
    assert_eq!(undecided(1.1), None);
    let now = replay.moment(0.0031);
    assert_eq!(replay.audit().undecided(&now, replay.boundary() + 1), None);
    // Rows that break no rule need no wait.
    let mut replay = Replay::new();
    replay.run(lines[..3].iter().map(String::as_str));
    let now = replay.moment(0.0031);
    assert_eq!(replay.audit().undecided(&now, replay.boundary()), None);
}

#[test]
fn findings_are_bounded_and_all_breaches_are_counted() {
    let scope = |n: usize| format!("{n}+0.003 {n}<0.001 GET /v1/pets 200 scope={n}");
    let many: Vec<_> = (1..=4_098).map(scope).collect();
    let report = judge(many.iter().map(String::as_str));
    let scopes: Vec<_> = report.scopes().collect();
    assert_eq!(scopes.len(), 4_097);
    assert_eq!(scopes.last(), Some(&("other scopes", 2)));
    let finding = |n: usize| format!("{n}+0.003 {n}<0.001 GET /v1/pets 200 key-in=k agent={n}");
    let many: Vec<_> = (1..=2_003).map(finding).collect();
    let mut audit = audit(many.iter().map(String::as_str));
    assert_eq!(audit.sizes().0, 1_024);
    let report = audit.report(str::to_owned);
    assert_eq!(report.findings().count(), 2_000);
    assert_eq!(report.count(Severity::Violation), 2_003);
    let text = report.to_text();
    assert!(text.contains("\n3 violations more, not listed\n"), "{text}");
    audit.forget();
    let report = audit.report(str::to_owned);
    assert_eq!((report.findings().count(), report.scopes().count()), (0, 0));
    for severity in [Severity::Notice, Severity::Warning, Severity::Violation] {
        assert_eq!(report.count(severity), 0);
    }
    assert_eq!((report.requests(), audit.sizes().1), (0, 0));
}

#[test]
fn the_remembered_requests_of_all_clients_are_bounded() {
    // Each client is told to wait by 60 of 64 requests.
    let line = |n: usize| {
        let (client, request) = (n / 3_840, n % 64);
        let at = n as f64 * 0.001;
        format!("{at:.3}+0.0001 1 GET /v1/pets?n={request} 503 wait=1000 agent={client}")
    };
    let lines: Vec<_> = (0..4 * 3_840).map(line).collect();
    let audit = audit(lines.iter().map(String::as_str));
    let (clients, remembered) = audit.sizes();
    assert!(remembered <= 8_192, "{remembered}");
    assert_eq!(clients, 2);
    assert_eq!(audit.report(str::to_owned).findings().count(), 4);
}

#[test]
fn shown_breaches_of_all_findings_are_bounded() {
    let line = |n: usize| {
        let (agent, name) = (n / 20, n / 2);
        let status = if n.is_multiple_of(2) { 500 } else { 201 };
        format!("{n}+0.003 1 POST /v1/pets {status} agent={agent} body={{\"name\":\"{name}\"}}")
    };
    let lines: Vec<_> = (0..20 * 200).map(line).collect();
    let report = judge(lines.iter().map(String::as_str));
    let shown = report.findings().map(|finding| finding.evidence.len());
    let counted: u64 = report.findings().map(|finding| finding.count).sum();
    assert_eq!((shown.sum::<usize>(), counted), (200 + 1_000, 2_000));
}

/// Returns how long until the verdict is certain, after these lines.
fn undecided(lines: &[String], at: f64) -> Option<Duration> {
    let mut replay = Replay::new();
    replay.run(lines.iter().map(String::as_str));
    let now = replay.moment(at);
    replay.audit().undecided(&now, replay.boundary())
}

#[test]
fn the_verdict_is_certain_after_the_last_of_several_open_ones() {
    let twice = |begin: f64, request: &'static str| {
        let line = move |n: u32| format!("{:.4}+0.0001 1 {request}", begin + f64::from(n) * 0.001);
        (0..2).map(line)
    };
    let retries = [retries_at_once(0.0, ""), retries_at_once(0.5, " body={}")].concat();
    let waits: Vec<_> = twice(0.0, "GET /v1/pets 503 wait=10")
        .chain(twice(0.05, "GET /v1/pets?limit=1 503 wait=10"))
        .collect();
    let posts: Vec<_> = twice(0.0, r#"POST /v1/pets 500 body={"name":"Rex"}"#)
        .chain(twice(0.05, r#"POST /v1/pets 500 body={"name":"Tom"}"#))
        .collect();
    for (lines, begun, length) in [(retries, 0.5, 1.0), (waits, 0.05, 0.1), (posts, 0.05, 0.1)] {
        let left = undecided(&lines, begun + 0.01).unwrap().as_secs_f64();
        assert!((left - length).abs() < 0.0101, "{left} {lines:?}");
    }
}

#[test]
fn the_responses_that_ask_for_one_wait_are_bounded() {
    let remembered = |workers: u32| {
        let line = |n| format!("{}+1 {n} GET /v1/pets 429 wait=50", f64::from(n) * 0.001);
        let lines: Vec<_> = (1..=workers).map(line).collect();
        audit(lines.iter().map(String::as_str)).sizes().1
    };
    assert_eq!((remembered(64), remembered(65)), (64, 64));
}

#[test]
fn a_repeated_post_is_certain_a_moment_after_the_first_one() {
    let mut replay = Replay::new();
    replay.run([
        "1+0.001 1 POST /v1/pets 500 body={}",
        "1.002+0.001 1 POST /v1/pets 500 body={}",
    ]);
    let mut undecided = |at| {
        let now = replay.moment(at);
        replay.audit().undecided(&now, replay.boundary())
    };
    let left = undecided(1.011).unwrap();
    assert!(
        left > Duration::from_millis(80) && left <= Duration::from_millis(90),
        "{left:?}"
    );
    assert_eq!(undecided(1.102), None);
    // Two unknown POSTs, the two of the doubtful breach, and four of `back-off` and `steady-retry`.
    assert_eq!(replay.audit().sizes().1, 8);
}

#[test]
fn an_early_request_is_certain_a_moment_after_the_wait_began() {
    let early = [
        "1+0.001 1 GET /v1/pets 503 wait=10",
        "1.002+0.001 1 GET /v1/pets 503 wait=10",
    ];
    let mut replay = Replay::new();
    replay.run(early);
    let mut undecided = |at| {
        let now = replay.moment(at);
        replay.audit().undecided(&now, replay.boundary())
    };
    let left = undecided(1.003).unwrap();
    assert!(left > Duration::from_millis(90), "{left:?}");
    assert_eq!(undecided(1.2), None);
    assert_eq!(replay.audit().sizes().1, 4);

    let mut lines: Vec<_> = early.map(str::to_owned).into();
    assert!(is_found(&lines, Rule::RetryAfter));
    lines.push("! 1.01".to_owned());
    lines.push("1.02+0.001 2 GET /v1/pets 200".to_owned());
    lines.push("60+0.001 1 GET /v1/pets 200".to_owned());
    assert!(is_found(&lines, Rule::RetryAfter), "the test had ended");
}
