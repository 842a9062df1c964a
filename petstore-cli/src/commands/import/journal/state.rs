//! The content of a journal: the state of each row, which follows from the records.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;

use super::history::{History, IdWindows};
use super::record::{Checked, HEADER, Record, RowState, Run, millis, parse};

/// The smallest page size of an operating system. A write that a kill interrupts ends at a page.
const PAGE: usize = 4_096;

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
    /// The absolute paths of the output files of earlier runs of this import.
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
            if HEADER.starts_with(content) {
                return Some(state);
            }
            return None;
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

    /// Fits the states to the rows of the input. Adds those that the journal does not contain, and
    /// drops those that the input no longer contains.
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

    /// Returns whether an earlier run of this import wrote a file with this absolute path.
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
