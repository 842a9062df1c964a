//! Pets, and how they are read from responses.

use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::status::PetStatus;
use super::{exact, extra_fields};

/// A pet as the service returns it (specification, section 2, `Pet`).
///
/// It works in flattened structs, in every kind of enum, and in every self-describing format of
/// serde, such as CBOR or MessagePack. It keeps the fields that this version does not know. If a
/// struct flattens several values, the pet must be the last of them: it keeps all fields that those
/// before it leave. Formats that are not self-describing, such as bincode and postcard, cannot write
/// or read it, and say so in an error.
///
/// # Numbers in unknown fields
///
/// Typed calls keep integers of 64 bits with all digits, and read fractions as the nearest `f64`.
/// They keep numbers that fit neither, longer integers for example, as text.
///
/// `Deserialize`, for raw requests and other formats, reads numbers as the format does. serde_json
/// may round the last digit of a fraction, rounds longer integers, and refuses numbers beyond the
/// range of `f64`. With its feature `arbitrary_precision`, it keeps every number as it was written,
/// also in typed calls. Binary formats then store numbers as 64-bit integers or `f64`.
///
/// ```
/// use petstore_client::Pet;
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Cached {
///     fetched_at: u64,
///     #[serde(flatten)]
///     pet: Pet,
/// }
///
/// let text = r#"{"fetched_at":5,"id":1,"name":"Rex","categoryId":7,"chip":{"no":9}}"#;
/// let cached: Cached = serde_json::from_str(text)?;
/// assert_eq!(cached.pet.extra["chip"]["no"], 9);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase", expecting = "a pet, a JSON object")]
pub struct Pet {
    /// The identifier that the service assigned on creation.
    pub id: i64,
    /// The name.
    pub name: String,
    /// The identifier of the pet's category.
    pub category_id: i64,
    /// The availability, if the service sends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PetStatus>,
    /// Fields that this version does not know, as sent. Serializing the pet writes them again, and
    /// fails if one has the name of a known field.
    #[serde(flatten, serialize_with = "Pet::write_extra")]
    pub extra: Map<String, Value>,
}

/// A pet to create (specification, section 2, `NewPet`).
///
/// ```
/// use petstore_client::{NewPet, PetStatus};
///
/// let rex = NewPet::new("Rex", 7).with_status(PetStatus::Pending);
/// assert_eq!(rex.category_id, 7);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase", expecting = "a pet, a JSON object")]
pub struct NewPet {
    /// The name. The specification sets no minimum length.
    pub name: String,
    /// The identifier of the pet's category.
    pub category_id: i64,
    /// The availability. The specification does not say what a missing value means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PetStatus>,
    /// Additional fields to send, which this version does not know. Serializing the pet fails if one
    /// has the name of a known field, and a call with it fails with
    /// [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest).
    #[serde(flatten, serialize_with = "NewPet::write_extra")]
    pub extra: Map<String, Value>,
}

impl Pet {
    /// The names of the fields in JSON, in order.
    ///
    /// ```
    /// use petstore_client::Pet;
    ///
    /// assert_eq!(Pet::FIELDS, ["id", "name", "categoryId", "status"]);
    /// ```
    pub const FIELDS: &'static [&'static str] = &["id", "name", "categoryId", "status"];

    fn write_extra<S: Serializer>(
        extra: &Map<String, Value>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        extra_fields::write(extra, Self::FIELDS, serializer)
    }
}

impl NewPet {
    /// Creates a pet with the two fields that the service requires.
    #[must_use]
    pub fn new(name: impl Into<String>, category_id: i64) -> Self {
        Self {
            name: name.into(),
            category_id,
            status: None,
            extra: Map::new(),
        }
    }

    /// Sets the availability.
    #[must_use]
    pub fn with_status(mut self, status: impl Into<PetStatus>) -> Self {
        self.status = Some(status.into());
        self
    }

    /// Sets a field that this version does not know. See [`extra`](Self::extra).
    #[must_use]
    pub fn with_field(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(name.into(), value.into());
        self
    }

    fn write_extra<S: Serializer>(
        extra: &Map<String, Value>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        // The service assigns the identifier.
        let known = &Pet::FIELDS[1..];
        extra_fields::write(extra, known, serializer)
    }

    /// Returns the pet that the service would create from this one with the identifier `id`. For
    /// tests, and for a program's own storage.
    ///
    /// ```
    /// use petstore_client::NewPet;
    ///
    /// let rex = NewPet::new("Rex", 7).into_pet(5);
    /// assert_eq!((rex.id, rex.category_id), (5, 7));
    /// ```
    #[must_use]
    pub fn into_pet(self, id: i64) -> Pet {
        let Self {
            name,
            category_id,
            status,
            extra,
        } = self;
        Pet {
            id,
            name,
            category_id,
            status,
            extra,
        }
    }
}

/// A pet in a response, with all digits of its numbers.
pub(crate) struct ReceivedPet(Pet);

impl ReceivedPet {
    pub(crate) fn into_pet(self) -> Pet {
        self.0
    }
}

impl<'de> Deserialize<'de> for ReceivedPet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PetVisitor)
    }
}

struct PetVisitor;

impl<'de> Visitor<'de> for PetVisitor {
    type Value = ReceivedPet;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pet, a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<ReceivedPet, A::Error> {
        let (mut id, mut name, mut category_id, mut status) = (None, None, None, None);
        let mut extra = Map::new();
        while let Some(field) = fields.next_key::<String>()? {
            match field.as_str() {
                "id" => read("id", &mut id, &mut fields)?,
                "name" => read("name", &mut name, &mut fields)?,
                "categoryId" => read("categoryId", &mut category_id, &mut fields)?,
                "status" => read("status", &mut status, &mut fields)?,
                _ => {
                    let json: &RawValue = fields.next_value()?;
                    extra.insert(field, exact::value(json));
                }
            }
        }
        let id = id.ok_or_else(|| A::Error::missing_field("id"))?;
        let name = name.ok_or_else(|| A::Error::missing_field("name"))?;
        let category_id = category_id.ok_or_else(|| A::Error::missing_field("categoryId"))?;
        let status: Option<Option<PetStatus>> = status;
        Ok(ReceivedPet(Pet {
            id,
            name,
            category_id,
            status: status.flatten(),
            extra,
        }))
    }
}

/// Reads the value of a field. Fails on a duplicate field.
fn read<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    name: &'static str,
    field: &mut Option<T>,
    fields: &mut A,
) -> Result<(), A::Error> {
    match field.replace(fields.next_value()?) {
        Some(_) => Err(A::Error::duplicate_field(name)),
        None => Ok(()),
    }
}
