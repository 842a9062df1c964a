//! The pets and orders, and everything that can be changed in them. A change is planned before it is
//! made, so that it can be written to a file in between.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::pet_list::{PetList, StoredPet};
use crate::model::{NewPet, Pet, PetStatus};

/// An order: the specification does not show its fields, so any will do.
pub(crate) type Order = Map<String, Value>;

/// One page of a listing.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    pub(crate) pets: Vec<&'a StoredPet>,
    /// Whether more pets follow.
    pub(crate) more: bool,
}

/// What the store holds; a copy shares all of it until one is changed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Content", into = "Content")]
pub(crate) struct Store {
    pets: PetList,
    /// For each status, the ids of the pets that have it, ascending: a page of a rare status must not
    /// cost a walk through all pets.
    by_status: [Arc<Vec<i64>>; PetStatus::ALL.len()],
    orders: Arc<Vec<Order>>,
    /// The highest id there ever was.
    last_id: i64,
    version: u64,
}

/// What of a store is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Content {
    pub(crate) last_id: i64,
    pub(crate) pets: PetList,
    pub(crate) orders: Vec<Order>,
}

impl From<Content> for Store {
    fn from(Content { last_id, pets, orders }: Content) -> Self {
        let mut by_status = [const { Vec::new() }; PetStatus::ALL.len()];
        for pet in pets.iter() {
            if let Some(status) = pet.status {
                by_status[status as usize].push(pet.id);
            }
        }
        let last = pets.iter().last().map_or(0, |pet| pet.id);
        let by_status = by_status.map(Arc::new);
        Self {
            last_id: last_id.max(last),
            pets,
            by_status,
            orders: Arc::new(orders),
            version: next_version(),
        }
    }
}

impl From<Store> for Content {
    fn from(store: Store) -> Self {
        let orders = Arc::unwrap_or_clone(store.orders);
        Self { last_id: store.last_id, pets: store.pets, orders }
    }
}

/// A change that is asked for.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Adds a pet under this id, or under the next one.
    Add {
        id: Option<i64>,
        pet: NewPet,
    },
    Remove(i64),
    /// Removes all pets; their ids are not given again.
    ClearPets,
    AddOrder(Order),
    ClearOrders,
    /// Replaces the whole store.
    Replace(Store),
}

/// A change that can be made.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Edit {
    Add(StoredPet),
    Remove(i64),
    ClearPets,
    AddOrder(Order),
    ClearOrders,
    Replace(Store),
}

/// Why a change was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// Another pet has the id.
    #[error("the id {0} belongs to another pet already")]
    IdTaken(i64),
    /// Every id that int64 has is taken.
    #[error("no id is left to give: start with pets of lower ids")]
    OutOfIds,
    /// There is no such pet.
    #[error("there is no pet with the id {0}")]
    NoSuchPet(i64),
    /// An order must be a JSON object.
    #[error("an order must be a JSON object")]
    NotAnObject,
    /// A snapshot contradicts itself, or the server.
    #[error("the snapshot can't be used: {0}")]
    Snapshot(&'static str),
    /// The data file could not be written. It is tried again with the next change.
    #[error("the data file could not be written: {0}")]
    Unsaved(String),
}

/// The store as it will be after some edits, as far as the next change has to know.
#[derive(Debug)]
pub(crate) struct Planned<'s> {
    store: &'s Store,
    /// What takes its place.
    replaced: Option<Store>,
    last_id: i64,
    /// Whether there is a pet with an id that was changed.
    changed: HashMap<i64, bool>,
}

impl<'s> Planned<'s> {
    pub(crate) fn new(store: &'s Store) -> Self {
        Self { store, replaced: None, last_id: store.last_id, changed: HashMap::new() }
    }

    fn has(&self, id: i64) -> bool {
        let store = self.replaced.as_ref().unwrap_or(self.store);
        self.changed.get(&id).copied().unwrap_or_else(|| store.get(id).is_some())
    }

    /// Returns the edit that makes a change, or why it can't be made.
    pub(crate) fn plan(&mut self, change: Change) -> Result<Edit, ChangeError> {
        Ok(match change {
            Change::Add { id, pet } => {
                let next = || self.last_id.checked_add(1).ok_or(ChangeError::OutOfIds);
                let id = id.map_or_else(next, Ok)?;
                if self.has(id) {
                    return Err(ChangeError::IdTaken(id));
                }
                self.last_id = self.last_id.max(id);
                self.changed.insert(id, true);
                Edit::Add(StoredPet::from(&Pet::new(id, pet)))
            }
            Change::Remove(id) if self.has(id) => {
                self.changed.insert(id, false);
                Edit::Remove(id)
            }
            Change::Remove(id) => return Err(ChangeError::NoSuchPet(id)),
            Change::ClearPets => {
                (self.replaced, self.changed) = (Some(Store::default()), HashMap::new());
                Edit::ClearPets
            }
            Change::AddOrder(order) => Edit::AddOrder(order),
            Change::ClearOrders => Edit::ClearOrders,
            Change::Replace(store) => {
                (self.replaced, self.changed) = (Some(store.clone()), HashMap::new());
                self.last_id = store.last_id;
                Edit::Replace(store)
            }
        })
    }
}

