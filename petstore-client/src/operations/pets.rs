//! The operations on pets and on the store (specification, section 4).

use std::time::Duration;

use http::{HeaderValue, Method, header};
use serde_json::Value;

use super::call::Call;
use super::list::ListPets;
use crate::client::Client;
use crate::deprecation::Removal;
use crate::error::Error;
use crate::models::{NewPet, Pet};
use crate::rate_limit::RateLimits;
use crate::request::Request;

/// The removal of `getPet`: 5 December 2030 (specification, section 4.3).
const GET_PET_REMOVAL: Removal = Removal { sunset: 1_922_659_200, replacement: "/pets" };

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

    /// Asks the service for the key's rate limits: sends one `GET /pets?limit=1`, also where they are
    /// known to be used up. It uses one request of the quotas. Of several such calls during a block,
    /// one sends a request.
    ///
    /// # Errors
    ///
    /// Where the call fails. After a 429, [`rate_limits`](Self::rate_limits) has what it said.
    pub async fn refresh_rate_limits(&self) -> Result<RateLimits, Error> {
        let list = self.pets().list().limit(1).max_attempts(1).max_wait(Duration::ZERO);
        let mut request = list.request()?;
        request.forced = true;
        Call::<Vec<Pet>>::new(list.client, Ok(request)).await?;
        Ok(self.rate_limits())
    }
}

impl Pets {
    /// Lists pets (`listPets`): one page, or a stream of all of them.
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
        ListPets::new(self.0.clone())
    }

    /// Adds a pet (`createPet`).
    ///
    /// The request is sent again only where the first one cannot have been processed: it was not
    /// sent, it was answered 429, or 401 and the key's provider has another key. After any other
    /// failure, [`Error::may_have_been_processed`] says what is known.
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
        let request = serde_json::to_vec(pet).map_err(Error::invalid).map(|body| {
            let mut request = Request::new("createPet", Method::POST, self.0.core.base.at("/pets"));
            request.template = Some("/pets");
            let json = HeaderValue::from_static("application/json");
            request.headers.insert(header::CONTENT_TYPE, json);
            request.body = body.into();
            request
        });
        Call::new(self.0.clone(), request)
    }

    /// Gets one pet (`getPet`).
    ///
    /// The service has announced the end of this operation; the response's
    /// [`deprecation`](crate::ResponseMeta::deprecation) says when.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// #[expect(deprecated, reason = "until the list can be searched by identifier")]
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
    /// Gets the orders as JSON of any shape: the specification lists the operation without its
    /// parameters and results.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// let orders = client.store().orders().await?;
    /// println!("{} orders", orders.as_array().map_or(0, Vec::len));
    /// # Ok(())
    /// # }
    /// ```
    pub fn orders(&self) -> Call<Value> {
        let url = self.0.core.base.at("/store/orders");
        let mut request = Request::new("GET /store/orders", Method::GET, url);
        request.template = Some("/store/orders");
        Call::new(self.0.clone(), Ok(request))
    }
}
