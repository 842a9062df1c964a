//! The rows of an input, and what is wrong with them.

use std::fmt;

use petstore_client::NewPet;
use serde_json::{Value, json};

/// The place of a row in its input, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The line on which the row starts.
    Line(usize),
    /// The number of the row, if several rows start on one line.
    Row(usize),
}

impl Place {
    /// Returns the unit that the number counts.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Line(_) => "line",
            Self::Row(_) => "row",
        }
    }

    pub(crate) fn number(self) -> usize {
        match self {
            Self::Line(number) | Self::Row(number) => number,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.unit(), self.number())
    }
}

/// A pet to create.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    place: Place,
    pet: NewPet,
}

impl Row {
    pub(crate) fn new(place: Place, pet: NewPet) -> Self {
        Self { place, pet }
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    pub(crate) fn pet(&self) -> &NewPet {
        &self.pet
    }

    /// Returns a checksum of the sent content, which detects changed rows.
    pub(crate) fn digest(&self) -> u32 {
        crc32fast::hash(&serde_json::to_vec(&self.pet).unwrap_or_default())
    }
}

/// An error in a row.
#[derive(Debug)]
pub(super) struct Fault {
    place: Place,
    field: Option<String>,
    problem: String,
}

impl Fault {
    pub(super) fn new(place: Place, field: Option<&str>, problem: impl Into<String>) -> Self {
        Self {
            place,
            field: field.map(str::to_owned),
            problem: problem.into(),
        }
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// Returns the error for programs.
    pub(super) fn json(&self) -> Value {
        let mut fields = json!({ self.place.unit(): self.place.number() });
        if let Some(field) = &self.field {
            fields["field"] = json!(field);
        }
        fields["problem"] = json!(self.problem);
        fields
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "{}, {field}: {}", self.place, self.problem),
            None => write!(f, "{}: {}", self.place, self.problem),
        }
    }
}
