//! What the store holds when the server starts: the built-in pets, those of a file, or those of a test.

use std::{collections::HashMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Value;

use super::store::{Order, Store};
use crate::model::{
    NewPet, Pet,
    PetStatus::{self, Available, Pending, Sold},
};

/// A pet of a seed.
///
/// ```
/// use petstore_mock::{PetStatus, SeedPet};
///
/// let rex = SeedPet::new("Rex", 7).with_id(42).with_status(PetStatus::Pending);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, rename_all = "camelCase")]
pub struct SeedPet {
    id: Option<i64>,
    name: String,
    category_id: i64,
    status: Option<PetStatus>,
}

// Derived, it would take an array of four values for a pet too.
impl<'de> Deserialize<'de> for SeedPet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SeedPetVisitor)
    }
}

struct SeedPetVisitor;

impl<'de> Visitor<'de> for SeedPetVisitor {
    type Value = SeedPet;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pet such as {\"name\": \"Rex\", \"categoryId\": 7}")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SeedPet, A::Error> {
        // What is derived: this name is found before that of the trait.
        SeedPet::deserialize(MapAccessDeserializer::new(map))
    }
}

impl SeedPet {
    /// Returns a pet without a status, which gets an id of its own: see [`Seed::pet`].
    #[must_use]
    pub fn new(name: impl Into<String>, category_id: i64) -> Self {
        Self { id: None, name: name.into(), category_id, status: None }
    }

    /// Sets the id.
    #[must_use]
    pub fn with_id(mut self, id: i64) -> Self {
        self.id = Some(id);
        self
    }

    /// Sets the status.
    #[must_use]
    pub fn with_status(mut self, status: PetStatus) -> Self {
        self.status = Some(status);
        self
    }
}

impl SeedPet {
    /// Returns the id it is to have, and the rest.
    pub(crate) fn into_parts(self) -> (Option<i64>, NewPet) {
        let Self { id, name, category_id, status } = self;
        (id, NewPet { name, category_id, status })
    }
}

/// What the store holds when the server starts.
///
/// [`Seed::default`] is 25 pets of the mock's own, the same at each start, and no orders.
///
/// ```
/// use petstore_mock::{Seed, SeedPet};
/// use serde_json::json;
///
/// let by_hand = Seed::new()
///     .pet(SeedPet::new("Rex", 7))
///     .order(json!({"id": 1, "petId": 1, "quantity": 1}));
/// let from_text = Seed::from_json(br#"[{"name": "Rex", "categoryId": 7}]"#)?;
/// # Ok::<(), petstore_mock::SeedError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Seed {
    pets: Vec<SeedPet>,
    orders: Vec<Value>,
}

impl Default for Seed {
    fn default() -> Self {
        Self { pets: builtin_pets(), orders: Vec::new() }
    }
}

impl Seed {
    /// Returns a seed to add pets and orders to.
    #[must_use]
    pub const fn new() -> Self {
        Self { pets: Vec::new(), orders: Vec::new() }
    }

    /// Returns a seed of nothing: the store starts empty.
    #[must_use]
    pub const fn none() -> Self {
        Self::new()
    }

    /// Returns the seed that a JSON text describes.
    ///
    /// The text is an array of pets, or an object such as `{"pets": […], "orders": […]}` in which
    /// either may be missing. A pet is what the service returns, its `id` left out if it is to get
    /// one of its own; an order is any object.
    ///
    /// # Errors
    ///
    /// Where the text is no such JSON, with line and column; where two pets have one id. Nothing is
    /// dropped silently: a field that a pet does not have is an error too.
    pub fn from_json(text: &[u8]) -> Result<Self, SeedError> {
        let seed = read(text)?;
        seed.clone().into_store()?;
        Ok(seed)
    }

    /// Adds a pet.
    ///
    /// Pets without an id get one when the server starts: one more than the highest id of the seed,
    /// in the order in which they were added. Two pets with the same id are an error then.
    #[must_use]
    pub fn pet(mut self, pet: SeedPet) -> Self {
        self.pets.push(pet);
        self
    }

    /// Adds an order, which must be a JSON object: anything else is an error when the server starts.
    #[must_use]
    pub fn order(mut self, order: Value) -> Self {
        self.orders.push(order);
        self
    }

