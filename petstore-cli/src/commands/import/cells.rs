//! The fields of a pet in CSV and JSON, as they are written.

use std::collections::BTreeMap;
use std::str::FromStr;

use csv::StringRecord;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::error::Invalid;

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
            None => Err(Invalid::new(
                "names no field: use name, categoryId or status",
            )),
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
    pub(super) name: Option<&'t RawValue>,
    #[serde(borrow)]
    pub(super) category_id: Option<&'t RawValue>,
    #[serde(borrow)]
    pub(super) status: Option<&'t RawValue>,
    #[serde(borrow)]
    pub(super) id: Option<&'t RawValue>,
    #[serde(flatten)]
    pub(super) others: BTreeMap<String, IgnoredAny>,
}

/// The values of a row, as they are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cells<'t> {
    pub(super) name: Option<&'t str>,
    pub(super) category_id: Option<&'t str>,
    pub(super) status: Option<&'t str>,
    /// Whether the row has a pet's id, as in an export. Such a pet existed, so its values need
    /// fewer checks.
    pub(super) has_id: bool,
}

/// The columns of the fields of a pet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    pub(super) name: Option<usize>,
    pub(super) category_id: Option<usize>,
    pub(super) status: Option<usize>,
    pub(super) id: Option<usize>,
}

impl Columns {
    pub(super) fn cells(self, record: &StringRecord) -> Cells<'_> {
        let cell = |column: Option<usize>| record.get(column?);
        Cells {
            name: cell(self.name),
            category_id: cell(self.category_id),
            status: cell(self.status),
            has_id: cell(self.id).is_some_and(|id| !id.is_empty()),
        }
    }
}

pub(super) fn missing() -> String {
    "missing".to_owned()
}

pub(super) fn category_id(cells: Cells<'_>) -> Result<i64, String> {
    match cells.category_id {
        None | Some("") => Err(missing()),
        Some(raw) => {
            let problem = |_| format!("`{}` is not a whole number", shorten(raw));
            raw.parse().map_err(problem)
        }
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
