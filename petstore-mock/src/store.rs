//! The pets and orders: adding, finding and paging, in memory. Pure; the lock around it is `world`'s,
//! and how a page is asked for over HTTP is `extract`'s.

use serde_json::{Map, Value};

use crate::model::{NewPet, Pet, PetStatus};

/// An order: the specification does not show its fields, so any will do.
pub(crate) type Order = Map<String, Value>;

/// Every id that int64 has is taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OutOfIds;

/// One page of a listing.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    pub(crate) pets: Vec<&'a Pet>,
    /// Whether more pets follow.
    pub(crate) more: bool,
}

/// What the store holds.
#[derive(Debug, Default)]
pub(crate) struct Store {
    /// In ascending order of their ids.
    pets: Vec<Pet>,
    /// For each status, where in `pets` those that have it are, ascending: a page of a rare status
    /// must not cost a walk through all pets.
    by_status: [Vec<usize>; PetStatus::ALL.len()],
    orders: Vec<Order>,
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

    /// Adds a pet under the next id: one more than the highest, and at least 1.
    pub(crate) fn add(&mut self, pet: NewPet) -> Result<&Pet, OutOfIds> {
        let highest = self.pets.last().map_or(0, |last| last.id.max(0));
        let id = highest.checked_add(1).ok_or(OutOfIds)?;
        Ok(self.push(Pet::new(id, pet)))
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

    fn push(&mut self, pet: Pet) -> &Pet {
        let place = self.pets.len();
        if let Some(status) = pet.status {
            self.by_status[status as usize].push(place);
        }
        self.pets.push(pet);
        &self.pets[place]
    }
}

fn page<'a>(mut pets: impl Iterator<Item = &'a Pet>, limit: usize) -> Page<'a> {
    let pets_of_page = pets.by_ref().take(limit).collect();
    Page { pets: pets_of_page, more: pets.next().is_some() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pet(id: i64, status: Option<PetStatus>) -> Pet {
        Pet::new(id, NewPet { name: format!("pet {id}"), category_id: 1, status })
    }

    fn new_pet(status: Option<PetStatus>) -> NewPet {
        NewPet { name: String::new(), category_id: 1, status }
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
                store.add(new_pet(None)).unwrap();
            }
        }
        assert_eq!(seen, (1..=27).collect::<Vec<i64>>());
    }

    #[test]
    fn gives_a_new_pet_the_next_id() {
        let mut store = Store::new(vec![pet(7, None), pet(3, None)], vec![]);
        let id = store.add(new_pet(Some(PetStatus::Pending))).unwrap().id;
        assert_eq!(id, 8);
        assert_eq!(store.get(8).unwrap().status, Some(PetStatus::Pending));
        assert_eq!(store.get(4), None);
        assert_eq!(Store::default().add(new_pet(None)).unwrap().id, 1);
    }

    #[test]
    fn says_so_when_every_id_is_taken() {
        let mut store = Store::new(vec![pet(i64::MAX, None)], vec![]);
        assert_eq!(store.add(new_pet(None)), Err(OutOfIds));
    }
}
