//! The content of a journal: its records, and the state of each row that follows from them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::history::{History, IdWindows};

/// The first line.
pub(crate) const HEADER: &[u8] = b"journal of petstore pets import, version 5\n";

/// The smallest page size of an operating system. A write that a kill interrupts ends at a page.
const PAGE: usize = 4_096;

/// A record. Rows are numbered from 0, and times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Record {
    Run(Run),
    /// A block of rows, beginning with this number, may be sent from now on. It has their digests.
    Block {
        from: usize,
        digests: Vec<u32>,
    },
    /// These rows are about to be sent.
    Sent {
        at: u64,
        rows: Vec<usize>,
    },
    /// The responses to these rows were lost.
    Lost {
        at: u64,
        rows: Vec<usize>,
    },
    Rows(RowState, Vec<usize>),
    /// These unknown rows are sent again, although they may have been created.
    Retry(Vec<usize>),
    Checked(Checked),
    /// Uncertain rows that the user takes as created.
    Accepted(Vec<(usize, i64)>),
    /// The run ended normally, so no record is missing.
    End,
}

/// A run of the import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Run {
    pub(crate) pid: u32,
    pub(crate) started: SystemTime,
    /// Identifies the boot of the machine. What was written since then is not lost.
    pub(crate) boot: Option<String>,
    pub(crate) base_url: String,
    /// The longest time that a request may take to arrive.
    pub(crate) limit: Duration,
    /// The number of rows of the input.
    pub(crate) rows: usize,
    /// The files of rejected, unknown and created rows.
    pub(crate) files: Vec<PathBuf>,
    /// The earlier damaged lines that have been handled.
    pub(crate) damaged: Vec<usize>,
}

/// What a list of the pets says about unknown rows. It is one record, so that all of it counts or
/// nothing.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Checked {
    /// Rows that were created, with their pets.
    pub(crate) found: Vec<(usize, i64)>,
    /// Rows that were not created.
    pub(crate) not_found: Vec<usize>,
    /// Rows that may have been created, with the pets that may be theirs.
    pub(crate) uncertain: Vec<(usize, Vec<i64>)>,
}

/// The state of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum RowState {
    Left,
    /// Will be sent in this run.
    Announced,
    /// About to be sent, or sent without a response yet.
    Unknown,
    /// Unknown, and one of these pets may be its own.
    Uncertain(Vec<i64>),
    Created(i64),
    Rejected(String),
}

impl RowState {
    pub(crate) fn is_left(&self) -> bool {
        matches!(self, Self::Left | Self::Announced)
    }

    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown | Self::Uncertain(_))
    }
}

/// The number of rows in each state.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    pub(crate) created: usize,
    pub(crate) rejected: usize,
    pub(crate) unknown: usize,
    /// How many of the unknown rows are uncertain.
    pub(crate) uncertain: usize,
    pub(crate) left: usize,
}

impl Totals {
    fn count(&mut self, row: &RowState) {
        match row {
            RowState::Left | RowState::Announced => self.left += 1,
            RowState::Unknown => self.unknown += 1,
            RowState::Uncertain(_) => {
                self.unknown += 1;
                self.uncertain += 1;
            }
            RowState::Created(_) => self.created += 1,
            RowState::Rejected(_) => self.rejected += 1,
        }
    }
}

/// What happened in one run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct RunTotals {
    pub(crate) created: usize,
    /// The number of unknown rows that turned out to be created.
    pub(crate) found: usize,
    pub(crate) rejected: usize,
    pub(crate) unknown: usize,
}

/// The content of a journal.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    rows: Vec<RowState>,
    /// The digest of each announced row.
    digests: Vec<Option<u32>>,
    history: History,
    last_run: Option<Run>,
    /// What has happened since the last run began.
    run: RunTotals,
    /// The start of the last run that created a pet.
    imported: Option<SystemTime>,
    /// The output files of earlier runs of this import.
    files: Vec<PathBuf>,
    /// The damaged lines that no run has handled.
    damaged: Vec<usize>,
    /// Whether the last line is incomplete.
    is_cut: bool,
    /// Whether the end of the file is missing. Then any row without an outcome may have been sent.
    is_truncated: bool,
    /// The number of complete lines.
    lines: usize,
    has_ended: bool,
    /// The number of bytes in complete lines, and in the file.
    pub(super) whole: u64,
    pub(super) length: u64,
}

