//! The fields of a pet as they stand in CSV and JSON.

use std::collections::BTreeMap;
use std::num::IntErrorKind;

use csv::StringRecord;
use petstore_client::{NewPet, PetStatus};
use serde_json::value::RawValue;

const NAME: &str = "name";
const CATEGORY: &str = "categoryId";
pub(super) const STATUS: &str = "status";
pub(super) const FIELDS: [&str; 3] = [NAME, CATEGORY, STATUS];
/// The columns of exports, and of the files that an import writes. The service assigns new ids.
const IGNORED: [&str; 3] = ["id", "reason", "petId"];
/// The maximum length of a value in a message, in characters.
const MAX_SHOWN: usize = 40;

/// Returns whether a column or field is neither sent nor one of our own files.
pub(super) fn is_foreign(name: &str) -> bool {
    !FIELDS.contains(&name) && !IGNORED.contains(&name)
}

/// Returns the line of a byte position, from 1.
pub(super) fn line(text: &[u8], at: usize) -> usize {
    text[..at].iter().filter(|byte| **byte == b'\n').count() + 1
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

/// The values of a row, as they are written.
#[derive(Debug)]
pub(super) enum Fields<'t> {
    /// The header, and the record.
    Csv(&'t StringRecord, &'t StringRecord),
    Json(&'t BTreeMap<String, &'t RawValue>),
}

impl Fields<'_> {
    /// Returns the pet, or all that is wrong with its fields.
    pub(super) fn pet(&self) -> Result<NewPet, String> {
        match (self.name(), self.category_id(), self.status()) {
            (Ok(name), Ok(category_id), Ok(status)) => {
                let mut pet = NewPet::new(name, category_id);
                pet.status = status;
                Ok(pet)
            }
            (name, category_id, status) => {
                let mut problems = Vec::new();
                for (field, problem) in [
                    (NAME, name.err()),
                    (CATEGORY, category_id.err()),
                    (STATUS, status.err()),
                ] {
                    problems.extend(problem.map(|problem| format!("{field}: {problem}")));
                }
                Err(problems.join("; "))
            }
        }
    }

    /// Returns a value. An empty cell of CSV is none, and neither is `null`.
    fn get(&self, name: &str) -> Option<&str> {
        match self {
            Self::Csv(header, record) => {
                let column = header.iter().position(|other| other == name)?;
                record.get(column).filter(|cell| !cell.is_empty())
            }
            Self::Json(object) => {
                let value = object.get(name)?.get();
                Some(value).filter(|value| *value != "null")
            }
        }
    }

    /// Returns whether the row is from an export. Such a pet existed, so its values need fewer
    /// checks.
    fn has_id(&self) -> bool {
        self.get("id").is_some()
    }

    /// In JSON and in an export, a name may be empty.
    fn name(&self) -> Result<String, String> {
        match self.get(NAME) {
            Some(name) => self.text(name),
            None if matches!(self, Self::Csv(..)) && self.has_id() => Ok(String::new()),
            None => Err("missing".to_owned()),
        }
    }

    fn category_id(&self) -> Result<i64, String> {
        let raw = self.get(CATEGORY).ok_or("missing")?;
        raw.parse::<i64>().map_err(|error| {
            let problem = match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "out of range",
                _ => "not a whole number",
            };
            format!("`{}` is {problem}", shorten(raw))
        })
    }

    /// A status that the specification does not list is a mistake, unless the row was exported.
    fn status(&self) -> Result<Option<PetStatus>, String> {
        let Some(raw) = self.get(STATUS) else {
            return Ok(None);
        };
        let text = self.text(raw)?;
        let status = PetStatus::from(&*text);
        if status.is_known() || self.has_id() {
            return Ok(Some(status));
        }
        let shown = shorten(&text);
        Err(format!("`{shown}` is not available, pending or sold"))
    }

    /// Returns the text of a JSON string or of a CSV cell.
    fn text(&self, raw: &str) -> Result<String, String> {
        match self {
            Self::Csv(..) => Ok(raw.to_owned()),
            Self::Json(_) => {
                serde_json::from_str(raw).map_err(|_| format!("`{}` is not text", shorten(raw)))
            }
        }
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
