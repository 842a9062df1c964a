//! The animals of the service, as the specification's section 2 describes them. What is checked when
//! one arrives over HTTP is left to `extract`, and what is checked in a seed to `seed`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

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
pub enum PetStatus {
    /// It is for sale.
    Available,
    /// Its sale is under way.
    Pending,
    /// It has gone to a new home.
    Sold,
}

impl PetStatus {
    /// Every status, in the order of the specification.
    pub(crate) const ALL: [Self; 3] = [Self::Available, Self::Pending, Self::Sold];

    /// Returns the status as the service writes it: `available`, `pending` or `sold`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Pending => "pending",
            Self::Sold => "sold",
        }
    }
}

impl fmt::Display for PetStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text is none of `available`, `pending` and `sold`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a status is one of available, pending, sold")]
pub struct ParsePetStatusError;

impl FromStr for PetStatus {
    type Err = ParsePetStatusError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or(ParsePetStatusError)
    }
}

/// An animal that is to be added, checked already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewPet {
    pub(crate) name: String,
    pub(crate) category_id: i64,
    pub(crate) status: Option<PetStatus>,
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

impl Pet {
    pub(crate) fn new(id: i64, pet: NewPet) -> Self {
        let NewPet { name, category_id, status } = pet;
        Self { id, name, category_id, status }
    }
}