impl State {
    /// Reads a journal. `boot` identifies this boot of the machine.
    pub(crate) fn read(bytes: &[u8], boot: Option<&str>) -> Option<Self> {
        let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
        let (content, zeros) = bytes.split_at(bytes.len() - zeros);
        let is_truncated = zeros.is_empty() && !bytes.is_empty();
        let length = bytes.len() as u64;
        let mut state = Self {
            is_truncated,
            length,
            ..Self::default()
        };
        if !content.starts_with(HEADER) {
            state.is_cut = !content.is_empty();
            return HEADER.starts_with(content).then_some(state);
        }
        for (number, line) in content.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let Some(text) = line.strip_suffix(b"\n") else {
                state.is_cut = true;
                break;
            };
            state.whole += line.len() as u64;
            state.lines += 1;
            match parse(text) {
                Some(record) => state.apply(record),
                None if number > 0 => state.damaged.push(number + 1),
                None => {}
            }
        }
        let last_boot = state.last_run.as_ref().and_then(|run| run.boot.as_deref());
        let is_same_boot = boot.is_some() && boot == last_boot;
        // A kill may interrupt a write, on Linux between two pages. The row of such an incomplete
        // line was not sent yet.
        let is_interrupted = content.len().is_multiple_of(PAGE);
        let is_complete = state.damaged.is_empty()
            && !(state.is_truncated || state.is_cut && !is_interrupted)
            && (state.has_ended || is_same_boot);
        state.settle(if is_complete {
            &RowState::Left
        } else {
            &RowState::Unknown
        });
        Some(state)
    }

    /// Takes over the number of rows of the input.
    pub(crate) fn resize(&mut self, rows: usize) {
        let unannounced = if self.is_truncated {
            RowState::Unknown
        } else {
            RowState::Left
        };
        self.rows.resize(rows, unannounced);
    }

    /// Sets the state of announced rows without an outcome.
    fn settle(&mut self, to: &RowState) {
        for row in &mut self.rows {
            if *row == RowState::Announced {
                row.clone_from(to);
            }
        }
    }

    pub(crate) fn apply(&mut self, record: Record) {
        match record {
            Record::Run(run) => self.begin(run),
            Record::Block { from, digests } => self.announce(from, digests),
            Record::Sent { at, rows } => {
                for row in rows {
                    self.history.send(row, at);
                    self.set(row, RowState::Unknown);
                }
            }
            Record::Lost { at, rows } => {
                self.run.unknown += rows.len();
                for row in rows {
                    self.history.lose(row, at);
                    self.set(row, RowState::Unknown);
                }
            }
            Record::Rows(state, rows) => self.set_rows(&state, rows),
            Record::Retry(rows) => {
                for row in rows {
                    self.set(row, RowState::Announced);
                }
            }
            Record::Checked(checked) => self.check(checked),
            Record::Accepted(pets) => self.find(pets),
            Record::End => self.has_ended = true,
        }
    }

    fn begin(&mut self, run: Run) {
        self.damaged.retain(|line| !run.damaged.contains(line));
        if self.damaged.is_empty() {
            self.settle(&RowState::Left);
        }
        self.history.start(millis(run.started), run.limit);
        self.files.extend(run.files.iter().cloned());
        self.last_run = Some(run);
        self.run = RunTotals::default();
        self.has_ended = false;
    }

    fn announce(&mut self, from: usize, digests: Vec<u32>) {
        self.history.announce(from, digests.len());
        for (row, digest) in digests.into_iter().enumerate() {
            let row = from + row;
            if self.digests.len() <= row {
                self.digests.resize(row + 1, None);
            }
            self.digests[row] = Some(digest);
            let state = self.rows.get(row).unwrap_or(&RowState::Left);
            if *state == RowState::Left {
                self.set(row, RowState::Announced);
            }
        }
    }

    fn set_rows(&mut self, state: &RowState, rows: Vec<usize>) {
        match state {
            RowState::Created(_) => {
                self.run.created += rows.len();
                self.imported = self.last_run.as_ref().map(|run| run.started);
            }
            RowState::Rejected(_) => self.run.rejected += rows.len(),
            RowState::Left | RowState::Announced | RowState::Unknown | RowState::Uncertain(_) => {}
        }
        for row in rows {
            match state {
                RowState::Created(id) => self.history.create(row, *id),
                RowState::Left | RowState::Announced | RowState::Rejected(_) => {
                    self.history.settle(row);
                }
                RowState::Unknown | RowState::Uncertain(_) => {}
            }
            self.set(row, state.clone());
        }
    }

    fn check(&mut self, checked: Checked) {
        let Checked {
            found,
            not_found,
            uncertain,
        } = checked;
        self.find(found);
        for row in not_found {
            self.history.settle(row);
            self.set(row, RowState::Announced);
        }
        for (row, pets) in uncertain {
            self.set(row, RowState::Uncertain(pets));
        }
    }

    /// Marks unknown rows as created. Their ids are no evidence of the order of ids.
    fn find(&mut self, pets: Vec<(usize, i64)>) {
        self.run.found += pets.len();
        for (row, id) in pets {
            self.history.settle(row);
            self.set(row, RowState::Created(id));
        }
    }

    fn set(&mut self, row: usize, state: RowState) {
        if self.rows.len() <= row {
            self.rows.resize(row + 1, RowState::Left);
        }
        self.rows[row] = state;
    }

    pub(crate) fn rows(&self) -> &[RowState] {
        &self.rows
    }

    /// Returns the numbers of the rows with a state.
    pub(crate) fn rows_where(&self, is: impl Fn(&RowState) -> bool) -> Vec<usize> {
        let mut numbers = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            if is(row) {
                numbers.push(number);
            }
        }
        numbers
    }

    pub(crate) fn unknown(&self) -> Vec<usize> {
        self.rows_where(RowState::is_unknown)
    }

    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.rows.iter().for_each(|row| totals.count(row));
        totals
    }

    pub(crate) fn run(&self) -> RunTotals {
        self.run
    }

    /// Returns the digest of a row that was announced.
    pub(crate) fn digest(&self, row: usize) -> Option<u32> {
        self.digests.get(row).copied().flatten()
    }

    pub(crate) fn last_run(&self) -> Option<&Run> {
        self.last_run.as_ref()
    }

    pub(crate) fn imported(&self) -> Option<SystemTime> {
        self.imported
    }

    /// Returns whether an earlier run of this import wrote a file.
    pub(crate) fn has_written(&self, file: &Path) -> bool {
        self.files.iter().any(|written| written == file)
    }

    pub(crate) fn damaged(&self) -> &[usize] {
        &self.damaged
    }

    /// Returns whether the last line is incomplete.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns what is wrong with the journal, if rows may have been sent without a record.
    pub(crate) fn defect(&self) -> Option<String> {
        match self.damaged.first() {
            Some(line) => Some(format!("journal line {line} is damaged")),
            None if self.is_truncated => {
                let line = self.lines;
                Some(format!("the journal was cut off after line {line}"))
            }
            None => None,
        }
    }

    pub(crate) fn windows(&self) -> IdWindows<'_> {
        self.history.windows()
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }
}

