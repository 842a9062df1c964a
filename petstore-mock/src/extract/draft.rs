//! The JSON of a NewPet as it was sent: which of its fields are there, of whatever type. Whether they
//! fit is left to `new_pet`, which can then say everything that is wrong at once.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

/// The fields of a NewPet, before it is known that they fit.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) name: Option<Value>,
    pub(super) category_id: Option<Value>,
    pub(super) status: Option<Value>,
}

impl<'de> Deserialize<'de> for Draft {
    // Not derived, because a derived struct takes an array too, and turns null into nothing.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DraftVisitor)
    }
}

struct DraftVisitor;

impl<'de> Visitor<'de> for DraftVisitor {
    type Value = Draft;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one JSON object such as {\"name\": \"Rex\", \"categoryId\": 7}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Draft, A::Error> {
        let mut draft = Draft::default();
        while let Some(key) = map.next_key::<String>()? {
            let (field, name) = match key.as_str() {
                "name" => (&mut draft.name, "name"),
                "categoryId" => (&mut draft.category_id, "categoryId"),
                "status" => (&mut draft.status, "status"),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if field.replace(map.next_value()?).is_some() {
                return Err(A::Error::duplicate_field(name));
            }
        }
        Ok(draft)
    }
}
