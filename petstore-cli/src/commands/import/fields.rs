//! The fields of a pet as they stand in CSV and JSON, and what is wrong with them.

use std::collections::BTreeMap;

use csv::StringRecord;
use petstore_client::{NewPet, PetStatus};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::error::Invalid;

/// The maximum length of a value in a message, in characters.
const MAX_SHOWN: usize = 40;

pub(super) const NAME: &str = "name";
pub(super) const CATEGORY: &str = "categoryId";
const STATUS: &str = "status";
pub(super) const FIELDS: [&str; 3] = [NAME, CATEGORY, STATUS];

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
    others: BTreeMap<String, IgnoredAny>,
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

    /// Returns the names of the fields that are not those of a pet.
    pub(super) fn others(&self) -> impl Iterator<Item = &str> {
        self.others.keys().map(String::as_str)
    }
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
        let column = |name: &str| header.iter().position(|other| other == name);
        Self {
            name: column(NAME),
            category_id: column(CATEGORY),
            status: column(STATUS),
            id: column("id"),
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

/// A field, and what is wrong with it.
pub(super) type WrongField = (&'static str, String);

impl Cells<'_> {
    /// Returns the pet, or all that is wrong with its fields.
    pub(super) fn pet(self) -> Result<NewPet, Vec<WrongField>> {
        match (self.name(), self.category_id(), self.status()) {
            (Ok(name), Ok(category_id), Ok(status)) => {
                let mut pet = NewPet::new(name, category_id);
                pet.status = status;
                Ok(pet)
            }
            (name, category_id, status) => {
                let mut wrong = Vec::new();
                wrong.extend(name.err().map(|problem| (NAME, problem)));
                wrong.extend(category_id.err().map(|problem| (CATEGORY, problem)));
                wrong.extend(status.err().map(|problem| (STATUS, problem)));
                Err(wrong)
            }
        }
    }

    /// An empty cell of CSV counts as a missing name. In JSON and in an export, a name may be
    /// empty.
    fn name(self) -> Result<String, String> {
        match self.name {
            Some("") if !self.are_json && !self.has_id => Err("missing".to_owned()),
            Some(name) => self.text(name),
            None => Err("missing".to_owned()),
        }
    }

    fn category_id(self) -> Result<i64, String> {
        match self.category_id {
            None | Some("") => Err("missing".to_owned()),
            Some(raw) => raw
                .parse()
                .map_err(|error| format!("`{}` {}", shorten(raw), Invalid::from(error))),
        }
    }

    /// A status that the specification does not list is a mistake, unless the row was exported.
    fn status(self) -> Result<Option<PetStatus>, String> {
        let Some(raw) = self.status.filter(|cell| !cell.is_empty()) else {
            return Ok(None);
        };
        let text = self.text(raw)?;
        let status = PetStatus::from(&*text);
        if status.is_known() || self.has_id {
            return Ok(Some(status));
        }
        Err(format!(
            "`{}` is not available, pending or sold",
            shorten(&text)
        ))
    }

    /// Returns the text of a JSON string or of a CSV cell.
    fn text(self, raw: &str) -> Result<String, String> {
        if !self.are_json {
            return Ok(raw.to_owned());
        }
        serde_json::from_str(raw).map_err(|_| format!("`{}` is not text", shorten(raw)))
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
    fn an_import_reads_each_field_of_a_pet_but_the_id() {
        assert_eq!(Pet::FIELDS[0], "id");
        assert_eq!(Pet::FIELDS[1..], FIELDS);
    }
}