impl Store {
    /// Returns a store of these pets, whose ids must differ, and orders.
    pub(crate) fn new(pets: impl IntoIterator<Item = Pet>, orders: Vec<Order>) -> Self {
        let mut list = PetList::default();
        for pet in pets {
            list.insert(StoredPet::from(&pet));
        }
        Content { last_id: 0, pets: list, orders }.into()
    }

    /// Returns a number that no other pets than these have, in no store of the process.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Returns how many pets there are.
    pub(crate) fn len(&self) -> usize {
        self.pets.len()
    }

    /// Whether it takes long to make or to free.
    pub(crate) fn is_large(&self) -> bool {
        self.len() > 10_000
    }

    /// Returns all pets, by ascending id.
    pub(crate) fn pets(&self) -> &PetList {
        &self.pets
    }

    /// Returns the pet with this id.
    pub(crate) fn get(&self, id: i64) -> Option<&StoredPet> {
        self.pets.get(id)
    }

    /// Returns the orders, as they were added.
    pub(crate) fn orders(&self) -> &[Order] {
        &self.orders
    }

    /// Returns the first `limit` pets, by ascending id, that come after the id `after` and have this
    /// status.
    pub(crate) fn page(
        &self,
        after: Option<i64>,
        limit: usize,
        status: Option<PetStatus>,
    ) -> Page<'_> {
        match (status, after) {
            (None, None) => page(self.pets.iter(), limit),
            (None, Some(after)) => page(self.pets.after(after), limit),
            (Some(status), after) => {
                let ids = &self.by_status[status as usize];
                let is_before = |id: &i64| after.is_some_and(|after| *id <= after);
                let rest = &ids[ids.partition_point(is_before)..];
                page(rest.iter().filter_map(|id| self.pets.get(*id)), limit)
            }
        }
    }

    /// Makes a change, or none at all; returns the id of the pet it is about, and what is to be dropped
    /// when no lock is held any more.
    pub(crate) fn change(&mut self, change: Change) -> Result<Applied, ChangeError> {
        let edit = Planned::new(self).plan(change)?;
        Ok(self.apply(edit))
    }

    /// Makes a planned change.
    pub(crate) fn apply(&mut self, edit: Edit) -> Applied {
        let mut applied = Applied::default();
        match edit {
            Edit::Add(pet) => {
                applied.id = Some(pet.id);
                self.insert(pet);
            }
            Edit::Remove(id) => {
                applied.id = Some(id);
                if let Some(StoredPet { status: Some(status), .. }) = self.pets.remove(id) {
                    let ids = Arc::make_mut(&mut self.by_status[status as usize]);
                    ids.retain(|other| *other != id);
                }
            }
            Edit::ClearPets => {
                applied.old = Some(self.clone());
                (self.pets, self.by_status) = Default::default();
            }
            Edit::AddOrder(order) => Arc::make_mut(&mut self.orders).push(order),
            Edit::ClearOrders => self.orders = Arc::default(),
            Edit::Replace(store) => applied.old = Some(std::mem::replace(self, store)),
        }
        self.version = next_version();
        applied
    }

    fn insert(&mut self, pet: StoredPet) {
        self.last_id = self.last_id.max(pet.id);
        let (id, status) = (pet.id, pet.status);
        if self.pets.insert(pet)
            && let Some(status) = status
        {
            let ids = Arc::make_mut(&mut self.by_status[status as usize]);
            ids.insert(ids.partition_point(|other| *other < id), id);
        }
    }
}

/// What came of a change.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// The id of the pet it is about.
    pub(crate) id: Option<i64>,
    /// What was replaced: to free a million pets takes longer than a lock should be held.
    pub(crate) old: Option<Store>,
}

fn next_version() -> u64 {
    static VERSIONS: AtomicU64 = AtomicU64::new(1);
    VERSIONS.fetch_add(1, Ordering::Relaxed)
}

