//! The checks, and the words for what is wrong: what was wanted, how much of it came, and what came
//! nearest.

use std::{fmt::Write as _, sync::Arc};

use super::Times;
use crate::{
    exchange::{Masker, Record},
    journal::Journal,
    pattern::Pattern,
    printable::printable,
};

/// How many of the requests that came nearest are shown.
const NEAREST: usize = 3;

/// Checks that so many of the exchanges after the request `after` match.
pub(crate) fn check_times(
    journal: &Journal,
    pattern: &Pattern,
    times: Times,
    after: u64,
) -> Result<(), String> {
    journal.look(|records, keys, forgotten| {
        let records = sorted(records, after);
        let count = records.iter().filter(|record| pattern.matches(record, keys)).count();
        // What the ring has forgotten could have matched, too.
        let is_certain = forgotten <= after;
        if times.holds(count) && (is_certain || times.holds_from(count)) {
            return Ok(());
        }
        let mut text = format!("expected {times} with {}", pattern.describe(keys));
        if times.holds(count) {
            let _ = write!(
                text,
                ": {count} are in the journal, but it has forgotten earlier ones: let it keep more \
                 with Builder::journal"
            );
            return Err(text);
        }
        let _ = write!(text, ", but {count} of {} came", records.len());
        show(&mut text, pattern, &records, keys, count > 0);
        Err(text)
    })
}

/// Checks that exchanges came which match these patterns, in this order; others may have come in
/// between.
pub(crate) fn check_order(journal: &Journal, patterns: &[Pattern]) -> Result<(), String> {
    journal.look(|records, keys, _| {
        let records = sorted(records, 0);
        let mut rest = &records[..];
        let mut found = Vec::new();
        for (place, pattern) in patterns.iter().enumerate() {
            let Some(at) = rest.iter().position(|record| pattern.matches(record, keys)) else {
                let mut text = String::from("expected requests in this order:\n");
                for (number, pattern) in patterns.iter().enumerate() {
                    let came = match found.get(number) {
                        Some(number) => format!("request {number}"),
                        None if number == place => "did not come after that".to_owned(),
                        None => "not looked for".to_owned(),
                    };
                    let _ = writeln!(text, "  {}. {}: {came}", number + 1, pattern.describe(keys));
                }
                if let Some(early) = records.iter().find(|record| pattern.matches(record, keys)) {
                    let number = place + 1;
                    let _ =
                        writeln!(text, "request {} fits {number}., but came before", early.number);
                }
                text.truncate(text.trim_end().len());
                show(&mut text, pattern, rest, keys, false);
                return Err(text);
            };
            found.push(rest[at].number);
            rest = &rest[at + 1..];
        }
        Ok(())
    })
}

fn sorted(records: &[Arc<Record>], after: u64) -> Vec<Arc<Record>> {
    let mut records: Vec<_> = records.iter().filter(|one| one.number > after).cloned().collect();
    records.sort_unstable_by_key(|record| record.number);
    records
}

/// Shows the requests that match, or those that came nearest to it, with what they have instead.
fn show(
    text: &mut String,
    pattern: &Pattern,
    records: &[Arc<Record>],
    keys: &Masker,
    matching: bool,
) {
    let mut near: Vec<_> =
        records.iter().map(|record| (pattern.mismatches(record, keys), record)).collect();
    near.retain(|(mismatches, _)| mismatches.is_empty() == matching);
    near.sort_by_key(|(mismatches, _)| mismatches.len());
    let title = if matching { "these did" } else { "the nearest" };
    if !near.is_empty() {
        let _ = write!(text, "\n{title}:");
    }
    for (mismatches, record) in near.iter().take(NEAREST) {
        let (method, target) =
            (printable(record.method.as_str()), printable(&keys.target(&record.target)));
        let _ = write!(text, "\n  request {}, {method} {target}", record.number);
        if let Some(status) = record.status {
            let _ = write!(text, " -> {status}");
        }
        for mismatch in mismatches {
            let _ = write!(text, "\n    {mismatch}");
        }
    }
    if let more @ 1.. = near.len().saturating_sub(NEAREST) {
        let _ = write!(text, "\n  and {more} more");
    }
}
