//! The fields of a pet in CSV and JSON, as they are written.

use std::collections::BTreeMap;
use std::str::FromStr;

use csv::StringRecord;
use petstore_client::{NewPet, PetStatus};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::error::{Invalid, either};

/// The maximum length of a value in a message, in characters.
const MAX_SHOWN: usize = 40;

pub(super) const NAME: &str = "name";
pub(super) const CATEGORY: &str = "categoryId";
pub(super) const STATUS: &str = "status";
pub(super) const FIELDS: [&str; 3] = [NAME, CATEGORY, STATUS];

/// `COLUMN=FIELD`: the field that a column of CSV contains, if the column has another name.
#[derive(Debug, Clone)]
pub(crate) struct Mapping {
    pub(super) column: String,
    pub(super) field: &'static str,
}

impl FromStr for Mapping {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let Some((column, field)) = text.rsplit_once('=') else {
            return Err(Invalid::new("is not COLUMN=FIELD").hint("such as `--map Kind=categoryId`"));
        };
        match FIELDS.into_iter().find(|known| *known == field) {
            Some(field) => Ok(Self {
                column: column.to_owned(),
                field,
            }),
            None => {
                let fields = either(&FIELDS.map(str::to_owned));
                Err(Invalid::new(format!("names no field: use {fields}")))
            }
        }
    }
}

/// Splits text into JSON values: those of an array, or concatenated values.
pub(super) fn json_values(text: &str) -> serde_json::Result<Vec<&RawValue>> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text);
    }
    serde_json::Deserializer::from_str(text)
        .into_iter()
        .collect()
}

/// The fields of a JSON object. A repeated field is an error.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Object<'t> {
    #[serde(borrow)]
    name: Option<&'t RawValue>,
    #[serde(borrow)]
    category_id: Option<&'t RawValue>,
    #[serde(borrow)]
    status: Option<&'t RawValue>,
    #[serde(borrow)]
    id: Option<&'t RawValue>,
    #[serde(flatten)]
    pub(super) others: BTreeMap<String, IgnoredAny>,
}

impl<'t> Object<'t> {
    pub(super) fn cells(&self) -> Cells<'t> {
        Cells {
            name: self.name.map(RawValue::get),
            category_id: self.category_id.map(RawValue::get),
            status: self.status.map(RawValue::get),
            has_id: self.id.is_some(),
            are_json: true,
        }
    }
}

/// The values of a row, as they are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cells<'t> {
    name: Option<&'t str>,
    category_id: Option<&'t str>,
    status: Option<&'t str>,
    /// Whether the row has a pet's id, as in an export. Such a pet existed, so its values need
    /// fewer checks.
    has_id: bool,
    are_json: bool,
}

/// What is wrong with a field of a row.
#[derive(Debug)]
pub(super) struct WrongField {
    pub(super) field: &'static str,
    pub(super) problem: String,
}

/// The columns of the fields of a pet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    name: Option<usize>,
    category_id: Option<usize>,
    status: Option<usize>,
    id: Option<usize>,
}

impl Columns {
    pub(super) fn of(header: &StringRecord) -> Self {
        Self {
            name: column(header, NAME),
            category_id: column(header, CATEGORY),
            status: column(header, STATUS),
            id: column(header, "id"),
        }
    }

    pub(super) fn cells(self, record: &StringRecord) -> Cells<'_> {
        let cell = |column: Option<usize>| record.get(column?);
        Cells {
            name: cell(self.name),
            category_id: cell(self.category_id),
            status: cell(self.status),
            has_id: cell(self.id).is_some_and(|id| !id.is_empty()),
            are_json: false,
        }
    }
}

/// Returns the number of a column.
pub(super) fn column(header: &StringRecord, name: &str) -> Option<usize> {
    header.iter().position(|other| other == name)
}

impl Cells<'_> {
    /// Returns the pet, or all that is wrong with its fields.
    pub(super) fn pet(self) -> Result<NewPet, Vec<WrongField>> {
        let mut wrong = Vec::new();
        let name = right(NAME, self.name(), &mut wrong);
        let category_id = right(CATEGORY, self.category_id(), &mut wrong);
        let status = right(STATUS, self.status(), &mut wrong);
        let (Some(name), Some(category_id), Some(status)) = (name, category_id, status) else {
            return Err(wrong);
        };
        let mut pet = NewPet::new(name, category_id);
        pet.status = status;
        Ok(pet)
    }

    /// An empty cell of CSV counts as a missing name. In JSON and in an export, a name may be
    /// empty.
    fn name(self) -> Result<String, String> {
        match self.name {
            Some("") if !self.are_json && !self.has_id => Err(missing()),
            Some(name) => self.text(name),
            None => Err(missing()),
        }
    }

    fn category_id(self) -> Result<i64, String> {
        match self.category_id {
            None | Some("") => Err(missing()),
            Some(raw) => {
                let problem = |error| format!("`{}` {}", shorten(raw), Invalid::from(error));
                raw.parse().map_err(problem)
            }
        }
    }

    /// A status that the specification does not list is a mistake, unless the row was exported.
    fn status(self) -> Result<Option<PetStatus>, String> {
        let Some(text) = self.status.filter(|cell| !cell.is_empty()) else {
            return Ok(None);
        };
        let text = self.text(text)?;
        match PetStatus::from(&*text) {
            status if status.is_known() || self.has_id => Ok(Some(status)),
            _ => {
                let text = shorten(&text);
                Err(format!("`{text}` is not available, pending or sold"))
            }
        }
    }

    /// Returns the text of a JSON string or of a CSV cell.
    fn text(self, raw: &str) -> Result<String, String> {
        if !self.are_json {
            return Ok(raw.to_owned());
        }
        serde_json::from_str(raw).map_err(|_| format!("`{}` is not text", shorten(raw)))
    }
}

/// Returns the value of a field, or adds what is wrong with it.
fn right<T>(
    field: &'static str,
    value: Result<T, String>,
    wrong: &mut Vec<WrongField>,
) -> Option<T> {
    match value {
        Ok(value) => Some(value),
        Err(problem) => {
            wrong.push(WrongField { field, problem });
            None
        }
    }
}

fn missing() -> String {
    "missing".to_owned()
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
    fn an_import_reads_each_field_of_a_pet_but_the_id() {
        assert_eq!(Pet::FIELDS[0], "id");
        assert_eq!(Pet::FIELDS[1..], FIELDS);
    }
}