    /// Checks the seed and makes a store of it.
    pub(crate) fn into_store(self) -> Result<Store, SeedError> {
        let highest = self.pets.iter().filter_map(|pet| pet.id).max();
        let mut last = highest.unwrap_or(0).max(0);
        let mut places = HashMap::with_capacity(self.pets.len());
        let mut pets = Vec::with_capacity(self.pets.len());
        for (place, pet) in self.pets.into_iter().enumerate() {
            let (id, pet) = pet.into_parts();
            let id = if let Some(id) = id {
                id
            } else {
                last = last.checked_add(1).ok_or_else(|| {
                    SeedError::new(format!("pets[{place}]: no id is left to give it"))
                })?;
                last
            };
            if let Some(other) = places.insert(id, place) {
                return Err(SeedError::new(format!(
                    "pets[{place}]: the id {id} belongs to pets[{other}] already"
                )));
            }
            pets.push(Pet::new(id, pet));
        }
        Ok(Store::new(pets, orders(self.orders)?))
    }
}

fn orders(orders: Vec<Value>) -> Result<Vec<Order>, SeedError> {
    let object = |(place, order)| match order {
        Value::Object(order) => Ok(order),
        _ => Err(SeedError::new(format!("orders[{place}]: an order must be a JSON object"))),
    };
    orders.into_iter().enumerate().map(object).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a seed such as {\"pets\": [], \"orders\": []}")]
struct Whole {
    #[serde(default)]
    pets: Vec<SeedPet>,
    #[serde(default)]
    orders: Vec<Value>,
}

/// Reads an array of pets, or an object of `pets` and `orders`.
fn read(text: &[u8]) -> Result<Seed, SeedError> {
    let text = std::str::from_utf8(text).map_err(|error| not_utf8(text, &error))?;
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'[') => Ok(Seed { pets: parse(text, "pets")?, orders: Vec::new() }),
        Some(b'{') => {
            let whole: Whole = parse(text, "")?;
            Ok(Seed { pets: whole.pets, orders: whole.orders })
        }
        _ => Err(SeedError::at(
            1,
            1,
            "a seed is a JSON array of pets, or an object such as {\"pets\": [], \"orders\": []}",
        )),
    }
}

/// Parses JSON; `within` is what the path of a fault begins with.
fn parse<'de, T: Deserialize<'de>>(text: &'de str, within: &str) -> Result<T, SeedError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let fault = error.into_inner();
        let at_fault = match path.as_str() {
            "." | "?" => within.to_owned(),
            path => format!("{within}{path}"),
        };
        located(&fault, &at_fault)
    })?;
    match deserializer.end() {
        Ok(()) => Ok(value),
        Err(error) => Err(located(&error, "")),
    }
}

fn located(error: &serde_json::Error, path: &str) -> SeedError {
    let whole = error.to_string();
    // The position is kept apart from the message.
    let what = whole.rfind(" at line ").map_or(&*whole, |end| &whole[..end]);
    let message = match path {
        "" => what.to_owned(),
        path => format!("{path}: {what}"),
    };
    SeedError::at(error.line(), error.column(), message)
}

fn not_utf8(text: &[u8], error: &std::str::Utf8Error) -> SeedError {
    let before = &text[..error.valid_up_to()];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    SeedError::at(line, before.len() - line_start + 1, "the text is not UTF-8")
}

/// Name, category (1 dogs, 2 cats, 3 birds, 4 small mammals, 5 reptiles, 6 fish) and status.
const PETS: [(&str, i64, Option<PetStatus>); 25] = [
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

fn builtin_pets() -> Vec<SeedPet> {
    let pet = |(name, category_id, status): (&str, i64, Option<PetStatus>)| {
        let pet = SeedPet::new(name, category_id);
        match status {
            Some(status) => pet.with_status(status),
            None => pet,
        }
    };
    PETS.into_iter().map(pet).collect()
}

/// A seed that can't be used; the message says what is wrong with it and where.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SeedError {
    message: String,
    /// The line and column of the file, counted from 1.
    position: Option<(usize, usize)>,
}

