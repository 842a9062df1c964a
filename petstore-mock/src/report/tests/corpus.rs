//! Recordings of real clients of many libraries, alone, against a failing service.

use std::collections::BTreeSet;

use super::recording::{Recording, broken, judge};
use crate::report::Severity;

const CORPUS: &str = include_str!("../../../tests/corpus.txt");

/// Judges the recordings in a text. Returns their number, and those with unexpected rules. Notices
/// count if the name begins with `notice`.
fn wrong(text: &str) -> (usize, Vec<String>) {
    let (mut judged, mut wrong) = (0, Vec::new());
    for Recording { name, rules, lines } in Recording::all(text) {
        let least = if name.starts_with("notice ") {
            Severity::Notice
        } else {
            Severity::Warning
        };
        let found = broken(&judge(lines), least);
        let expected: BTreeSet<String> = rules.iter().map(ToString::to_string).collect();
        if found != expected {
            wrong.push(format!("{name}: found {found:?}, expected {expected:?}"));
        }
        judged += 1;
    }
    (judged, wrong)
}

#[test]
fn the_evidence_of_each_recording_adds_up() {
    for recording in Recording::all(CORPUS) {
        let report = judge(recording.lines);
        let evidence = report.findings().flat_map(|finding| &finding.evidence);
        evidence.for_each(super::evidence::check);
    }
}

#[test]
fn each_recording_is_judged_as_expected() {
    let (judged, wrong) = wrong(CORPUS);
    let count = wrong.len();
    assert!(
        wrong.is_empty(),
        "{count} of {judged} are wrong:\n{}",
        wrong.join("\n")
    );
    assert!(judged >= 64, "{judged}");
}

/// Judges the recordings in the file that the variable `PETSTORE_MOCK_RECORDINGS` names, and prints
/// what it finds in each: `RESULT`, the name, the expected rules, the rules found, and the notices.
#[test]
#[ignore = "needs a file of recordings"]
#[allow(clippy::disallowed_methods, reason = "the environment names the file")]
fn recordings_in_a_file() {
    let path = std::env::var("PETSTORE_MOCK_RECORDINGS").unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    for Recording { name, rules, lines } in Recording::all(&text) {
        let report = judge(lines);
        let failing = broken(&report, Severity::Warning);
        let notices: Vec<String> = report
            .of(Severity::Notice)
            .map(|it| it.rule.to_string())
            .collect();
        let join = |rules: Vec<&str>| rules.join(" ");
        println!(
            "RESULT\t{name}\t{}\t{}\t{}",
            join(rules.into_iter().collect()),
            join(failing.iter().map(String::as_str).collect()),
            join(notices.iter().map(String::as_str).collect()),
        );
    }
}
