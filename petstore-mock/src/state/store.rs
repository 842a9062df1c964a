//! The pets and orders, and all changes of them.

use std::{
    collections::BTreeMap,
    ops::Bound::{Excluded, Unbounded},
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::{Pet, PetStatus, SeedPet};

/// An order. The specification does not show its fields, so it can have any.
pub(crate) type Order = Map<String, Value>;

/// The pets and orders of the server, or of an isolated key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Store {
    /// The highest id ever used, unless a pet in the list has a higher one.
    last_id: i64,
    #[serde(with = "as_array")]
    pets: BTreeMap<i64, Pet>,
    /// In the order in which they were added.
    orders: Vec<Order>,
}

/// A change of the store.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Change {
    Add(SeedPet),
    Remove(i64),
    /// Removes all pets. Their ids are not reused.
    ClearPets,
    AddOrder(Order),
    ClearOrders,
    /// Replaces everything.
    Replace(Store),
}

/// The error of a change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// Another pet already has the id.
    #[error("the id {0} already belongs to another pet")]
    IdTaken(i64),
    /// All ids of int64 are used.
    #[error("all ids are used: start with pets of lower ids")]
    OutOfIds,
    /// The pet does not exist.
    #[error("no pet has the id {0}")]
    NoSuchPet(i64),
    /// An order must be a JSON object.
    #[error("an order must be a JSON object")]
    NotAnObject,
    /// The data file could not be written. The next change tries again.
    #[error("the data file could not be written: {0}")]
    Unsaved(String),
}

impl Store {
    /// Returns the pet with this id.
    pub(crate) fn pet(&self, id: i64) -> Option<&Pet> {
        self.pets.get(&id)
    }

    /// Returns all pets, by ascending id.
    pub(crate) fn pets(&self) -> impl ExactSizeIterator<Item = &Pet> {
        self.pets.values()
    }

    pub(crate) fn orders(&self) -> &[Order] {
        &self.orders
    }

    /// Returns the first `limit` pets, by ascending id, with ids above `after` and this status, and
    /// whether there are more.
    pub(crate) fn page(
        &self,
        after: Option<i64>,
        limit: usize,
        status: Option<PetStatus>,
    ) -> (Vec<&Pet>, bool) {
        let from = after.map_or(Unbounded, Excluded);
        let pets = self.pets.range((from, Unbounded)).map(|(_, pet)| pet);
        let mut found = pets.filter(|pet| status.is_none() || pet.status == status);
        let page = found.by_ref().take(limit).collect();
        (page, found.next().is_some())
    }

    /// Makes a change completely, or not at all. Returns the id of a new pet.
    pub(crate) fn change(&mut self, mut change: Change) -> Result<i64, ChangeError> {
        let id = self.check(&mut change)?;
        self.apply(change);
        Ok(id)
    }

    /// Checks that a change is possible. Assigns an id to a new pet without one, and returns it.
    pub(super) fn check(&self, change: &mut Change) -> Result<i64, ChangeError> {
        match change {
            Change::Add(pet) => {
                let next = || self.highest_id().checked_add(1);
                let id = pet.id.or_else(next).ok_or(ChangeError::OutOfIds)?;
                if self.pets.contains_key(&id) {
                    return Err(ChangeError::IdTaken(id));
                }
                pet.id = Some(id);
                Ok(id)
            }
            Change::Remove(id) if !self.pets.contains_key(id) => Err(ChangeError::NoSuchPet(*id)),
            Change::Remove(_)
            | Change::ClearPets
            | Change::AddOrder(_)
            | Change::ClearOrders
            | Change::Replace(_) => Ok(0),
        }
    }

    /// Applies a change that was checked.
    pub(super) fn apply(&mut self, change: Change) {
        self.last_id = self.highest_id();
        match change {
            Change::Add(pet) => {
                // The check has assigned it.
                let id = pet.id.unwrap_or_default();
                self.last_id = id.max(self.last_id);
                self.pets.insert(id, pet.into_pet(id));
            }
            Change::Remove(id) => drop(self.pets.remove(&id)),
            Change::ClearPets => self.pets.clear(),
            Change::AddOrder(order) => self.orders.push(order),
            Change::ClearOrders => self.orders.clear(),
            Change::Replace(store) => *self = store,
        }
    }

    fn highest_id(&self) -> i64 {
        let last = self.pets.last_key_value();
        last.map_or(self.last_id, |(id, _)| self.last_id.max(*id))
    }
}

/// The pets as an array in JSON.
mod as_array {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::model::Pet;

