//! The initial content of the store: built-in pets, or those of a file or a test.

use serde::Deserialize;
use serde_json::Value;

use super::store::{Change, ChangeError, Store};
use crate::{
    model::{
        PetStatus::{self, Available, Pending, Sold},
        SeedPet,
    },
    text::read_json,
};

/// The initial content of the store.
///
/// [`Seed::default`] is 25 built-in pets, the same at each start, and no orders.
///
/// ```
/// use petstore_mock::{Seed, SeedPet};
/// use serde_json::json;
///
/// let by_hand = Seed::none()
///     .pet(SeedPet::new("Rex", 7))
///     .order(json!({"id": 1, "petId": 1, "quantity": 1}));
/// let from_text = Seed::from_json(br#"[{"name": "Rex", "categoryId": 7}]"#)?;
/// # Ok::<(), petstore_mock::SeedError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a seed such as {\"pets\": [], \"orders\": []}"
)]
pub struct Seed {
    #[serde(default)]
    pets: Vec<SeedPet>,
    #[serde(default)]
    orders: Vec<Value>,
}

impl Default for Seed {
    fn default() -> Self {
        let pet = |(name, category_id, status)| SeedPet {
            status,
            ..SeedPet::new(name, category_id)
        };
        Self {
            pets: BUILTIN_PETS.map(pet).into(),
            orders: Vec::new(),
        }
    }
}

impl Seed {
    /// Creates an empty seed, to which pets and orders can be added.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            pets: Vec::new(),
            orders: Vec::new(),
        }
    }

    /// Parses a seed from JSON.
    ///
    /// The text is an array of pets, or an object such as `{"pets": […], "orders": […]}`, in which
    /// either may be missing. A pet has the service's fields; without `id`, it gets the next id. An
    /// order is any object.
    ///
    /// # Errors
    ///
    /// Fails if the text is not such JSON (with line and column), if two pets have the same id, or
    /// if a pet has an unknown field.
    pub fn from_json(text: &[u8]) -> Result<Self, SeedError> {
        let is_array = text.trim_ascii_start().starts_with(b"[");
        let read = if is_array {
            read_json(text).map(|pets| Self {
                pets,
                orders: Vec::new(),
            })
        } else if text.trim_ascii_start().starts_with(b"{") {
            read_json(text)
        } else {
            let forms = "a JSON array of pets, or an object such as {\"pets\": [], \"orders\": []}";
            Err(format!("a seed is {forms}"))
        };
        let seed = read.map_err(SeedError::Json)?;
        seed.clone().into_store()?;
        Ok(seed)
    }

    /// Adds a pet.
    ///
    /// When the server starts, pets without an id get ids above the highest id of the seed, in
    /// order. Two pets with the same id are then an error.
    #[must_use]
    pub fn pet(mut self, pet: SeedPet) -> Self {
        self.pets.push(pet);
        self
    }

    /// Adds an order. If it is not a JSON object, starting the server fails.
    #[must_use]
    pub fn order(mut self, order: Value) -> Self {
        self.orders.push(order);
        self
    }

    /// Checks the seed and creates a store from it.
    pub(crate) fn into_store(self) -> Result<Store, SeedError> {
        let at = |list: &str, place: usize, error: ChangeError| {
            SeedError::Contradiction(format!("{list}[{place}]: {error}"))
        };
        let mut store = Store::default();
        let pets = self.pets.into_iter().enumerate();
        // Pets without an id get ids above all others.
        let (with_id, without): (Vec<_>, Vec<_>) = pets.partition(|(_, pet)| pet.id.is_some());
        for (place, pet) in with_id.into_iter().chain(without) {
            store
                .change(Change::Add(pet))
                .map_err(|error| at("pets", place, error))?;
        }
        for (place, order) in self.orders.into_iter().enumerate() {
            let Value::Object(order) = order else {
                return Err(at("orders", place, ChangeError::NotAnObject));
            };
            store
                .change(Change::AddOrder(order))
                .map_err(|error| at("orders", place, error))?;
        }
        Ok(store)
    }
}

/// The error of an invalid seed. The message says what is wrong and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeedError {
    /// The text is not valid JSON for a seed.
    #[error("{0}")]
    Json(String),
    /// Two pets have the same id, or an order is not an object.
    #[error("{0}")]
    Contradiction(String),
}

