//! The pets in order, so that a page is found at once. Which changes there are is left to `change`.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value};

use crate::model::{Pet, PetStatus};

/// An order: the specification does not show its fields, so any will do.
pub(crate) type Order = Map<String, Value>;

/// One page of a listing.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    pub(crate) pets: Vec<&'a Pet>,
    /// Whether more pets follow.
    pub(crate) more: bool,
}

/// What the store holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    /// In ascending order of their ids.
    pets: Vec<Pet>,
    /// For each status, where in `pets` those that have it are, ascending: a page of a rare status
    /// must not cost a walk through all pets.
    by_status: [Vec<usize>; PetStatus::ALL.len()],
    orders: Vec<Order>,
    /// The highest id there ever was, which is not given again.
    last_id: i64,
    version: u64,
}

impl Store {
    /// Returns a store of these pets, whose ids must differ, and orders.
    pub(crate) fn new(mut pets: Vec<Pet>, orders: Vec<Order>) -> Self {
        pets.sort_by_key(|pet| pet.id);
        let mut store = Self { orders, ..Self::default() };
        for pet in pets {
            store.push(pet);
        }
        store
    }

    /// Returns the store with no id up to this one given again.
    pub(crate) fn with_last_id(mut self, last_id: i64) -> Self {
        self.last_id = self.last_id.max(last_id);
        self
    }

    /// Returns the highest id there ever was; 0 if there was none above it.
    pub(crate) fn last_id(&self) -> i64 {
        self.last_id
    }

    /// Returns the next id: one more than the highest there ever was, and at least 1.
    pub(super) fn next_id(&self) -> Option<i64> {
        self.last_id.checked_add(1)
    }

    /// Returns a number that no other pets than these have, in no store of the process.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Returns how many pets there are.
    pub(crate) fn len(&self) -> usize {
        self.pets.len()
    }

    /// Returns all pets, by ascending id.
    pub(crate) fn pets(&self) -> &[Pet] {
        &self.pets
    }

    /// Returns the pet with this id.
    pub(crate) fn get(&self, id: i64) -> Option<&Pet> {
        let place = self.pets.binary_search_by_key(&id, |pet| pet.id).ok()?;
        self.pets.get(place)
    }

    /// Returns the first `limit` pets, by ascending id, that come after the id `after` and have this
    /// status.
    pub(crate) fn page(
        &self,
        after: Option<i64>,
        limit: usize,
        status: Option<PetStatus>,
    ) -> Page<'_> {
        let is_before = |pet: &Pet| after.is_some_and(|after| pet.id <= after);
        let rest = match status {
            None => {
                let start = self.pets.partition_point(is_before);
                return page(self.pets[start..].iter(), limit);
            }
            Some(status) => &self.by_status[status as usize],
        };
        let start = rest.partition_point(|place| is_before(&self.pets[*place]));
        page(rest[start..].iter().map(|place| &self.pets[*place]), limit)
    }

    /// Returns the orders, as they were seeded.
    pub(crate) fn orders(&self) -> &[Order] {
        &self.orders
    }

    pub(super) fn orders_mut(&mut self) -> &mut Vec<Order> {
        &mut self.orders
    }

    /// Adds a pet whose id no other has.
    pub(super) fn insert(&mut self, pet: Pet) {
        match self.pets.last() {
            Some(last) if last.id > pet.id => {
                self.last_id = self.last_id.max(pet.id);
                let place = self.pets.partition_point(|other| other.id < pet.id);
                self.pets.insert(place, pet);
                self.index();
            }
            _ => self.push(pet),
        }
    }

    pub(super) fn remove(&mut self, id: i64) -> Option<Pet> {
        let place = self.pets.binary_search_by_key(&id, |pet| pet.id).ok()?;
        let pet = self.pets.remove(place);
        self.index();
        Some(pet)
    }

    pub(super) fn clear_pets(&mut self) {
        self.pets.clear();
        self.index();
    }

    /// Adds a pet at the end.
    fn push(&mut self, pet: Pet) {
        if let Some(status) = pet.status {
            self.by_status[status as usize].push(self.pets.len());
        }
        self.last_id = self.last_id.max(pet.id);
        self.version = next_version();
        self.pets.push(pet);
    }

    /// Finds out anew which pets have which status: rarely, since pets are added at the end.
    fn index(&mut self) {
        self.version = next_version();
        self.by_status.iter_mut().for_each(Vec::clear);
        for (place, pet) in self.pets.iter().enumerate() {
            if let Some(status) = pet.status {
                self.by_status[status as usize].push(place);
            }
        }
    }
}

fn next_version() -> u64 {
    static VERSIONS: AtomicU64 = AtomicU64::new(1);
    VERSIONS.fetch_add(1, Ordering::Relaxed)
}

fn page<'a>(mut pets: impl Iterator<Item = &'a Pet>, limit: usize) -> Page<'a> {
    let pets_of_page = pets.by_ref().take(limit).collect();
    Page { pets: pets_of_page, more: pets.next().is_some() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NewPet;

    fn pet(id: i64, status: Option<PetStatus>) -> Pet {
        Pet::new(id, NewPet { name: format!("pet {id}"), category_id: 1, status })
    }

    fn ids(page: &Page<'_>) -> (Vec<i64>, bool) {
        (page.pets.iter().map(|pet| pet.id).collect(), page.more)
    }

    #[test]
    fn pages_by_ascending_id_whatever_order_the_seed_had() {
        let store = Store::new([5, -3, 9, 1].map(|id| pet(id, None)).to_vec(), vec![]);
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
        let mut store = Store::new((1..=25).map(|id| pet(id, None)).collect(), vec![]);
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = store.page(after, 7, None);
            seen.extend(ids(&page).0);
            if !page.more {
                break;
            }
            after = seen.last().copied();
            if seen.len() < 20 {
                store.insert(pet(store.next_id().unwrap(), None));
            }
        }
        assert_eq!(seen, (1..=27).collect::<Vec<i64>>());
    }

    #[test]
    fn gives_the_id_after_the_highest_and_at_least_1() {
        let store = Store::new(vec![pet(7, None), pet(3, None)], vec![]);
        assert_eq!((store.next_id(), store.get(7).map(|pet| pet.id)), (Some(8), Some(7)));
        assert_eq!(store.get(4), None);
        assert_eq!(Store::new(vec![pet(-7, None)], vec![]).next_id(), Some(1));
        assert_eq!(Store::default().with_last_id(4).next_id(), Some(5));
    }
}
