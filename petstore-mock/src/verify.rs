//! What a test asserts about the requests that came: so many, in this order, and what came instead.

use std::{
    fmt::{self, Write as _},
    ops::{Range, RangeFrom, RangeInclusive, RangeTo, RangeToInclusive},
    sync::Arc,
    thread,
};

use crate::{
    exchange::{Masker, Record},
    journal::Journal,
    pattern::Pattern,
    text::printable,
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

/// That so many requests of a kind are to come from now on.
///
/// It is checked when this is dropped, unless the thread is panicking already, or by
/// [`verify`](Self::verify).
///
/// ```
/// # use petstore_mock::{MockServer, Operation};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), reqwest::Error> {
/// let server = MockServer::start().await;
/// let _one_list = server.expect(Operation::ListPets, 1);
/// let _no_pet = server.expect(Operation::CreatePet, 0);
/// reqwest::get(format!("{}/pets", server.url())).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "it is checked when it is dropped, which is at once unless it is kept"]
pub struct Expectation {
    journal: Arc<Journal>,
    pattern: Pattern,
    times: Times,
    /// The number of the last request before it was set.
    after: u64,
    is_checked: bool,
}

impl Expectation {
    pub(crate) fn new(journal: Arc<Journal>, pattern: Pattern, times: Times) -> Self {
        let after = journal.last_number();
        Self { journal, pattern, times, after, is_checked: false }
    }

    /// Checks it now.
    ///
    /// # Panics
    ///
    /// Where it does not hold, with what came instead.
    #[track_caller]
    pub fn verify(mut self) {
        self.check();
    }

    #[track_caller]
    #[expect(clippy::panic, reason = "that is what an assertion does")]
    fn check(&mut self) {
        self.is_checked = true;
        if let Err(text) = check_times(&self.journal, &self.pattern, self.times, self.after) {
            panic!("{text}");
        }
    }
}

impl Drop for Expectation {
    fn drop(&mut self) {
        if !self.is_checked && !thread::panicking() {
            self.check();
        }
    }
}

/// How many requests there are to be: a number, or a range of them.
///
/// ```
/// use petstore_mock::Times;
///
/// assert!(Times::from(2).holds(2));
/// assert!(Times::from(1..).holds(7));
/// assert!(!Times::from(..=3).holds(4));
/// assert_eq!(Times::from(2..=3).to_string(), "2 to 3 requests");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    least: usize,
    /// Nothing if any number above `least` will do.
    most: Option<usize>,
}

impl Times {
    /// Returns whether so many are right.
    #[must_use]
    pub fn holds(self, count: usize) -> bool {
        count >= self.least && self.most.is_none_or(|most| count <= most)
    }

    /// Returns whether more than so many would be right as well.
    fn holds_from(self, count: usize) -> bool {
        count >= self.least && self.most.is_none()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.least, self.most) {
            (_, Some(0)) => f.write_str("no request"),
            (1, Some(1)) => f.write_str("1 request"),
            (least, Some(most)) if least == most => write!(f, "{most} requests"),
            (0, Some(most)) => write!(f, "at most {most} requests"),
            (least, Some(most)) => write!(f, "{least} to {most} requests"),
            (least, None) => write!(f, "at least {least} requests"),
        }
    }
}

impl From<usize> for Times {
    fn from(count: usize) -> Self {
        Self { least: count, most: Some(count) }
    }
}

impl From<RangeFrom<usize>> for Times {
    fn from(range: RangeFrom<usize>) -> Self {
        Self { least: range.start, most: None }
    }
}

impl From<RangeInclusive<usize>> for Times {
    fn from(range: RangeInclusive<usize>) -> Self {
        Self { least: *range.start(), most: Some(*range.end()) }
    }
}

impl From<RangeToInclusive<usize>> for Times {
    fn from(range: RangeToInclusive<usize>) -> Self {
        Self { least: 0, most: Some(range.end) }
    }
}

impl From<Range<usize>> for Times {
    /// A range that holds no number holds for none.
    fn from(range: Range<usize>) -> Self {
        match range.end.checked_sub(1) {
            Some(last) => Self { least: range.start, most: Some(last) },
            None => Self { least: 1, most: Some(0) },
        }
    }
}

impl From<RangeTo<usize>> for Times {
    fn from(range: RangeTo<usize>) -> Self {
        (0..range.end).into()
    }
}