impl SeedError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), position: None }
    }

    pub(crate) fn at(line: usize, column: usize, message: impl Into<String>) -> Self {
        Self { message: message.into(), position: Some((line, column)) }
    }

    /// Returns the line of the JSON text, counted from 1, where it can be told.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.position.map(|(line, _)| line)
    }

    /// Returns the column of the JSON text, counted from 1, where it can be told.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.position.map(|(_, column)| column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(seed: Seed) -> Vec<i64> {
        let store = seed.into_store().unwrap();
        let page = store.page(None, 100, None);
        page.pets.iter().map(|pet| pet.id).collect()
    }

    #[test]
    fn the_default_is_25_pets_of_every_status_the_same_each_time() {
        assert_eq!(Seed::default(), Seed::default());
        assert_eq!(ids(Seed::default()), (1..=25).collect::<Vec<i64>>());
        for status in PetStatus::ALL.into_iter().map(Some).chain([None]) {
            let pets = Seed::default().pets;
            assert!(pets.iter().any(|pet| pet.status == status), "{status:?}");
        }
    }

    #[test]
    fn gives_ids_after_the_highest_of_the_seed() {
        let seed = Seed::new()
            .pet(SeedPet::new("a", 1))
            .pet(SeedPet::new("b", 1).with_id(9))
            .pet(SeedPet::new("c", 1));
        let store = seed.into_store().unwrap();
        let named = [(9, "b"), (10, "a"), (11, "c")];
        for (id, name) in named {
            assert_eq!(store.get(id).unwrap().to_pet().name, name);
        }
    }

    #[test]
    fn refuses_two_pets_with_one_id() {
        let twin = SeedPet::new("twin", 1).with_id(3);
        let error = Seed::new().pet(twin.clone()).pet(twin).into_store();
        assert_eq!(error.unwrap_err().to_string(), "pets[1]: the id 3 belongs to pets[0] already");
    }

    #[test]
    fn refuses_to_run_out_of_ids() {
        let seed = Seed::new()
            .pet(SeedPet::new("last", 1).with_id(i64::MAX))
            .pet(SeedPet::new("one more", 1));
        let error = seed.into_store().unwrap_err().to_string();
        assert_eq!(error, "pets[1]: no id is left to give it");
    }

    #[test]
    fn refuses_an_order_that_is_no_object() {
        let error = Seed::new().order(Value::Null).into_store().unwrap_err();
        assert_eq!(error.to_string(), "orders[0]: an order must be a JSON object");
    }
}

#[cfg(test)]
mod file_tests {
    use super::*;

    fn fault(text: &[u8]) -> (usize, usize, String) {
        let error = read(text).unwrap_err();
        let position = (error.line().unwrap(), error.column().unwrap());
        (position.0, position.1, error.to_string())
    }

    #[test]
    fn reads_an_array_of_pets() {
        let seed = read(br#" [{"name": "Rex", "categoryId": 7, "status": "sold", "id": 5}]"#);
        let rex = SeedPet::new("Rex", 7).with_id(5).with_status(crate::model::PetStatus::Sold);
        assert_eq!(seed.unwrap(), Seed::new().pet(rex));
    }

    #[test]
    fn reads_pets_and_orders() {
        let seed = read(br#"{"orders": [{"any": ["thing"]}]}"#).unwrap();
        assert_eq!((seed.pets.len(), seed.orders.len()), (0, 1));
    }

    #[test]
    fn names_line_column_and_field() {
        let (line, column, message) = fault(b"[\n  {\"name\": \"Rex\", \"categoryId\": \"7\"}\n]");
        assert_eq!((line, column), (2, 35));
        assert_eq!(message, "pets[0].categoryId: invalid type: string \"7\", expected i64");
        let (line, _, message) = fault(b"{\"pets\": [\n{\"name\": \"Rex\"}]}");
        assert_eq!((line, &*message), (2, "pets[0]: missing field `categoryId`"));
    }

    #[test]
    fn drops_nothing_silently() {
        let (.., message) = fault(br#"[{"name": "Rex", "categoryId": 7, "tag": 1}]"#);
        assert!(message.starts_with("pets[0].tag: unknown field `tag`"), "{message}");
        let (.., message) = fault(br#"{"pet": []}"#);
        assert!(message.contains("unknown field `pet`"), "{message}");
    }

    #[test]
    fn refuses_a_pet_that_is_no_object() {
        for (pet, what) in
            [(r#"[5, "Rex", 7, "sold"]"#, "sequence"), ("null", "null"), ("7", "integer `7`")]
        {
            for text in [format!("[{pet}]"), format!(r#"{{"pets": [{pet}]}}"#)] {
                let (.., message) = fault(text.as_bytes());
                let expected = "expected a pet such as {\"name\": \"Rex\", \"categoryId\": 7}";
                assert_eq!(message, format!("pets[0]: invalid type: {what}, {expected}"));
            }
        }
    }

    #[test]
    fn refuses_what_is_no_seed() {
        for text in [&b""[..], b"7", b"null", b"\"x\"", b"[", b"[] []", b"{\"pets\": 5}"] {
            assert!(read(text).is_err(), "{}", text.escape_ascii());
        }
        assert_eq!(fault(b"[\n\"a\xff").0, 2);
    }
}