/// Returns a time in milliseconds since 1970.
pub(super) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn line(record: &Record) -> io::Result<String> {
    let text = serde_json::to_string(record)?;
    Ok(format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes())))
}

pub(crate) fn parse(line: &[u8]) -> Option<Record> {
    let (checksum, text) = line.split_at_checked(9)?;
    let is_intact = checksum == format!("{:08x} ", crc32fast::hash(text)).as_bytes();
    serde_json::from_slice(text).ok().filter(|_| is_intact)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: &str = "this boot";

    fn run(damaged: &[usize]) -> Record {
        Record::Run(Run {
            pid: 7,
            started: SystemTime::UNIX_EPOCH,
            boot: Some(BOOT.to_owned()),
            base_url: String::new(),
            limit: Duration::from_secs(30),
            rows: 0,
            files: Vec::new(),
            damaged: damaged.to_vec(),
        })
    }

    fn sent(rows: &[usize]) -> Record {
        Record::Sent {
            at: 0,
            rows: rows.to_vec(),
        }
    }

    fn records() -> Vec<Record> {
        vec![
            run(&[]),
            Record::Block {
                from: 0,
                digests: vec![1, 2, 3, 4],
            },
            sent(&[0]),
            Record::Rows(RowState::Created(7), vec![0]),
            sent(&[1, 2]),
            Record::Rows(RowState::Rejected("bad".into()), vec![1]),
            sent(&[3]),
            Record::Rows(RowState::Announced, vec![3]),
        ]
    }

    fn bytes(records: &[Record]) -> Vec<u8> {
        let lines: String = records.iter().map(|record| line(record).unwrap()).collect();
        [HEADER, lines.as_bytes()].concat()
    }

    fn read(content: &[u8], boot: &str) -> Option<State> {
        State::read(&[content, &[0; 9]].concat(), Some(boot))
    }

    fn states(content: &[u8], boot: &str) -> Vec<RowState> {
        read(content, boot).unwrap().rows
    }

    #[test]
    fn folds_its_records_into_the_state_of_each_row() {
        let state = read(&bytes(&records()), BOOT).unwrap();
        let rejected = RowState::Rejected("bad".into());
        assert_eq!(
            state.rows,
            [
                RowState::Created(7),
                rejected,
                RowState::Unknown,
                RowState::Left
            ]
        );
        assert_eq!(
            (state.history.lowest(), state.digests[1]),
            (Some(7), Some(2))
        );
        assert!(state.damaged.is_empty() && !state.is_cut && !state.is_truncated);
    }

    #[test]
    fn names_a_damaged_line() {
        let content = String::from_utf8(bytes(&records()))
            .unwrap()
            .replacen("[1,2,3,4]", "[1]", 1);
        let state = read(content.as_bytes(), BOOT).unwrap();
        assert_eq!((state.damaged, state.lines), (vec![3], 9));
    }

    #[test]
    fn a_row_is_left_after_a_kill_only_if_it_was_not_sent() {
        let whole = bytes(&records());
        for length in 0..=whole.len() {
            let Some(state) = read(&whole[..length], BOOT) else {
                panic!("{length}")
            };
            let lines = whole[..length]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count();
            assert_eq!(state.lines, lines);
            let sent: Vec<usize> = records()[..lines.saturating_sub(1)]
                .iter()
                .flat_map(|record| match record {
                    Record::Sent { rows, .. } => rows.clone(),
                    _ => Vec::new(),
                })
                .filter(|row| *row != 3)
                .collect();
            for row in 0..3 {
                let is_left = state.rows.get(row).is_none_or(RowState::is_left);
                assert!(!is_left || !sent.contains(&row), "{length} {row}");
                assert!(
                    is_left || state.is_cut || sent.contains(&row),
                    "{length} {row}"
                );
            }
            assert_eq!(
                state.is_cut,
                length > 0 && whole[length - 1] != b'\n',
                "{length}"
            );
        }
    }

    #[test]
    fn a_kill_between_two_pages_makes_no_row_unknown() {
        let content = |filler: usize| {
            let Record::Run(run) = run(&[]) else {
                unreachable!()
            };
            let run = Run {
                base_url: "x".repeat(filler),
                ..run
            };
            let block = Record::Block {
                from: 0,
                digests: vec![1, 2, 3],
            };
            bytes(&[Record::Run(run), block, sent(&[0])])
        };
        let created = line(&Record::Rows(RowState::Created(7), vec![0])).unwrap();
        for written in 1..created.len() {
            let filler = PAGE - content(0).len() - written;
            let interrupted = [&*content(filler), &created.as_bytes()[..written]].concat();
            assert_eq!(read(&interrupted, BOOT).unwrap().unknown(), [0]);
            for filler in [filler + 1, filler - PAGE / 2] {
                let damaged = [&*content(filler), &created.as_bytes()[..written]].concat();
                assert_eq!(read(&damaged, BOOT).unwrap().unknown(), [0, 1, 2]);
            }
        }
    }

    #[test]
    fn once_its_end_is_cut_off_no_row_without_an_outcome_is_left() {
        let whole = bytes(&records());
        for length in 1..=whole.len() {
            let mut state = State::read(&whole[..length], Some(BOOT)).unwrap();
            state.resize(5);
            assert!(
                state.is_truncated && !state.rows.iter().any(RowState::is_left),
                "{length}"
            );
        }
    }

    #[test]
    fn announced_rows_without_an_outcome_are_unknown() {
        let whole = bytes(&records()[..4]);
        let unknown = || RowState::Unknown;
        let expected = [RowState::Created(7), unknown(), unknown(), unknown()];
        assert_eq!(states(&whole, "another boot"), expected);
        let left = [
            RowState::Created(7),
            RowState::Left,
            RowState::Left,
            RowState::Left,
        ];
        assert_eq!(states(&whole, BOOT), left);
        let ended = bytes(&[&records()[..4], &[Record::End]].concat());
        assert_eq!(states(&ended, "another boot"), left);
    }

    #[test]
    fn rows_near_a_damaged_line_are_unknown_until_it_is_handled() {
        let whole = bytes(&records());
        for (at, bit) in (0..whole.len()).flat_map(|at| [(at, 1), (at, 0x20)]) {
            let mut damaged = whole.clone();
            damaged[at] ^= bit;
            let number = whole[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            let Some(state) = read(&damaged, BOOT) else {
                assert_eq!(number, 1, "without its first line it is not a journal");
                continue;
            };
            assert!(!state.damaged.is_empty() || state.is_cut, "{at}");
            for row in 0..3 {
                let is_left = state.rows.get(row).is_none_or(RowState::is_left);
                // If the announcement is damaged, only rows with records are known.
                assert!(!is_left || number == 3, "{at}: {row}");
            }
            if !state.is_cut {
                damaged.extend(line(&run(&state.damaged)).unwrap().bytes());
                assert_eq!(read(&damaged, BOOT).unwrap().damaged, [0; 0], "{at}");
                damaged.extend(b"more\n");
                assert_eq!(read(&damaged, BOOT).unwrap().damaged.len(), 1, "{at}");
            }
        }
    }

    #[test]
    fn a_foreign_file_is_not_a_journal() {
        for foreign in [
            "hello\n",
            "hello",
            "journal of petstore pets import, version 2\n",
        ] {
            assert_eq!(State::read(foreign.as_bytes(), None), None, "{foreign}");
        }
    }

    #[test]
    fn announced_rows_not_sent_are_left_for_the_next_run() {
        let first = [
            run(&[]),
            Record::Block {
                from: 0,
                digests: vec![1, 2, 3],
            },
        ];
        let state = |between: &[u8]| {
            let bytes = [
                &*bytes(&first),
                between,
                line(&run(&[])).unwrap().as_bytes(),
            ]
            .concat();
            State::read(&bytes, Some("another boot")).unwrap()
        };
        assert_eq!(state(b"").rows, vec![RowState::Left; 3]);
        assert_eq!(state(b"").digests, [Some(1), Some(2), Some(3)]);
        assert_eq!(state(b"damaged\n").rows, vec![RowState::Unknown; 3]);
    }
}