    pub(super) fn serialize<S: Serializer>(
        pets: &BTreeMap<i64, Pet>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(pets.values())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<i64, Pet>, D::Error> {
        let mut pets = BTreeMap::new();
        for pet in Vec::<Pet>::deserialize(from)? {
            let id = pet.id;
            if pets.insert(id, pet).is_some() {
                return Err(D::Error::custom(format!("two pets have the id {id}")));
            }
        }
        Ok(pets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(pets: impl IntoIterator<Item = (i64, Option<PetStatus>)>) -> Store {
        let mut store = Store::default();
        for (id, status) in pets {
            store
                .change(Change::Add(SeedPet {
                    status,
                    ..rex().with_id(id)
                }))
                .unwrap();
        }
        store
    }

    fn rex() -> SeedPet {
        SeedPet::new("Rex", 1)
    }

    fn add(store: &mut Store, id: Option<i64>) -> Result<i64, ChangeError> {
        store.change(Change::Add(SeedPet { id, ..rex() }))
    }

    fn ids((pets, more): (Vec<&Pet>, bool)) -> (Vec<i64>, bool) {
        (pets.iter().map(|pet| pet.id).collect(), more)
    }

    #[test]
    fn pages_by_ascending_id_whatever_order_the_seed_had() {
        let store = store([5, -3, 9, 1].map(|id| (id, None)));
        assert_eq!(ids(store.page(None, 3, None)), (vec![-3, 1, 5], true));
        assert_eq!(ids(store.page(Some(5), 3, None)), (vec![9], false));
        assert_eq!(ids(store.page(Some(9), 3, None)), (vec![], false));
        assert_eq!(ids(store.page(Some(i64::MAX), 3, None)), (vec![], false));
    }

    #[test]
    fn says_that_more_follow_only_when_more_have_that_status() {
        let sold = Some(PetStatus::Sold);
        let store = store([(1, sold), (2, None), (3, sold), (4, None)]);
        assert_eq!(ids(store.page(None, 1, sold)), (vec![1], true));
        assert_eq!(ids(store.page(Some(1), 1, sold)), (vec![3], false));
        assert_eq!(ids(store.page(Some(2), 5, sold)), (vec![3], false));
        let pending = store.page(None, 5, Some(PetStatus::Pending));
        assert_eq!(ids(pending), (vec![], false));
    }

    #[test]
    fn assigns_ids_above_the_highest_and_never_twice() {
        assert_eq!(add(&mut store([(7, None), (3, None)]), None), Ok(8));
        assert_eq!(add(&mut store([(-7, None)]), None), Ok(1));
        for (text, next) in [
            (r#"{"lastId": 4, "pets": [], "orders": []}"#, 5),
            (
                r#"{"lastId": 4, "pets": [{"id":9,"name":"a","categoryId":1}], "orders": []}"#,
                10,
            ),
        ] {
            let mut store: Store = serde_json::from_str(text).unwrap();
            assert_eq!(add(&mut store, None), Ok(next));
        }
        let mut store = Store::default();
        assert_eq!(add(&mut store, Some(9)), Ok(9));
        store.change(Change::Remove(9)).unwrap();
        assert_eq!(
            store.change(Change::Remove(9)),
            Err(ChangeError::NoSuchPet(9))
        );
        assert_eq!(add(&mut store, None), Ok(10));
        store.change(Change::ClearPets).unwrap();
        assert_eq!(store.pets().len(), 0);
        assert_eq!(add(&mut store, None), Ok(11));
    }

    #[test]
    fn says_so_when_every_id_is_taken() {
        let mut store = Store::default();
        add(&mut store, Some(i64::MAX)).unwrap();
        assert_eq!(add(&mut store, None), Err(ChangeError::OutOfIds));
        assert_eq!(
            add(&mut store, Some(i64::MAX)),
            Err(ChangeError::IdTaken(i64::MAX))
        );
        assert_eq!(add(&mut store, Some(-5)), Ok(-5));
    }

    #[test]
    fn reads_its_own_json_and_refuses_duplicates() {
        let store = store([(9, None), (-3, Some(PetStatus::Sold))]);
        let text = serde_json::to_string(&store).unwrap();
        let read: Store = serde_json::from_str(&text).unwrap();
        assert_eq!(read, store);
        let twins = text.replace("-3", "9");
        let error = serde_json::from_str::<Store>(&twins).unwrap_err();
        assert!(error.to_string().starts_with("two pets have the id 9"));
    }
}
