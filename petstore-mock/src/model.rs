//! The animals of the service: the specification's section 2.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumCount, EnumString, VariantNames};

/// Whether an animal can be had.
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
    /// It is for sale.
    Available,
    /// It is being sold.
    Pending,
    /// It has gone to a new home.
    Sold,
}

/// A pet that is to be added, by a seed, a test or a request.
///
/// ```
/// use petstore_mock::{SeedPet, PetStatus};
///
/// let rex = SeedPet::new("Rex", 7).with_id(42).with_status(PetStatus::Pending);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SeedPet {
    /// Nothing for the next id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<i64>,
    pub(crate) name: String,
    pub(crate) category_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<PetStatus>,
}

impl SeedPet {
    /// Returns an animal without a status, which gets the next id.
    #[must_use]
    pub fn new(name: impl Into<String>, category_id: i64) -> Self {
        Self { id: None, name: name.into(), category_id, status: None }
    }

    /// Sets the id.
    #[must_use]
    pub fn with_id(self, id: i64) -> Self {
        Self { id: Some(id), ..self }
    }

    /// Sets the status.
    #[must_use]
    pub fn with_status(self, status: PetStatus) -> Self {
        Self { status: Some(status), ..self }
    }
}

/// An animal of the store, as the service returns it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Pet {
    /// The identifier it was given when it was added.
    pub id: i64,
    /// The animal's name.
    pub name: String,
    /// The category it belongs to.
    pub category_id: i64,
    /// Whether it can be had; left out of the JSON where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PetStatus>,
}
