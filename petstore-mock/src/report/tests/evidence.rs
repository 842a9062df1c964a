//! Tests of the evidence of findings: its sentences, and its marked and omitted requests.

use super::recording::judge;
use crate::report::{Evidence, Report, Role, Rule, Severity};

/// A `POST` repeated after a lost answer, a wait that was ignored while the mock's clock was moved,
/// and a scope without a finding.
const RECORDING: &str = r#"
42.9+0.003 3<0.001 GET /v1/pets?limit=5 200 scope=tests::adds_rex
43.112+0.004 3 POST /v1/pets - scope=tests::adds_rex added=27 body={"name":"Rex","categoryId":7}
43.415+0.004 4<0.001 POST /v1/pets 201 scope=tests::adds_rex added=28 body={"categoryId":7,"name":"Rex"}
43.5+0.004 4 GET /v1/pets 200 scope=tests::adds_rex
44+0.001 5<0.001 GET /v1/pets 429 scope=tests::is_limited wait=16 remaining=0 reset=60 says=the_quota_is_used_up
45+0.001 5 GET /v1/pets 429 scope=tests::is_limited wait=15 remaining=0 reset=60 real=45.05 strikes=1
46+0.001 5 GET /v1/pets/1 429 scope=tests::is_limited wait=14 remaining=0 reset=60 real=46.051 strikes=2
50+0.001 6<0.001 GET /v1/pets 200 scope=tests::lists
"#;

fn report() -> Report {
    judge(RECORDING.lines().filter(|line| !line.is_empty()))
}

#[test]
fn a_finding_stands_alone_as_text() {
    insta::assert_snapshot!(report().to_text());
}

#[test]
fn a_finding_stands_alone_as_json() {
    let mut json: serde_json::Value = serde_json::from_str(&report().to_json()).unwrap();
    let rules = json["rules"].as_object().unwrap();
    assert_eq!(rules.len(), Rule::ALL.len());
    json["rules"] = serde_json::Value::Null;
    // A crate in the same build may enable serde_json's `preserve_order`.
    json.sort_all_objects();
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap());
}

#[test]
fn a_finding_stands_alone_as_junit() {
    insta::assert_snapshot!(report().to_junit());
}

#[test]
fn a_finding_stands_alone_as_markdown() {
    insta::assert_snapshot!(report().to_markdown());
}

#[test]
fn what_is_empty_is_left_out() {
    let line = "0+0.003 1 GET /v1/pets 200";
    let text = judge([line]).to_text();
    assert_eq!(text, "compliance: nothing found in 1 request\n");
    let text = judge([line, "1+0.003 1 GET /v1/pets 200 key-in=k"]).to_text();
    assert!(text.ends_with("and nowhere else.\n"), "{text}");
}

#[test]
fn all_texts_that_may_contain_a_key_are_masked() {
    let line = "0+0.003 1<0.001 GET /v1/pets?k=SECRET 401 key-in=SECRET agent=SECRET scope=SECRET";
    let audit = super::recording::audit([&*format!("{line} says=unknown_key_SECRET")]);
    let json = audit.report(|it| it.replace("SECRET", "*")).to_json();
    assert!(
        json.contains("key-in-url") && json.contains("?k=*"),
        "{json}"
    );
    assert!(json.contains("unknown key *"), "{json}");
    assert!(!json.contains("SECRET"), "{json}");
}

#[test]
fn the_place_of_a_key_in_the_url_is_named() {
    for (parameter, place) in [
        ("k", "the query parameter `k` contains a key"),
        ("", "a segment of the path contains a key"),
    ] {
        let line = format!("0+0.003 1 GET /v1/pets 200 key-in={parameter}");
        assert_eq!(evidence_of(&[line]).text, place);
    }
}

/// Returns the first evidence of the first finding in a recording.
fn evidence_of(lines: &[String]) -> Evidence {
    let report = judge(lines.iter().map(String::as_str));
    report.findings().next().unwrap().evidence[0].clone()
}

/// Panics unless the numbers of marked and omitted requests match the evidence's totals.
pub(super) fn check(evidence: &Evidence) {
    let requests = &evidence.requests;
    let text = evidence.to_string();
    let marked = requests
        .iter()
        .filter(|it| it.role == Role::Offence)
        .count() as u64;
    let omitted: u64 = requests.iter().map(|it| it.omitted_before).sum();
    assert_eq!(marked + omitted, evidence.offences, "{text}");
    assert_eq!(omitted, evidence.omitted, "{text}");
    assert!(
        requests.is_sorted_by(|one, next| one.number < next.number),
        "{text}"
    );
    let first = requests.iter().find(|it| it.role == Role::Offence);
    assert_eq!(first.map(|first| first.at), Some(evidence.at), "{text}");
    let counted = evidence.text.split_once(" was sent again ");
    let counted = counted.and_then(|(_, rest)| rest.split_once(" times"));
    if let Some((times, _)) = counted {
        assert_eq!(times.parse(), Ok(evidence.offences), "{text}");
    }
    for request in requests {
        let Some(before) = request.after else {
            continue;
        };
        assert_eq!(request.role, Role::Offence, "{text}");
        let shown = requests.iter().find(|it| it.number == before.number);
        assert!(shown.is_some() || request.omitted_before > 0, "{text}");
    }
}

