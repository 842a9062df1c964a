//! The pets of a running server.

use crate::{
    model::Pet,
    seed::SeedPet,
    state::{Change, ChangeError, StoredPet},
    world::World,
};

/// The pets of a server: see [`MockServer::pets`](crate::MockServer::pets).
///
/// What is done here uses no quota and is no request.
///
/// ```
/// use petstore_mock::{MockServer, PetStatus, SeedPet};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), petstore_mock::ChangeError> {
/// let server = MockServer::start().await;
/// let rex = server.pets().insert(SeedPet::new("Rex", 7).with_status(PetStatus::Sold))?;
/// assert_eq!(server.pets().get(rex.id).map(|pet| pet.name), Some("Rex".to_owned()));
/// assert_eq!(server.pets().all().last(), Some(&rex));
/// server.pets().clear()?;
/// assert!(server.pets().is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Pets<'a>(&'a World);

impl<'a> Pets<'a> {
    pub(crate) const fn new(world: &'a World) -> Self {
        Self(world)
    }

    /// Adds a pet and returns it with its id: the one it was given, or the next one. A pet without a
    /// status has none, whatever the server gives those that are added over HTTP.
    ///
    /// # Errors
    ///
    /// Where another pet has the id, or no id is left.
    pub fn insert(self, pet: SeedPet) -> Result<Pet, ChangeError> {
        let (id, pet) = pet.into_parts();
        let id = self.0.change_now(Change::Add { id, pet: pet.clone() })?;
        Ok(Pet::new(id.unwrap_or_default(), pet))
    }

    /// Removes a pet. Its id is not given again.
    ///
    /// # Errors
    ///
    /// Where there is no such pet.
    pub fn remove(self, id: i64) -> Result<(), ChangeError> {
        self.0.change_now(Change::Remove(id)).map(drop)
    }

    /// Removes all pets. Their ids are not given again.
    ///
    /// # Errors
    ///
    /// Where the file that keeps the data can't be written.
    pub fn clear(self) -> Result<(), ChangeError> {
        self.0.change_now(Change::ClearPets).map(drop)
    }

    /// Returns the pet with this id.
    #[must_use]
    pub fn get(self, id: i64) -> Option<Pet> {
        self.0.read(|store| store.get(id).map(StoredPet::to_pet))
    }

    /// Returns all pets, by ascending id.
    #[must_use]
    pub fn all(self) -> Vec<Pet> {
        self.0.read(|store| store.pets().clone()).iter().map(StoredPet::to_pet).collect()
    }

    /// Returns how many pets there are.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.read(crate::state::Store::len)
    }

    /// Returns whether there is no pet.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}
