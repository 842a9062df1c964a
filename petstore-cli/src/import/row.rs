//! The rows of an input, and what is wrong with them.

use std::fmt;
use std::ops::Range;

use petstore_client::NewPet;

/// A pet to be added, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// The line that it begins on, from 1.
    pub(crate) line: usize,
    /// Its bytes in the input.
    pub(crate) span: Range<usize>,
    pub(crate) pet: NewPet,
}

/// What is wrong at one place of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// From 1.
    pub(crate) line: usize,
    /// From 1: the character in the line, or the field of a CSV row.
    pub(crate) column: usize,
    pub(crate) problem: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.problem)
    }
}

/// Where the lines of a text begin.
#[derive(Debug)]
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// Returns the line of a byte, from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    /// Complains of what stands at a byte.
    pub(super) fn complain(&self, at: usize, problem: impl Into<String>) -> Complaint {
        let line = self.line(at);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start..at).unwrap_or_default();
        Complaint { line, column: before.chars().count() + 1, problem: problem.into() }
    }

    /// Complains of what a JSON parser stumbled over in a part of the text.
    pub(super) fn complain_of_json(&self, from: usize, error: &serde_json::Error) -> Complaint {
        let part = self.text.get(from..).unwrap_or_default();
        // The parser counts lines from 1, and bytes of the line.
        let line_start = part.split_inclusive('\n').take(error.line().saturating_sub(1));
        let offset = line_start.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
        let mut at = (from + offset).min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let text = error.to_string();
        let problem = text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem);
        self.complain(at, format!("this is no JSON: {problem}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lines_and_characters_from_one() {
        let lines = Lines::of("ab\nžluťoučký x\n");
        assert_eq!(lines.complain(0, "").to_string(), "line 1, column 1: ");
        let x = "ab\nžluťoučký x\n".find('x').unwrap();
        assert_eq!(lines.complain(x, "here").to_string(), "line 2, column 11: here");
    }
}
