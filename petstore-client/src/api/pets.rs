//! The animals: add one, get one, list them (specification, section 4).

use std::sync::Arc;

use http::{HeaderValue, Method, header};

use super::{Call, ListPets};
use crate::base_url::BaseUrl;
use crate::error::Error;
use crate::models::{NewPet, Pet};
use crate::pipeline::Pipeline;
use crate::request::{Doomed, Request};

/// The removal of `getPet`: 5 December 2030 (specification, section 4.3).
const GET_PET: Doomed = Doomed { sunset: 1_922_659_200, successor: "/pets" };

/// The operations on pets, from [`Client::pets`](crate::Client::pets).
#[derive(Debug, Clone, Copy)]
pub struct Pets<'c> {
    pipeline: &'c Arc<Pipeline>,
    base: &'c BaseUrl,
}

impl<'c> Pets<'c> {
    pub(crate) fn new(pipeline: &'c Arc<Pipeline>, base: &'c BaseUrl) -> Self {
        Self { pipeline, base }
    }

    /// Lists pets (`listPets`): one page, or a stream of all of them.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// use petstore_client::PetStatus;
    ///
    /// let page = client.pets().list().limit(50).status(PetStatus::Available).send().await?;
    /// for pet in page.iter() {
    ///     println!("{} {}", pet.id, pet.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(self) -> ListPets<'c> {
        ListPets::new(self.pipeline, self.base)
    }

    /// Adds a pet (`createPet`).
    ///
    /// The request is sent again only where the first one cannot have been processed: it never
    /// left, it was answered 429, or 401 and the key's provider has another key. After any other
    /// failure,
    /// [`Error::may_have_been_processed`] says what is known.
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
    pub fn create(self, pet: &NewPet) -> Call<'c, Pet> {
        let request = serde_json::to_vec(pet)
            .map_err(|problem| Error::invalid(problem.to_string()))
            .map(|body| {
                let mut request = Request::new("createPet", Method::POST, self.base.at("/pets"));
                let json = HeaderValue::from_static("application/json");
                request.headers.insert(header::CONTENT_TYPE, json);
                request.body = Some(body.into());
                request
            });
        Call::new(self.pipeline, request)
    }

    /// Gets one pet (`getPet`).
    ///
    /// The service has announced the end of this operation; the response's
    /// [`deprecation`](crate::Response::deprecation) says when.
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
    pub fn get(self, id: i64) -> Call<'c, Pet> {
        let url = self.base.at(&format!("/pets/{id}"));
        let mut request = Request::new("getPet", Method::GET, url);
        request.doomed = Some(GET_PET);
        Call::new(self.pipeline, Ok(request))
    }
}
