//! The service's resources (specification, section 2).

pub(crate) mod exact;

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A pet as the service returns it (specification, section 2, `Pet`).
///
/// It can be part of any type and format of serde that describes itself, such as a flattened struct, a
/// tagged enum, CBOR or MessagePack, with the fields that this version does not know.
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
    /// Fields that this version does not know, as sent. Serializing the pet writes them again. In
    /// responses, numbers beyond the range of `f64` are kept as text.
    #[serde(flatten)]
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
    /// Additional fields to send, which this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
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
    pub fn with_status(mut self, status: PetStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// Sets a field that this version does not know.
    #[must_use]
    pub fn with_field(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(name.into(), value.into());
        self
    }

    /// Returns the pet that the service creates of it under this identifier, for tests and for a
    /// program's own storage.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_an_absent_status_out_of_the_body() {
        let body = serde_json::to_string(&NewPet::new("Rex", 7)).unwrap();
        assert_eq!(body, r#"{"name":"Rex","categoryId":7}"#);
    }

    #[test]
    fn reads_the_whole_int64_range() {
        let pet: Pet = serde_json::from_str(
            r#"{"id":-9223372036854775808,"name":"","categoryId":9223372036854775807}"#,
        )
        .unwrap();
        assert_eq!((pet.id, pet.category_id), (i64::MIN, i64::MAX));
        assert_eq!(pet.status, None);
    }

    #[test]
    fn fields_that_are_not_known_survive() {
        let text = r#"{"id":1,"name":"Rex","categoryId":7,"status":"adopted","chip":{"no":[1]}}"#;
        let pet: Pet = serde_json::from_str(text).unwrap();
        assert_eq!(pet.extra["chip"]["no"], serde_json::json!([1]));
        assert_eq!(serde_json::to_string(&pet).unwrap(), text);
        let new = NewPet::new("Rex", 7).with_field("chip", 9);
        let text = r#"{"name":"Rex","categoryId":7,"chip":9}"#;
        assert_eq!(serde_json::to_string(&new).unwrap(), text);
        assert_eq!(serde_json::from_str::<NewPet>(text).unwrap(), new);
    }

    /// The containers and formats of a program around a pet.
    mod containers {
        use std::fmt::Debug;

        use serde::de::DeserializeOwned;

        use super::*;

        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Flattened {
            fetched_at: u64,
            #[serde(flatten)]
            pet: Pet,
        }

        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        enum InternallyTagged {
            Pet(Pet),
        }

        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        #[serde(untagged)]
        enum Untagged {
            Number(u64),
            Pet(Pet),
        }

        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", content = "content")]
        enum AdjacentlyTagged {
            Pet(Pet),
        }

        fn rex() -> Pet {
            let rex = NewPet::new("Rex", 7).with_status("adopted".into());
            rex.with_field("chip", serde_json::json!({"no": [9, -1.5, null]}))
                .into_pet(i64::MIN)
        }

        fn survives<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
            let json = serde_json::to_vec(value).unwrap();
            assert_eq!(serde_json::from_slice::<T>(&json).unwrap(), *value);
            let as_value = serde_json::to_value(value).unwrap();
            assert_eq!(serde_json::from_value::<T>(as_value).unwrap(), *value);
            let mut cbor = Vec::new();
            ciborium::into_writer(value, &mut cbor).unwrap();
            assert_eq!(ciborium::from_reader::<T, _>(&cbor[..]).unwrap(), *value);
            let packed = rmp_serde::to_vec_named(value).unwrap();
            assert_eq!(rmp_serde::from_slice::<T>(&packed).unwrap(), *value);
        }

        #[test]
        fn a_pet_survives_each_container_in_each_format_that_describes_itself() {
            survives(&rex());
            survives(&vec![Some(rex()), None]);
            survives(&InternallyTagged::Pet(rex()));
            survives(&Untagged::Pet(rex()));
            survives(&AdjacentlyTagged::Pet(rex()));
            survives(&Flattened {
                fetched_at: 5,
                pet: rex(),
            });
        }

        #[test]
        fn the_content_may_come_before_the_tag() {
            let pet = serde_json::to_string(&rex()).unwrap();
            let text = format!(r#"{{"content":{pet},"kind":"Pet"}}"#);
            let read: AdjacentlyTagged = serde_json::from_str(&text).unwrap();
            assert_eq!(read, AdjacentlyTagged::Pet(rex()));
        }

        #[test]
        fn a_format_that_does_not_describe_itself_is_refused_and_loses_nothing() {
            let error = postcard::to_allocvec(&rex()).unwrap_err();
            assert_eq!(error, postcard::Error::SerializeSeqLengthUnknown);
            postcard::from_bytes::<Pet>(&[1, 3, b'R', b'e', b'x', 14]).unwrap_err();
        }
    }

    #[test]
    fn an_array_is_not_a_pet() {
        let problem = serde_json::from_str::<NewPet>(r#"["Rex",7]"#).unwrap_err();
        assert!(
            problem
                .to_string()
                .contains("expected a pet, a JSON object"),
            "{problem}"
        );
        assert!(serde_json::from_str::<Pet>(r#"[1,"Rex",7,"sold"]"#).is_err());
    }

    #[test]
    fn writes_an_unknown_status_back_unchanged() {
        let status: PetStatus = serde_json::from_str(r#""on \u0001 loan""#).unwrap();
        assert_eq!(status, PetStatus::Unknown("on \u{1} loan".into()));
        assert_eq!(
            serde_json::to_string(&status).unwrap(),
            r#""on \u0001 loan""#
        );
    }

    #[test]
    fn a_listed_value_never_becomes_unknown() {
        for status in PetStatus::KNOWN {
            assert_eq!(PetStatus::from(status.as_str()), *status);
            assert_eq!(status.as_str().parse(), Ok(status.clone()));
        }
    }
}
