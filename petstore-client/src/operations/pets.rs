//! The operations on pets and on the store (specification, section 4).

use http::{HeaderValue, Method, header};
use serde_json::Value;

use super::call::Call;
use super::list::ListPets;
use crate::client::Client;
use crate::deprecation::Removal;
use crate::error::Error;
use crate::models::{NewPet, Pet};
use crate::request::Request;

/// The removal of `getPet`: 5 December 2030 (specification, section 4.3).
const GET_PET_REMOVAL: Removal = Removal {
    sunset: 1_922_659_200,
    replacement: "/pets",
};

/// The operations on pets, from [`Client::pets`].
#[derive(Debug, Clone)]
pub struct Pets(Client);

/// The operations on the store, from [`Client::store`].
#[derive(Debug, Clone)]
pub struct Store(Client);

impl Client {
    /// Returns the operations on pets.
    #[must_use]
    pub fn pets(&self) -> Pets {
        Pets(self.clone())
    }

    /// Returns the operations on the store.
    #[must_use]
    pub fn store(&self) -> Store {
        Store(self.clone())
    }
}

impl Pets {
    /// Lists pets (`listPets`), as one page or as a stream of all pets.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// use petstore_client::PetStatus;
    ///
    /// let page = client.pets().list().limit(50).status(PetStatus::Available).await?;
    /// for pet in page.iter() {
    ///     println!("{} {}", pet.id, pet.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(&self) -> ListPets {
        ListPets::list(self.0.clone())
    }

    /// Creates a pet (`createPet`).
    ///
    /// The client retries only if the first request cannot have been processed: it was not sent, or
    /// the response was 429, or it was 401 and the key provider returned another key. After any
    /// other failure, check [`Error::may_have_been_processed`].
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// use petstore_client::{NewPet, PetStatus};
    ///
    /// let new = NewPet::new("Rex", 7).with_status(PetStatus::Pending);
    /// let rex = client.pets().create(&new).await?;
    /// println!("{}", rex.id);
    /// # Ok(())
    /// # }
    /// ```
    pub fn create(&self, pet: &NewPet) -> Call<Pet> {
        let url = self.0.core.base.pets();
        let mut request = Request::new("createPet", Method::POST, url);
        request.template = Some("/pets");
        let json = HeaderValue::from_static("application/json");
        request.headers.insert(header::CONTENT_TYPE, json);
        Call::new(self.0.clone(), Ok(request)).try_map(|request| {
            request.body = serde_json::to_vec(pet).map_err(Error::invalid)?.into();
            Ok(())
        })
    }

    /// Gets one pet (`getPet`).
    ///
    /// The service will remove this operation. The response's
    /// [`deprecation`](crate::Meta::deprecation) says when.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// #[expect(deprecated, reason = "the list has no filter by id")]
    /// let pet = client.pets().get(7).await?;
    /// println!("{}", pet.name);
    /// # Ok(())
    /// # }
    /// ```
    #[deprecated(
        since = "0.1.0",
        note = "the service removes this operation on 5 December 2030; \
                use `list()` with a `status` instead"
    )]
    pub fn get(&self, id: i64) -> Call<Pet> {
        let url = self.0.core.base.at(&format!("/pets/{id}"));
        let mut request = Request::new("getPet", Method::GET, url);
        request.template = Some("/pets/{petId}");
        request.removal = Some(GET_PET_REMOVAL);
        Call::new(self.0.clone(), Ok(request))
    }
}

impl Store {
    /// Gets the orders as JSON of any shape, because the specification does not describe them.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// let orders = client.store().orders().await?;
    /// println!("{} orders", orders.as_array().map_or(0, Vec::len));
    /// # Ok(())
    /// # }
    /// ```
    pub fn orders(&self) -> Call<Value> {
        let url = self.0.core.base.orders();
        let mut request = Request::new("GET /store/orders", Method::GET, url);
        request.template = Some("/store/orders");
        Call::new(self.0.clone(), Ok(request))
    }
}
