//! A seed as a value: made by hand, or read by `file`, and checked before a store is made of it.

use std::{collections::HashMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Value;

use super::{SeedError, builtin, file};
use crate::{
    model::{NewPet, Pet, PetStatus},
    state::{Order, Store},
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
    pub(super) pets: Vec<SeedPet>,
    pub(super) orders: Vec<Value>,
}

impl Default for Seed {
    fn default() -> Self {
        Self { pets: builtin::pets(), orders: Vec::new() }
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
        let seed = file::read(text)?;
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
