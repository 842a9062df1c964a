//! The service's resources as they travel (specification, section 2).

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A pet as the service returns it (specification, section 2, `Pet`).
///
/// Fields that this version does not know are ignored when reading.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Pet {
    /// The identifier that the service gave the pet when it was added.
    pub id: i64,
    /// The animal's name.
    pub name: String,
    /// The identifier of the category the animal belongs to.
    pub category_id: i64,
    /// The availability, where the service tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PetStatus>,
}

/// A pet to add (specification, section 2, `NewPet`).
///
/// ```
/// use petstore_client::{NewPet, PetStatus};
///
/// let rex = NewPet::new("Rex", 7).with_status(PetStatus::Pending);
/// assert_eq!(rex.category_id, 7);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct NewPet {
    /// The animal's name. The specification sets no minimum length.
    pub name: String,
    /// The identifier of the category the animal belongs to.
    pub category_id: i64,
    /// The availability. What the service assumes when it is left out is not specified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PetStatus>,
}

impl NewPet {
    /// Creates a pet with the two fields that the service requires.
    #[must_use]
    pub fn new(name: impl Into<String>, category_id: i64) -> Self {
        Self { name: name.into(), category_id, status: None }
    }

    /// Sets the availability.
    #[must_use]
    pub fn with_status(mut self, status: PetStatus) -> Self {
        self.status = Some(status);
        self
    }
}

impl<'de> Deserialize<'de> for Pet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct PetFields {
            id: i64,
            name: String,
            category_id: i64,
            status: Option<PetStatus>,
        }

        let PetFields { id, name, category_id, status } = object(deserializer, "a pet")?;
        Ok(Self { id, name, category_id, status })
    }
}

impl<'de> Deserialize<'de> for NewPet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct NewPetFields {
            name: String,
            category_id: i64,
            status: Option<PetStatus>,
        }

        let NewPetFields { name, category_id, status } = object(deserializer, "a pet")?;
        Ok(Self { name, category_id, status })
    }
}

/// Reads a value from a map; `what` names it where something else comes.
fn object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    what: &'static str,
) -> Result<T, D::Error> {
    deserializer.deserialize_map(ObjectVisitor { what, value: PhantomData })
}

struct ObjectVisitor<T> {
    what: &'static str,
    value: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, a JSON object", self.what)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

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
    fn leaves_an_absent_status_out_of_the_body() {
        let body = serde_json::to_string(&NewPet::new("Rex", 7)).unwrap();
        assert_eq!(body, r#"{"name":"Rex","categoryId":7}"#);
    }

    #[test]
    fn reads_the_whole_int64_range_and_ignores_unknown_fields() {
        let pet: Pet = serde_json::from_str(
            r#"{"id":-9223372036854775808,"name":"","categoryId":9223372036854775807,"chip":[1]}"#,
        )
        .unwrap();
        assert_eq!((pet.id, pet.category_id), (i64::MIN, i64::MAX));
        assert_eq!(pet.status, None);
    }

    #[test]
    fn an_array_is_no_pet() {
        let problem = serde_json::from_str::<NewPet>(r#"["Rex",7]"#).unwrap_err();
        assert!(problem.to_string().contains("expected a pet, a JSON object"), "{problem}");
        assert!(serde_json::from_str::<Pet>(r#"[1,"Rex",7,"sold"]"#).is_err());
    }

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
