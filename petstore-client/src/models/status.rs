//! The availability of a pet.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The availability of a pet (specification, section 2, `PetStatus`).
///
/// Values that this version does not know are kept as text, so that responses with a new status can
/// be decoded and written back.
///
/// ```
/// use petstore_client::PetStatus;
///
/// assert_eq!(PetStatus::from("sold"), PetStatus::Sold);
/// assert_eq!(PetStatus::from("adopted").as_str(), "adopted");
/// assert!(!PetStatus::from("adopted").is_known());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[non_exhaustive]
#[serde(from = "String")]
pub enum PetStatus {
    /// The pet can be bought.
    Available,
    /// The pet is reserved.
    Pending,
    /// The pet has been sold.
    Sold,
    /// A value that the specification does not list, as sent.
    ///
    /// Create a status with [`PetStatus::from`], which never creates this variant for a listed
    /// value.
    Unknown(String),
}

impl PetStatus {
    /// The values that the specification lists, in order.
    pub const KNOWN: &'static [Self] = &[Self::Available, Self::Pending, Self::Sold];

    /// Returns the value as the service writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Available => "available",
            Self::Pending => "pending",
            Self::Sold => "sold",
            Self::Unknown(text) => text,
        }
    }

    /// Returns whether the specification lists this value.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Unknown(_))
    }
}

impl From<String> for PetStatus {
    fn from(text: String) -> Self {
        match Self::KNOWN.iter().find(|known| known.as_str() == text) {
            Some(known) => known.clone(),
            None => Self::Unknown(text),
        }
    }
}

impl From<&str> for PetStatus {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl FromStr for PetStatus {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::from(text))
    }
}

impl fmt::Display for PetStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for PetStatus {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
