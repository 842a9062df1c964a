//! The availability of an animal: the specification's `PetStatus`.
//!
//! Values the specification does not know yet survive a round trip; nothing is refused here.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The availability of a pet (specification, section 2, `PetStatus`).
///
/// A value that this version of the client does not know is kept as text, so that a response
/// with a new status still decodes and writes back what it read.
///
/// ```
/// use petstore_client::PetStatus;
///
/// assert_eq!(PetStatus::from("sold"), PetStatus::Sold);
/// assert_eq!(PetStatus::from("adopted").as_str(), "adopted");
/// assert!(!PetStatus::from("adopted").is_known());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PetStatus {
    /// The pet can be bought.
    Available,
    /// The pet is reserved.
    Pending,
    /// The pet has been sold.
    Sold,
    /// A value that the specification does not list, as the service sent it.
    ///
    /// Build a status with [`PetStatus::from`], which never puts a listed value in here.
    Unknown(String),
}

impl PetStatus {
    /// The values that the specification lists, in its order.
    pub const KNOWN: [Self; 3] = [Self::Available, Self::Pending, Self::Sold];

    /// Returns the value as it travels.
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

impl From<&str> for PetStatus {
    fn from(text: &str) -> Self {
        match text {
            "available" => Self::Available,
            "pending" => Self::Pending,
            "sold" => Self::Sold,
            other => Self::Unknown(other.to_owned()),
        }
    }
}

impl From<String> for PetStatus {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl fmt::Display for PetStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for PetStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for PetStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl serde::de::Visitor<'_> for Visitor {
            type Value = PetStatus;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a status such as `available`, `pending` or `sold`")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<PetStatus, E> {
                Ok(PetStatus::from(text))
            }
        }

        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_an_unknown_status_back_as_it_came() {
        let status: PetStatus = serde_json::from_str(r#""on \u0001 loan""#).unwrap();
        assert_eq!(status, PetStatus::Unknown("on \u{1} loan".into()));
        assert_eq!(serde_json::to_string(&status).unwrap(), r#""on \u0001 loan""#);
    }

    #[test]
    fn a_listed_value_never_becomes_unknown() {
        for status in PetStatus::KNOWN {
            assert_eq!(PetStatus::from(status.as_str()), status);
        }
    }
}
