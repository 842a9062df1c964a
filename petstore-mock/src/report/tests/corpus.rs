//! Recordings of real clients of many libraries, alone, against a failing service; and written
//! exchanges of honest and guilty clients.

use super::recording::{Recording, broken};

const CORPUS: &str = include_str!("../../../tests/corpus.txt");

#[test]
fn the_recordings_are_judged_as_expected() {
    let (mut honest, mut guilty, mut missed) = (0, 0, Vec::new());
    for recording in Recording::all(CORPUS) {
        let found = broken(&recording.judge());
        let name = recording.name;
        if recording.rules.is_empty() {
            honest += 1;
            assert!(found.is_empty(), "{name}: {found:?}");
            continue;
        }
        let is_found = recording.rules.iter().any(|rule| found.contains(*rule));
        // 5 of the 18 written guilty ones are let go.
        if !name.starts_with("written ") {
            guilty += 1;
        }
        if !is_found {
            missed.push(name);
        }
    }
    let (written, missed): (Vec<&str>, Vec<&str>) = missed
        .into_iter()
        .partition(|name| name.starts_with("written "));
    println!("{honest} honest, {guilty} guilty, missed {missed:?}, {written:?}");
    assert!(honest >= 460 && guilty >= 190, "{honest} {guilty}");
    assert!(missed.len() * 100 <= guilty * 3, "{missed:?}");
    assert!(written.len() <= 5, "{written:?}");
}

/// Judges the recordings in the file that the variable `PETSTORE_MOCK_RECORDINGS` names, and prints
/// what it finds in each: `RESULT`, the name, the expected rules, and the rules found.
#[test]
#[ignore = "needs a file of recordings"]
#[allow(clippy::disallowed_methods, reason = "the environment names the file")]
fn recordings_in_a_file() {
    let path = std::env::var("PETSTORE_MOCK_RECORDINGS").unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    for recording in Recording::all(&text) {
        let found = Vec::from_iter(broken(&recording.judge())).join(" ");
        let expected = Vec::from_iter(recording.rules).join(" ");
        println!("RESULT\t{}\t{expected}\t{found}", recording.name);
    }
}
