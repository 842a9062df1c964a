//! The pets and orders, and all changes of them.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::pet_list::{PetList, StoredPet};
use crate::model::{PetStatus, SeedPet};

/// An order. The specification does not show its fields, so it can have any.
pub(crate) type Order = Map<String, Value>;

/// One page of a listing.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    pets: Vec<&'a StoredPet>,
    /// Whether there are more pets.
    more: bool,
}

impl Page<'_> {
    pub(crate) fn pets(&self) -> &[&StoredPet] {
        &self.pets
    }

    /// Returns the id of the last pet, if there are more pets after it.
    pub(crate) fn id_before_next(&self) -> Option<i64> {
        let last = self.pets.last()?;
        self.more.then_some(last.id)
    }
}

/// The pets and orders. Copies share them until one is changed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Store {
    /// The highest id ever used, unless a pet in the list has a higher one.
    last_id: i64,
    pets: PetList,
    /// In the order in which they were added.
    orders: Arc<Vec<Order>>,
    /// Changes with the pets and orders, and is unique in the process.
    #[serde(skip, default = "next_version")]
    version: u64,
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
    /// Replaces the whole store.
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
    /// The snapshot contradicts itself or the server.
    #[error("the snapshot cannot be used: {0}")]
    Snapshot(&'static str),
    /// The data file could not be written. The next change tries again.
    #[error("the data file could not be written: {0}")]
    Unsaved(String),
}

impl Store {
    /// Restores a store from its parts.
    pub(super) fn from_parts(last_id: i64, pets: PetList, orders: Arc<Vec<Order>>) -> Self {
        Self {
            last_id,
            pets,
            orders,
            ..Self::default()
        }
    }

    pub(super) fn into_parts(self) -> (i64, PetList, Arc<Vec<Order>>) {
        (self.last_id, self.pets, self.orders)
    }

    pub(crate) fn pets(&self) -> &PetList {
        &self.pets
    }

    pub(crate) fn orders(&self) -> &[Order] {
        &self.orders
    }

    /// Returns a number that changes with the pets and orders, and is unique in the process.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Returns the first `limit` pets, by ascending id, with ids above `after` and this status.
    pub(crate) fn page(
        &self,
        after: Option<i64>,
        limit: usize,
        status: Option<PetStatus>,
    ) -> Page<'_> {
        let mut found = self.pets.find(after, status);
        let pets = found.by_ref().take(limit).collect();
        Page {
            pets,
            more: found.next().is_some(),
        }
    }

    /// Makes a change completely, or not at all. Assigns an id to a new pet without one, and
    /// returns it.
    pub(crate) fn change(&mut self, change: &mut Change) -> Result<i64, ChangeError> {
        let mut id = 0;
        match change {
            Change::Add(pet) => id = self.add(pet)?,
            Change::Remove(id) if !self.pets.remove(*id) => {
                return Err(ChangeError::NoSuchPet(*id));
            }
            Change::Remove(_) => {}
            Change::ClearPets => self.pets = PetList::default(),
            Change::AddOrder(order) => Arc::make_mut(&mut self.orders).push(order.clone()),
            Change::ClearOrders => self.orders = Arc::default(),
            Change::Replace(store) => *self = store.clone(),
        }
        self.version = next_version();
        Ok(id)
    }

    fn add(&mut self, pet: &mut SeedPet) -> Result<i64, ChangeError> {
        let last_id = self.last_id.max(self.pets.last_id());
        let id = pet
            .id
            .or_else(|| last_id.checked_add(1))
            .ok_or(ChangeError::OutOfIds)?;
        if !self.pets.insert(pet.clone().into_pet(id).into()) {
            return Err(ChangeError::IdTaken(id));
        }
        (pet.id, self.last_id) = (Some(id), last_id.max(id));
        Ok(id)
    }
}

fn next_version() -> u64 {
    static VERSIONS: AtomicU64 = AtomicU64::new(1);
    VERSIONS.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(pets: impl IntoIterator<Item = (i64, Option<PetStatus>)>) -> Store {
        let mut store = Store::default();
        for (id, status) in pets {
            store
                .change(&mut Change::Add(SeedPet {
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
        store.change(&mut Change::Add(SeedPet { id, ..rex() }))
    }

    fn ids(page: &Page<'_>) -> (Vec<i64>, bool) {
        (page.pets.iter().map(|pet| pet.id).collect(), page.more)
    }

    #[test]
    fn pages_by_ascending_id_whatever_order_the_seed_had() {
        let store = store([5, -3, 9, 1].map(|id| (id, None)));
        assert_eq!(ids(&store.page(None, 3, None)), (vec![-3, 1, 5], true));
        assert_eq!(ids(&store.page(Some(5), 3, None)), (vec![9], false));
        assert_eq!(ids(&store.page(Some(9), 3, None)), (vec![], false));
    }

    #[test]
    fn says_that_more_follow_only_when_more_have_that_status() {
        let sold = Some(PetStatus::Sold);
        let store = store([(1, sold), (2, None), (3, sold), (4, None)]);
        assert_eq!(ids(&store.page(None, 1, sold)), (vec![1], true));
        assert_eq!(ids(&store.page(Some(1), 1, sold)), (vec![3], false));
        assert_eq!(ids(&store.page(Some(2), 5, sold)), (vec![3], false));
        let pending = store.page(None, 5, Some(PetStatus::Pending));
        assert_eq!(ids(&pending), (vec![], false));
    }

    #[test]
    fn a_walk_meets_every_pet_once_while_pets_are_added() {
        let mut store = store((1..=25).map(|id| (id, None)));
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = store.page(after, 7, None);
            seen.extend(ids(&page).0);
            if !page.more {
                break;
            }
            after = seen.last().copied();
            if seen.len() < 20 {
                add(&mut store, None).unwrap();
            }
        }
        assert_eq!(seen, (1..=27).collect::<Vec<i64>>());
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
            assert_eq!(
                add(&mut serde_json::from_str(text).unwrap(), None),
                Ok(next)
            );
        }
        let mut store = Store::default();
        assert_eq!(add(&mut store, Some(9)), Ok(9));
        store.change(&mut Change::Remove(9)).unwrap();
        assert_eq!(
            store.change(&mut Change::Remove(9)),
            Err(ChangeError::NoSuchPet(9))
        );
        assert_eq!(add(&mut store, None), Ok(10));
        store.change(&mut Change::ClearPets).unwrap();
        assert_eq!((store.pets.len(), add(&mut store, None)), (0, Ok(11)));
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
}
