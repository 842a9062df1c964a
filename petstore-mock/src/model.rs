//! The resources of the service (specification, section 2).

use serde::{Deserialize, Serialize};

use crate::text::named;

/// The availability of a pet.
///
/// ```
/// use petstore_mock::PetStatus;
///
/// assert_eq!("pending".parse(), Ok(PetStatus::Pending));
/// let problem = "lost".parse::<PetStatus>().unwrap_err();
/// assert_eq!(problem.to_string(), "choose one of available, pending, sold");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PetStatus {
    /// The pet can be bought.
    Available,
    /// The pet is reserved.
    Pending,
    /// The pet has been sold.
    Sold,
}

named!(PetStatus);

/// A pet to add, from a seed, a test or a request.
///
/// ```
/// use petstore_mock::{SeedPet, PetStatus};
///
/// let rex = SeedPet::new("Rex", 7).with_id(42).with_status(PetStatus::Pending);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SeedPet {
    /// `None` for the next id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<i64>,
    pub(crate) name: String,
    pub(crate) category_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<PetStatus>,
}

impl SeedPet {
    /// Creates a pet without a status, which gets the next id.
    #[must_use]
    pub fn new(name: impl Into<String>, category_id: i64) -> Self {
        Self {
            id: None,
            name: name.into(),
            category_id,
            status: None,
        }
    }

    /// Sets the id.
    #[must_use]
    pub fn with_id(self, id: i64) -> Self {
        Self {
            id: Some(id),
            ..self
        }
    }

    /// Sets the status.
    #[must_use]
    pub fn with_status(self, status: PetStatus) -> Self {
        Self {
            status: Some(status),
            ..self
        }
    }

    /// Returns the pet to store. Its id is `id`, whatever id it had.
    pub(crate) fn into_pet(self, id: i64) -> Pet {
        let Self {
            id: _,
            name,
            category_id,
            status,
        } = self;
        Pet {
            id,
            name,
            category_id,
            status,
        }
    }
}

/// A pet of the store, as the service returns it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Pet {
    /// The identifier, assigned on creation.
    pub id: i64,
    /// The name.
    pub name: String,
    /// The identifier of the category.
    pub category_id: i64,
    /// The availability; absent from the JSON if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PetStatus>,
}

#[cfg(test)]
impl Pet {
    /// The names of the fields in JSON, in order.
    pub(crate) const FIELDS: [&str; 4] = ["id", "name", "categoryId", "status"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_written_and_read() {
        let seed = SeedPet {
            id: None,
            name: "Rex".to_owned(),
            category_id: 7,
            status: Some(PetStatus::Sold),
        };
        let pet = seed.into_pet(1);
        assert!(!format!("{pet:?}").contains("None"), "give it each field");
        let text = serde_json::to_string(&pet).unwrap();
        assert_eq!(text.matches("\":").count(), Pet::FIELDS.len(), "{text}");
        assert_eq!(serde_json::from_str::<Pet>(&text).unwrap(), pet);
    }

    #[test]
    fn the_inspector_can_set_each_field_of_a_new_pet() {
        let page = include_str!("http/admin/inspector/page.html");
        let (_, form) = page.split_once("<form id=\"new-pet\"").unwrap();
        let (form, _) = form.split_once("</form>").unwrap();
        for field in &Pet::FIELDS[1..] {
            assert!(form.contains(&format!("name=\"{field}\"")), "{field}");
        }
    }
}
