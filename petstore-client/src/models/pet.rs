//! The animal as it is sent and as it is returned: `NewPet` and `Pet`.

use serde::{Deserialize, Deserializer, Serialize};

use super::PetStatus;
use super::object::object;

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
        struct Fields {
            id: i64,
            name: String,
            category_id: i64,
            status: Option<PetStatus>,
        }

        let Fields { id, name, category_id, status } = object(deserializer, "a pet")?;
        Ok(Self { id, name, category_id, status })
    }
}

impl<'de> Deserialize<'de> for NewPet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Fields {
            name: String,
            category_id: i64,
            status: Option<PetStatus>,
        }

        let Fields { name, category_id, status } = object(deserializer, "a pet")?;
        Ok(Self { name, category_id, status })
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
}
