//! Everything that can be changed in the store, as values: whoever keeps the store elsewhere too can
//! do there what was done here.

use super::{Order, Store};
use crate::model::{NewPet, Pet};

/// A change of the store.
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
    /// Puts another store in the place of this one.
    Replace(Box<Store>),
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
    /// A snapshot can't be what it is said to be.
    #[error("the snapshot can't be used: {0}")]
    Snapshot(&'static str),
    /// The file that keeps the data could not be written.
    #[error("the data file could not be written: {0}")]
    Unsaved(String),
}

impl Store {
    /// Makes a change, or none at all; returns the id of the pet it is about.
    pub(crate) fn apply(&mut self, change: Change) -> Result<Option<i64>, ChangeError> {
        match change {
            Change::Add { id, pet } => {
                let id = match id {
                    Some(id) if self.get(id).is_some() => return Err(ChangeError::IdTaken(id)),
                    Some(id) => id,
                    None => self.next_id().ok_or(ChangeError::OutOfIds)?,
                };
                self.insert(Pet::new(id, pet));
                return Ok(Some(id));
            }
            Change::Remove(id) => {
                self.remove(id).ok_or(ChangeError::NoSuchPet(id))?;
                return Ok(Some(id));
            }
            Change::ClearPets => self.clear_pets(),
            Change::AddOrder(order) => self.orders_mut().push(order),
            Change::ClearOrders => self.orders_mut().clear(),
            Change::Replace(store) => *self = *store,
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PetStatus;

    fn pet(status: Option<PetStatus>) -> NewPet {
        NewPet { name: "Rex".to_owned(), category_id: 1, status }
    }

    fn add(store: &mut Store, id: Option<i64>) -> Result<Option<i64>, ChangeError> {
        store.apply(Change::Add { id, pet: pet(Some(PetStatus::Sold)) })
    }

    fn ids(store: &Store, status: Option<PetStatus>) -> Vec<i64> {
        store.page(None, 100, status).pets.iter().map(|pet| pet.id).collect()
    }

    #[test]
    fn gives_the_next_id_and_never_one_twice() {
        let mut store = Store::default();
        assert_eq!(add(&mut store, None), Ok(Some(1)));
        assert_eq!(add(&mut store, Some(9)), Ok(Some(9)));
        store.apply(Change::Remove(9)).unwrap();
        assert_eq!(add(&mut store, None), Ok(Some(10)));
        store.apply(Change::ClearPets).unwrap();
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
        assert_eq!((ids(&store, None), ids(&store, sold)), (vec![1, 3, 5, 9], vec![1, 3, 5, 9]));
        store.apply(Change::Remove(3)).unwrap();
        assert_eq!((ids(&store, None), ids(&store, sold)), (vec![1, 5, 9], vec![1, 5, 9]));
        assert_eq!(store.apply(Change::Remove(3)), Err(ChangeError::NoSuchPet(3)));
    }
}
