//! A row of an input, and what is wrong with it.

use std::fmt;
use std::ops::Range;

use petstore_client::NewPet;
use sha2::{Digest as _, Sha256};

/// The maximum length of a value in a message, in characters.
const MAX_SHOWN: usize = 40;

/// The content of a row, in short. It binds the records of a journal to their rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Digest(u128);

impl Digest {
    /// The first half of the SHA-256 of the JSON with sorted keys.
    fn of(pet: &NewPet) -> Self {
        let mut fields = serde_json::to_value(pet).unwrap_or_default();
        fields.sort_all_objects();
        let hash = Sha256::digest(fields.to_string());
        let half = hash[..16].iter();
        Self(half.fold(0, |number, byte| number << 8 | u128::from(*byte)))
    }

    pub(in super::super) fn parse(text: &str) -> Option<Self> {
        u128::from_str_radix(text, 16).ok().map(Self)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Something that is wrong with a row.
#[derive(Debug)]
pub(super) struct Fault {
    field: Option<String>,
    text: String,
}

impl Fault {
    /// Describes a row that cannot be read.
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self {
            field: None,
            text: text.into(),
        }
    }

    /// Describes a wrong field.
    pub(super) fn of_field(field: &str, text: impl Into<String>) -> Self {
        Self {
            field: Some(field.to_owned()),
            text: text.into(),
        }
    }

    pub(super) fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "{field}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// A row of an input.
#[derive(Debug)]
pub(in super::super) struct Row {
    /// The line on which it starts.
    line: usize,
    /// Where it stands in the text.
    span: Range<usize>,
    /// The pet to create, with its digest, or what is wrong with the row.
    pet: Result<(NewPet, Digest), Vec<Fault>>,
}

impl Row {
    pub(super) fn new(line: usize, span: Range<usize>, pet: Result<NewPet, Vec<Fault>>) -> Self {
        let pet = pet.map(|pet| {
            let digest = Digest::of(&pet);
            (pet, digest)
        });
        Self { line, span, pet }
    }

    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// Returns the row as it stands in the input.
    pub(super) fn text<'t>(&self, input: &'t str) -> &'t str {
        &input[self.span.clone()]
    }

    /// Returns the pet to create; `None` if the row is invalid.
    pub(in super::super) fn pet(&self) -> Option<&NewPet> {
        self.pet.as_ref().ok().map(|(pet, _)| pet)
    }

    pub(in super::super) fn digest(&self) -> Option<Digest> {
        self.pet.as_ref().ok().map(|(_, digest)| *digest)
    }

    pub(super) fn faults(&self) -> &[Fault] {
        match &self.pet {
            Ok(_) => &[],
            Err(faults) => faults,
        }
    }
}

/// The rows of a text, and the columns or fields that are ignored.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) rows: Vec<Row>,
    pub(super) ignored: Vec<String>,
}

/// The byte positions at which the lines of a text start.
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(breaks).collect())
    }

    /// Returns the line of a byte position, from 1.
    pub(super) fn number(&self, at: usize) -> usize {
        self.0.partition_point(|start| *start <= at)
    }
}

/// Returns the start of a value, for a message.
pub(super) fn shorten(text: &str) -> String {
    let cut: String = text.chars().take(MAX_SHOWN).collect();
    if cut.len() < text.len() {
        cut + "…"
    } else {
        cut
    }
}

#[cfg(test)]
mod tests {
    use petstore_client::Pet;

    use super::*;

    #[test]
    fn the_digest_of_a_row_depends_on_each_field() {
        let row = serde_json::json!({ "name": "Rex", "categoryId": 7, "status": "sold" });
        let digest =
            |row: &serde_json::Value| Digest::of(&serde_json::from_value(row.clone()).unwrap());
        let first = digest(&row);
        for field in &Pet::FIELDS[1..] {
            let mut other = row.clone();
            other[field] = match row[field].is_string() {
                true => "pending".into(),
                false => 8.into(),
            };
            assert_ne!(digest(&other), first, "{field}");
        }
        assert_eq!(Digest::parse(&first.to_string()), Some(first));
        let sorted = r#"{"categoryId":7,"name":"Rex","status":"sold"}"#;
        let hash = Sha256::digest(sorted);
        assert!(
            first
                .to_string()
                .starts_with(&format!("{:02x}{:02x}", hash[0], hash[1]))
        );
    }
}
