//! Pets.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::extra_fields;
use super::status::PetStatus;

/// A pet as the service returns it (specification, section 2, `Pet`).
///
/// It keeps the fields that this version does not know, their numbers as serde_json reads them. In a
/// struct that flattens several values, the pet must be the last of them. Formats that are not
/// self-describing, such as bincode and postcard, cannot write or read it.
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