fn page<'a>(mut pets: impl Iterator<Item = &'a StoredPet>, limit: usize) -> Page<'a> {
    let pets_of_page = pets.by_ref().take(limit).collect();
    Page { pets: pets_of_page, more: pets.next().is_some() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(status: Option<PetStatus>) -> NewPet {
        NewPet { name: "Rex".to_owned(), category_id: 1, status }
    }

    fn pet(id: i64, status: Option<PetStatus>) -> Pet {
        Pet::new(id, new(status))
    }

    fn ids(page: &Page<'_>) -> (Vec<i64>, bool) {
        (page.pets.iter().map(|pet| pet.id).collect(), page.more)
    }

    #[test]
    fn pages_by_ascending_id_whatever_order_the_seed_had() {
        let store = Store::new([5, -3, 9, 1].map(|id| pet(id, None)), vec![]);
        assert_eq!(ids(&store.page(None, 3, None)), (vec![-3, 1, 5], true));
        assert_eq!(ids(&store.page(Some(5), 3, None)), (vec![9], false));
        assert_eq!(ids(&store.page(Some(9), 3, None)), (vec![], false));
    }

    #[test]
    fn says_that_more_follow_only_when_more_have_that_status() {
        let sold = Some(PetStatus::Sold);
        let pets = vec![pet(1, sold), pet(2, None), pet(3, sold), pet(4, None)];
        let store = Store::new(pets, vec![]);
        assert_eq!(ids(&store.page(None, 1, sold)), (vec![1], true));
        assert_eq!(ids(&store.page(Some(1), 1, sold)), (vec![3], false));
        assert_eq!(ids(&store.page(Some(2), 5, sold)), (vec![3], false));
        let pending = store.page(None, 5, Some(PetStatus::Pending));
        assert_eq!(ids(&pending), (vec![], false));
    }

    #[test]
    fn a_walk_over_the_pages_meets_every_pet_once_while_pets_are_added() {
        let mut store = Store::new((1..=25).map(|id| pet(id, None)), vec![]);
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = store.page(after, 7, None);
            seen.extend(ids(&page).0);
            if !page.more {
                break;
            }
            after = seen.last().copied();
            if seen.len() < 20 {
                store.change(Change::Add { id: None, pet: new(None) }).unwrap();
            }
        }
        assert_eq!(seen, (1..=27).collect::<Vec<i64>>());
    }

    #[test]
    fn gives_the_id_after_the_highest_and_at_least_1() {
        let next = |mut store: Store| add(&mut store, None).unwrap();
        assert_eq!(next(Store::new([pet(7, None), pet(3, None)], vec![])), Some(8));
        assert_eq!(next(Store::new([pet(-7, None)], vec![])), Some(1));
        let text = r#"{"lastId": 4, "pets": [], "orders": []}"#;
        assert_eq!(next(serde_json::from_str(text).unwrap()), Some(5));
    }

    #[test]
    fn changes_are_planned_together_as_they_are_made_one_after_the_other() {
        let mut store = Store::new([pet(1, None)], vec![]);
        let mut planned = Planned::new(&store);
        let add = |id| Change::Add { id, pet: new(None) };
        let edits = [
            planned.plan(add(None)),
            planned.plan(add(Some(2))),
            planned.plan(Change::Remove(2)),
            planned.plan(Change::Remove(2)),
            planned.plan(Change::ClearPets),
            planned.plan(Change::Remove(1)),
            planned.plan(add(Some(1))),
            planned.plan(add(None)),
        ];
        let ok: Vec<_> = edits.iter().map(Result::is_ok).collect();
        assert_eq!(ok, [true, false, true, false, true, false, true, true]);
        edits.into_iter().flatten().for_each(|edit| drop(store.apply(edit)));
        assert_eq!(all_ids(&store, None), [1, 3]);
    }

    fn add(store: &mut Store, id: Option<i64>) -> Result<Option<i64>, ChangeError> {
        store.change(Change::Add { id, pet: new(Some(PetStatus::Sold)) }).map(|applied| applied.id)
    }

    fn all_ids(store: &Store, status: Option<PetStatus>) -> Vec<i64> {
        store.page(None, 100, status).pets.iter().map(|pet| pet.id).collect()
    }

    #[test]
    fn gives_the_next_id_and_never_one_twice() {
        let mut store = Store::default();
        assert_eq!(add(&mut store, None), Ok(Some(1)));
        assert_eq!(add(&mut store, Some(9)), Ok(Some(9)));
        store.change(Change::Remove(9)).unwrap();
        assert_eq!(add(&mut store, None), Ok(Some(10)));
        store.change(Change::ClearPets).unwrap();
        assert_eq!((store.len(), add(&mut store, None)), (0, Ok(Some(11))));
    }

    #[test]
    fn says_so_when_every_id_is_taken() {
        let mut store = Store::default();
        add(&mut store, Some(i64::MAX)).unwrap();
        assert_eq!(add(&mut store, None), Err(ChangeError::OutOfIds));
        assert_eq!(add(&mut store, Some(i64::MAX)), Err(ChangeError::IdTaken(i64::MAX)));
        assert_eq!(add(&mut store, Some(-5)), Ok(Some(-5)));
    }

    #[test]
    fn a_pet_in_the_middle_is_paged_in_its_place_and_gone_when_it_is_removed() {
        let mut store = Store::default();
        for id in [5, 1, 9, 3] {
            add(&mut store, Some(id)).unwrap();
        }
        let sold = Some(PetStatus::Sold);
        assert_eq!(
            (all_ids(&store, None), all_ids(&store, sold)),
            (vec![1, 3, 5, 9], vec![1, 3, 5, 9])
        );
        store.change(Change::Remove(3)).unwrap();
        assert_eq!((all_ids(&store, None), all_ids(&store, sold)), (vec![1, 5, 9], vec![1, 5, 9]));
        let again = store.change(Change::Remove(3));
        assert_eq!(again.map(|applied| applied.id), Err(ChangeError::NoSuchPet(3)));
    }
}
