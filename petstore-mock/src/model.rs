//! The resources of the service (specification, section 2).

use serde::{Deserialize, Serialize};
use strum::{Display, EnumCount, EnumString, VariantNames};

/// The availability of a pet.
///
/// ```
/// use petstore_mock::PetStatus;
///
/// assert_eq!("pending".parse(), Ok(PetStatus::Pending));
/// assert!("lost".parse::<PetStatus>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(Display, EnumCount, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum PetStatus {
    /// The pet can be bought.
    Available,
    /// The pet is reserved.
    Pending,
    /// The pet has been sold.
    Sold,
}

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