/// Name, category (1 dogs, 2 cats, 3 birds, 4 small mammals, 5 reptiles, 6 fish) and status.
const BUILTIN_PETS: [(&str, i64, Option<PetStatus>); 25] = [
    ("Bramble", 1, Some(Available)),
    ("Miso", 2, Some(Available)),
    ("Captain Plume", 3, Some(Pending)),
    ("Biscuit", 1, Some(Sold)),
    ("Zoë", 2, Some(Available)),
    ("Thistle", 4, None),
    ("Mango", 3, Some(Available)),
    ("Otto", 1, Some(Pending)),
    ("Sir Hops-a-Lot", 4, Some(Available)),
    ("Luna", 2, Some(Sold)),
    ("Gecko Roman", 5, Some(Available)),
    ("Bubbles", 6, Some(Available)),
    ("Pfötchen", 2, None),
    ("Juniper", 1, Some(Available)),
    ("Pip", 4, Some(Pending)),
    ("Sheldon", 5, Some(Available)),
    ("Marlin", 6, Some(Sold)),
    ("Olive", 2, Some(Available)),
    ("Rook", 3, Some(Available)),
    ("小春", 1, Some(Pending)),
    ("Nutmeg", 4, Some(Available)),
    ("Ziggy", 5, Some(Sold)),
    ("Coral", 6, None),
    ("Hazel", 1, Some(Available)),
    ("Figaro", 2, Some(Pending)),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(seed: Seed) -> Vec<i64> {
        seed.into_store()
            .unwrap()
            .pets()
            .map(|pet| pet.id)
            .collect()
    }

    fn problem(text: &[u8]) -> String {
        Seed::from_json(text).unwrap_err().to_string()
    }

    #[test]
    fn the_default_is_25_pets_of_every_status_the_same_each_time() {
        assert_eq!(Seed::default(), Seed::default());
        assert_eq!(ids(Seed::default()), (1..=25).collect::<Vec<i64>>());
        for status in [Some(Available), Some(Pending), Some(Sold), None] {
            let pets = Seed::default().pets;
            assert!(pets.iter().any(|pet| pet.status == status), "{status:?}");
        }
    }

    #[test]
    fn gives_ids_after_the_highest_of_the_seed() {
        let pets = [
            SeedPet::new("a", 1),
            SeedPet::new("b", 1).with_id(9),
            SeedPet::new("c", 1),
        ];
        let store = pets
            .into_iter()
            .fold(Seed::none(), Seed::pet)
            .into_store()
            .unwrap();
        for (id, name) in [(9, "b"), (10, "a"), (11, "c")] {
            assert_eq!(store.pet(id).unwrap().name, name);
        }
    }

    #[test]
    fn refuses_a_seed_that_contradicts_itself() {
        let pet = |id| SeedPet::new("twin", 1).with_id(id);
        for (seed, says) in [
            (
                Seed::none().pet(pet(3)).pet(pet(3)),
                "pets[1]: the id 3 already belongs to another pet",
            ),
            (
                Seed::none().pet(SeedPet::new("a", 1)).pet(pet(i64::MAX)),
                "pets[0]: all ids are used",
            ),
            (
                Seed::none().order(Value::Null),
                "orders[0]: an order must be a JSON object",
            ),
        ] {
            let error = seed.into_store().unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
        assert!(matches!(
            Seed::from_json(br#"{"orders": [5]}"#),
            Err(SeedError::Contradiction(_))
        ));
    }

    #[test]
    fn reads_an_array_of_pets_or_an_object() {
        let text = br#" [{"name": "Rex", "categoryId": 7, "status": "sold", "id": 5}]"#;
        let rex = SeedPet::new("Rex", 7).with_id(5).with_status(Sold);
        assert_eq!(Seed::from_json(text).unwrap(), Seed::none().pet(rex));
        let seed = Seed::from_json(br#"{"orders": [{"any": ["thing"]}]}"#).unwrap();
        assert_eq!((seed.pets.len(), seed.orders.len()), (0, 1));
    }

    #[test]
    fn errors_name_field_line_and_column() {
        for (text, says) in [
            (
                "[\n  {\"name\": \"Rex\", \"categoryId\": \"7\"}\n]",
                "`[0].categoryId`: invalid type: string \"7\", expected i64 at line 2 column 35",
            ),
            (
                "{\"pets\": [\n{\"name\": \"Rex\"}]}",
                "`pets[0]`: missing field `categoryId` at line 2",
            ),
            (
                r#"[{"name": "Rex", "categoryId": 7, "tag": 1}]"#,
                "`[0].tag`: unknown field `tag`",
            ),
            (r#"{"pet": []}"#, "`pet`: unknown field `pet`"),
            ("[null]", "`[0]`: invalid type: null"),
            ("[7]", "`[0]`: invalid type: integer `7`"),
            ("{\"pets\": 5}", "`pets`: invalid type: integer `5`"),
            ("[] []", "trailing characters at line 1 column 4"),
            ("[", "EOF while parsing a list"),
            ("", "a seed is a JSON array of pets"),
            ("null", "a seed is a JSON array of pets"),
        ] {
            let problem = problem(text.as_bytes());
            assert!(problem.starts_with(says), "{text}: {problem}");
        }
        assert!(problem(b"[\n\"a\xff").contains("at line 2"));
    }
}
