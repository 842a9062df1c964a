//! Recordings of clients against a failing service, honest and guilty, and how many are found.

use super::recording::{Recording, broken};

/// Real clients of many libraries, alone; and written exchanges.
const ALONE: &str = include_str!("../../../tests/corpus.txt");

/// Clients of several workers, processes or users, with their true number of senders. Long ones are cut
/// off.
const COMPANY: &str = include_str!("../../../tests/company.txt");

/// How many recordings are of honest and of guilty clients, and which guilty ones are not found.
#[derive(Debug, Default)]
struct Tally {
    honest: usize,
    guilty: usize,
    missed: Vec<String>,
}

/// Judges recordings. Panics if an honest client is accused.
fn judge(recordings: impl Iterator<Item = Recording<'static>>) -> Tally {
    let mut tally = Tally::default();
    for recording in recordings {
        let report = recording.judge();
        let found = broken(&report);
        if recording.rules.is_empty() {
            tally.honest += 1;
            assert!(found.is_empty(), "{}: {report}", recording.name);
            continue;
        }
        tally.guilty += 1;
        if !recording.rules.iter().any(|rule| found.contains(*rule)) {
            tally.missed.push(recording.name.to_owned());
        }
    }
    tally
}

#[test]
fn no_honest_client_is_accused_and_guilty_ones_are_found() {
    let (written, recorded): (Vec<_>, Vec<_>) =
        Recording::all(ALONE).partition(|one| one.name.starts_with("written "));
    let written = judge(written.into_iter());
    assert!(written.missed.len() <= 5, "{written:?}");
    let alone = judge(recorded.into_iter());
    assert!(alone.honest >= 420 && alone.guilty >= 190, "{alone:?}");
    assert!(alone.missed.len() * 100 <= alone.guilty * 3, "{alone:?}");
    let company = judge(Recording::all(COMPANY));
    assert!(company.honest >= 90 && company.guilty >= 70, "{company:?}");
    assert!(
        company.missed.len() * 5 <= company.guilty,
        "more than a fifth is not found: {company:?}"
    );
}