#[test]
fn omitted_requests_are_counted_where_they_are() {
    let line = |n: u64| format!("{n}+0.003 1 GET /v1/pets?limit={n} 429 wait={}", 60 - n);
    for (last, omitted, text) in [
        (40, 28, "\n  ! 28 requests not shown\n  ! #38 "),
        (13, 1, "\n  ! 1 request not shown\n  ! #11 "),
    ] {
        let evidence = evidence_of(&(0..=last).map(line).collect::<Vec<_>>());
        check(&evidence);
        assert_eq!((evidence.offences, evidence.omitted), (last, omitted));
        assert!(evidence.to_string().contains(text), "{evidence}");
        for request in &evidence.requests {
            if let Some(before) = request.after {
                assert_eq!(before.number, request.number - 1);
                assert_eq!(before.gap.as_millis(), 997);
            }
        }
    }
    let evidence = evidence_of(&(0..=12).map(line).collect::<Vec<_>>());
    assert_eq!((evidence.offences, evidence.omitted), (12, 0));
}

/// One burst of 20 with a quota of 5: 5 are admitted, 11 refused, and the last 4 banned.
fn burst(more: &str) -> Vec<String> {
    let line = |n: u32| {
        let refused = match n {
            0..=4 => "200".to_owned(),
            5 => "429 wait=50 remaining=0 reset=60".to_owned(),
            6..=15 => format!("429 wait=50 remaining=0 reset=60 strikes={}", n - 5),
            16 => "429 banned wait=300 strikes=11".to_owned(),
            _ => "429 banned wait=300".to_owned(),
        };
        let at = 10.0 + f64::from(n) * 0.001;
        format!("{at}+0.030 {n}<0.001 GET /v1/pets?limit={n} {refused}{more}")
    };
    (0..20).map(line).collect()
}

#[test]
fn an_unforeseeable_ban_is_a_notice_with_its_requests() {
    for more in ["", " h2"] {
        let report = judge(burst(more).iter().map(String::as_str));
        assert!(report.is_compliant(), "{report}");
        let mut evidence = report.findings().flat_map(|it| &it.evidence);
        let ban = evidence.find(|it| it.text.contains("banned")).unwrap();
        check(ban);
        assert_eq!(
            ban.text,
            "the key is banned until 00:05:10.016: 11 requests arrived before Retry-After had elapsed \
             (#7, #8, #9, #10, #11, #12, #13, #14, #15, #16, #17)"
        );
        let marked = |role| ban.requests.iter().filter(move |it| it.role == role);
        assert_eq!(
            marked(Role::Cause).map(|it| it.number).collect::<Vec<_>>(),
            [6]
        );
        assert!(marked(Role::Offence).map(|it| it.number).eq(7..=17));
    }
}

#[test]
fn a_ban_after_many_requests_counts_all_and_names_the_last() {
    let line = |n: u32| {
        let met = match n {
            0 => "429 wait=50 remaining=0 reset=60".to_owned(),
            20 => "429 banned wait=300 strikes=20".to_owned(),
            _ => format!("429 wait=50 remaining=0 reset=60 strikes={n}"),
        };
        let at = 10.0 + f64::from(n) * 0.001;
        format!("{at}+0.030 {n}<0.001 GET /v1/pets?limit={n} {met}")
    };
    let report = judge(
        (0..=20)
            .map(line)
            .collect::<Vec<_>>()
            .iter()
            .map(String::as_str),
    );
    let mut evidence = report.findings().flat_map(|it| &it.evidence);
    let ban = evidence.find(|it| it.text.contains("banned")).unwrap();
    let numbers: Vec<_> = (10..=21).map(|number| format!("#{number}")).collect();
    assert_eq!(
        ban.text,
        format!(
            "the key is banned until 00:05:10.020: 20 requests arrived before Retry-After had elapsed \
             (the last ones: {})",
            numbers.join(", ")
        )
    );
    assert_eq!((ban.offences, ban.omitted), (20, 8), "{report}");
}

#[test]
fn a_ban_is_named_by_the_breach_that_caused_it() {
    let line = |n: u32| match n {
        0 => "1+0.001 1 GET /v1/pets 429 wait=59 remaining=0 reset=60".to_owned(),
        11 => "12+0.001 1 GET /v1/pets 429 banned wait=300 strikes=11".to_owned(),
        12 => "112+0.001 1 GET /v1/pets 429 banned wait=200".to_owned(),
        _ => format!(
            "{}+0.001 1 GET /v1/pets 429 wait=50 remaining=0 reset=60 strikes={n}",
            n + 1
        ),
    };
    let evidence = evidence_of(&(0..=12).map(line).collect::<Vec<_>>());
    check(&evidence);
    // At 112 s, the worker comes back that was told to wait until 60 s.
    assert_eq!(evidence.offences, 11);
    let ban = evidence.ban.unwrap();
    assert!(
        ban.starts_with("the key is banned until 00:05:12.000: 11 requests arrived "),
        "{ban}"
    );
    assert!(
        ban.ends_with("(#2, #3, #4, #5, #6, #7, #8, #9, #10, #11, #12)"),
        "{ban}"
    );
    assert!(!evidence.text.contains("banned"), "{}", evidence.text);
}

