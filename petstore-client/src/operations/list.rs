//! `listPets`: one page, a stream of pages, or a stream of pets.

use bytes::Bytes;
use http::Method;
use url::Url;

use super::call::CallFuture;
use super::pages::{Items, Pages, items_digest};
use crate::client::Client;
use crate::error::Error;
use crate::models::{Pet, PetStatus};
use crate::options::{RequestOptions, option_setters};
use crate::page::Page;
use crate::request::Request;
use crate::response::Response;

const OPERATION: &str = "listPets";
/// The service's default for `limit` (specification, section 4.1).
const DEFAULT_LIMIT: u32 = 20;
const LIMITS: std::ops::RangeInclusive<u32> = 1..=100;

/// A list of pets, from [`Pets::list`](super::Pets::list).
#[derive(Debug, Clone)]
#[must_use = "nothing is sent until `send`, `pages` or `items`"]
pub struct ListPets {
    pub(super) client: Client,
    limit: Option<u32>,
    status: Option<PetStatus>,
    start: Option<Url>,
}

impl ListPets {
    pub(super) fn new(client: Client) -> Self {
        Self { client, limit: None, status: None, start: None }
    }

    option_setters!();

    fn options_mut(&mut self) -> &mut RequestOptions {
        &mut self.client.options
    }

    /// Sets the maximum size of a page, from 1 to 100 pets. The service's default is 20.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Lists only pets with this availability.
    pub fn status(mut self, status: impl Into<PetStatus>) -> Self {
        self.status = Some(status.into());
        self
    }

    /// Starts at the page after an earlier one ([`Page::next_url`]). The URL contains the status.
    /// Use the same limit, because a page with fewer pets counts as the last one.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// let page = client.pets().list().limit(50).await?;
    /// if let Some(next) = page.next_url() {
    ///     let second = client.pets().list().limit(50).from_page(next.clone()).await?;
    ///     println!("{} and {} pets", page.len(), second.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_page(mut self, next: Url) -> Self {
        self.start = Some(next);
        self
    }

    /// Requests the first page.
    ///
    /// # Errors
    ///
    /// The future fails if the limit is out of range (nothing is sent), or if the call fails.
    pub fn send(self) -> CallFuture<Page<Pet>> {
        let request = self.request();
        CallFuture::new(self.client, request, page)
    }

    /// Returns all pages as a stream. Follows `Link: …; rel="next"` (RFC 8288) on the same origin.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// let mut pages = client.pets().list().limit(100).pages();
    /// while let Some(page) = pages.try_next().await? {
    ///     println!("{} pets, then {:?}", page.len(), page.more());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn pages(self) -> Pages<Page<Pet>> {
        let first = self.request();
        Pages::new(self.client, first, page, items_digest)
    }

    /// Returns the pets of all pages as a stream.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// let mut pets = client.pets().list().items();
    /// while let Some(pet) = pets.try_next().await? {
    ///     println!("{}", pet.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn items(self) -> Items<Pet> {
        self.pages().items()
    }

    /// Returns the request for the first page, without `Authorization`.
    ///
    /// # Errors
    ///
    /// Fails if the limit is out of range.
    pub fn build(self) -> Result<http::Request<Bytes>, Error> {
        self.client.build(&self.request()?)
    }

    pub(super) fn request(&self) -> Result<Request, Error> {
        if let Some(limit) = self.limit.filter(|limit| !LIMITS.contains(limit)) {
            let problem = format!("`limit` is {limit}, and must be from 1 to 100");
            return Err(Error::invalid(problem).with_operation(OPERATION));
        }
        let url = match &self.start {
            Some(next) => next.clone(),
            None => self.first_page(),
        };
        let mut request = Request::new(OPERATION, Method::GET, url);
        request.template = Some("/pets");
        request.page_size = self.limit;
        Ok(request)
    }

    fn first_page(&self) -> Url {
        let mut url = self.client.core.base.at("/pets");
        if let Some(limit) = self.limit {
            url.query_pairs_mut().append_pair("limit", &limit.to_string());
        }
        if let Some(status) = &self.status {
            url.query_pairs_mut().append_pair("status", status.as_str());
        }
        url
    }
}

impl IntoFuture for ListPets {
    type Output = Result<Response<Page<Pet>>, Error>;
    type IntoFuture = CallFuture<Page<Pet>>;

    fn into_future(self) -> Self::IntoFuture {
        self.send()
    }
}

fn page(response: Response<Bytes>) -> Result<Response<Page<Pet>>, Error> {
    let (pets, meta) = response.decoded::<Vec<Pet>>()?.into_parts();
    let limit = usize::try_from(meta.page_size.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
    Ok(Response::new(Page::new(pets, limit, meta.next_page()), meta))
}
