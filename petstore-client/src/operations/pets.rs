//! The operations on pets and on the store (specification, section 4).

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, header};
use serde_json::Value;

use super::call::Call;
use super::list::ListPets;
use crate::call::{Core, Removal, Request};
use crate::client::Client;
use crate::error::Error;
use crate::models::{NewPet, Pet};
use crate::options::RequestOptions;
use crate::rate_limit::RateLimits;

/// The removal of `getPet`: 5 December 2030 (specification, section 4.3).
const GET_PET_REMOVAL: Removal = Removal { sunset: 1_922_659_200, replacement: "/pets" };

/// The operations on pets, from [`Client::pets`].
#[derive(Debug, Clone)]
pub struct Pets {
    core: Arc<Core>,
    options: RequestOptions,
}

/// The operations on the store, from [`Client::store`].
#[derive(Debug, Clone)]
pub struct Store {
    core: Arc<Core>,
    options: RequestOptions,
}

impl Client {
    /// Returns the operations on pets.
    #[must_use]
    pub fn pets(&self) -> Pets {
        let (core, options) = self.parts();
        Pets { core, options }
    }

    /// Returns the operations on the store.
    #[must_use]
    pub fn store(&self) -> Store {
        let (core, options) = self.parts();
        Store { core, options }
    }

    /// Asks the service for the key's rate limits: sends exactly one `GET /pets?limit=1`, whatever is
    /// known of them, and returns what is known then. It uses one request of the quotas. Of several
    /// that are called at once during a block, one is sent.
    ///
    /// # Errors
    ///
    /// Whatever ends a call. After a 429, [`rate_limits`](Self::rate_limits) has what it said.
    pub async fn refresh_rate_limits(&self) -> Result<RateLimits, Error> {
        // Where another one is in flight, its response serves this one too.
        let once = RequestOptions::new().max_attempts(1).max_wait(Duration::ZERO);
        self.pets().list().limit(1).options(&once).forced().send().await?;
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
        ListPets::new((Arc::clone(&self.core), self.options))
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
        let request = serde_json::to_vec(pet)
            .map_err(|problem| Error::invalid(problem.to_string()))
            .map(|body| {
                let url = self.core.base.at("/pets");
                let mut request = Request::new("createPet", Method::POST, url)
                    .with_template("/pets")
                    .with_body(body.into());
                let json = HeaderValue::from_static("application/json");
                request.http.headers.insert(header::CONTENT_TYPE, json);
                request
            });
        Call::new((Arc::clone(&self.core), self.options), request)
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
        let url = self.core.base.at(&format!("/pets/{id}"));
        let mut request = Request::new("getPet", Method::GET, url).with_template("/pets/{petId}");
        request.removal = Some(GET_PET_REMOVAL);
        Call::new((Arc::clone(&self.core), self.options), Ok(request))
    }
}

impl Store {
    /// Gets the orders, as whatever JSON the service returns: the specification says that the
    /// operation exists, and not what its parameters and results are.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// let orders = client.store().orders().await?;
    /// println!("{} orders", orders.as_array().map_or(0, Vec::len));
    /// # Ok(())
    /// # }
    /// ```
    pub fn orders(&self) -> Call<Value> {
        let url = self.core.base.at("/store/orders");
        let request =
            Request::new("GET /store/orders", Method::GET, url).with_template("/store/orders");
        Call::new((Arc::clone(&self.core), self.options), Ok(request))
    }
}