#[test]
fn a_ban_names_only_the_early_requests_that_count() {
    let line = |n: u32| match n {
        0 => "1+0.001 1 GET /v1/pets 429 wait=59 remaining=0 reset=60".to_owned(),
        // Only the last 3 of the 5 early requests came within the period of the ban's policy.
        5 => "6+0.001 1 GET /v1/pets 429 banned wait=300 strikes=3".to_owned(),
        _ => format!(
            "{}+0.001 1 GET /v1/pets 429 wait=50 remaining=0 reset=60 strikes={}",
            n + 1,
            n.min(2)
        ),
    };
    let evidence = evidence_of(&(0..=5).map(line).collect::<Vec<_>>());
    check(&evidence);
    let ban = evidence.ban.unwrap();
    assert!(
        ban.ends_with("3 requests arrived before Retry-After had elapsed (#4, #5, #6)"),
        "{ban}"
    );
}

#[test]
fn a_ban_by_two_clients_names_the_requests_of_both() {
    let line = |n: u32| {
        let agent = if n < 6 { "one/1" } else { "two/1" };
        let refused = match n {
            0 => "wait=50 remaining=0 reset=60".to_owned(),
            11 => "banned wait=300 strikes=11".to_owned(),
            _ => format!("wait=50 remaining=0 reset=60 strikes={n}"),
        };
        let at = 10.0 + f64::from(n) * 0.001;
        format!("{at}+0.020 {n}<0.001 GET /v1/pets?limit={n} 429 {refused} agent={agent}")
    };
    let lines: Vec<_> = (0..12).map(line).collect();
    let report = judge(lines.iter().map(String::as_str));
    let text = report.to_text();
    assert!(
        text.contains("(#2, #3, #4, #5, #6, #7, #8, #9, #10, #11, #12)"),
        "{text}"
    );
    assert!(report.is_compliant(), "{text}");
}

#[test]
fn a_ban_by_the_administration_is_nobodys_fault() {
    let line = "1+0.001 1 GET /v1/pets 429 banned wait=300";
    assert_eq!(judge([line]).findings().count(), 0);
}

#[test]
fn the_message_of_the_answer_is_shown() {
    let line =
        |n: u32| format!("{n}+0.003 1 POST /v1/pets 400 says=name_is_\\\"missing\\\" body={{}}");
    let evidence = evidence_of(&(0..6).map(line).collect::<Vec<_>>());
    check(&evidence);
    assert_eq!(evidence.offences, 5);
    let text = evidence.to_string();
    assert_eq!(
        text.matches(r#"-> 400 "name is \"missing\"""#).count(),
        6,
        "{text}"
    );
    assert!(
        text.contains("POST /v1/pets was sent again 5 times, unchanged,"),
        "{text}"
    );
}

#[test]
fn a_notice_that_counts_once_shows_its_first_and_last_request() {
    let lines: Vec<_> = (0..5)
        .map(|n| format!("{n}+0.003 1 GET /v1/pets/{n} 200"))
        .collect();
    let report = judge(lines.iter().map(String::as_str));
    let finding = report.of(Severity::Notice).next().unwrap();
    assert_eq!((finding.rule, finding.count), (Rule::Deprecated, 1));
    check(&finding.evidence[0]);
    let numbers: Vec<_> = finding.evidence[0]
        .requests
        .iter()
        .map(|it| it.number)
        .collect();
    assert_eq!(numbers, [1, 5]);
}

#[test]
fn the_first_breaches_are_shown_and_all_are_counted() {
    let post = |n: u64| {
        let status = if n.is_multiple_of(2) { 500 } else { 201 };
        let name = n / 2;
        format!("{n}+0.003 1 POST /v1/pets {status} body={{\"name\":\"{name}\"}}")
    };
    let lines: Vec<_> = (0..24).map(post).collect();
    let report = judge(lines.iter().map(String::as_str));
    let finding = report.findings().next().unwrap();
    let expected = (Rule::RepeatedPost, 12, 10);
    assert_eq!(
        (finding.rule, finding.count, finding.evidence.len()),
        expected
    );
    let text = finding.to_string();
    assert!(text.contains("\n  and 2 more\n"), "{text}");
}

#[test]
fn the_text_of_hammering_is_about_the_requests_that_are_marked() {
    let line = |at: f64| format!("{at}+0.0001 1 GET /v1/pets 500");
    let quick = (0..8).map(|n| 1.0 + f64::from(n) * 0.001);
    // Slower repeats come before the fast ones, and others after them.
    let mut lines: Vec<_> = [0.0, 0.5].into_iter().chain(quick).map(line).collect();
    lines.extend([2.0, 3.0, 3.001, 3.002].map(line));
    let evidence = evidence_of(&lines);
    check(&evidence);
    assert_eq!(
        evidence.text,
        "GET /v1/pets was sent again 9 times, the last 7 times within 0.007 s"
    );
}
