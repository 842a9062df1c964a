//! `listPets`: one page, a stream of pages, a stream of pets.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use url::Url;

use crate::call::{CallFuture, Core, Request};
use crate::error::Error;
use crate::models::{Pet, PetStatus};
use crate::options::{RequestOptions, option_setters};
use crate::page::Page;
use crate::paging::{Items, Pages, items_digest};
use crate::response::Response;

const OPERATION: &str = "listPets";
/// The service's page size where none is asked for (specification, section 4.1).
const DEFAULT_LIMIT: u32 = 20;
const LIMITS: std::ops::RangeInclusive<u32> = 1..=100;

/// A list of pets to ask for, from [`Pets::list`](super::Pets::list).
#[derive(Debug, Clone)]
#[must_use = "nothing is asked until `send`, `pages` or `items`"]
pub struct ListPets {
    core: Arc<Core>,
    limit: Option<u32>,
    status: Option<PetStatus>,
    start: Option<Url>,
    options: RequestOptions,
    forced: bool,
}

impl ListPets {
    pub(super) fn new((core, options): (Arc<Core>, RequestOptions)) -> Self {
        Self { core, limit: None, status: None, start: None, options, forced: false }
    }

    /// Sets how many pets a page may hold: 1 to 100. The service's default is 20.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Asks only for pets with this availability.
    pub fn status(mut self, status: impl Into<PetStatus>) -> Self {
        self.status = Some(status.into());
        self
    }

    /// Starts at a page that an earlier one named as next ([`Page::next_url`]), in place of the
    /// first. The address says which pets; the limit should be the same, since a page that is not
    /// full is taken for the last one.
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

    option_setters!(options);

    /// Sends the request whatever is known of the limits.
    pub(super) fn forced(mut self) -> Self {
        self.forced = true;
        self
    }

    /// Asks for the first page.
    ///
    /// # Errors
    ///
    /// The future fails where the limit is out of range (nothing is sent), and with whatever else
    /// ends a call.
    pub fn send(self) -> CallFuture<Page<Pet>> {
        let request = self.request();
        CallFuture::new(self.core, request, self.options, page)
    }

    /// Asks for one page after the other, as long as the service offers a next one
    /// (`Link: …; rel="next"`, RFC 8288) on the same origin.
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
        Pages::new(self.core, first, self.options, (page, items_digest))
    }

    /// Asks for page after page, and yields their pets one by one.
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

    /// Returns the request for the first page, as it would be sent, without `Authorization`.
    ///
    /// # Errors
    ///
    /// Where the limit is out of range.
    pub fn build(self) -> Result<http::Request<Bytes>, Error> {
        self.core.built(&self.request()?)
    }

    fn request(&self) -> Result<Request, Error> {
        if let Some(limit) = self.limit
            && !LIMITS.contains(&limit)
        {
            let problem = format!("`limit` is {limit}, and must be from 1 to 100");
            return Err(Error::invalid(problem).with_operation(OPERATION));
        }
        let url = self.start.clone().unwrap_or_else(|| {
            let mut url = self.core.base.at("/pets");
            if self.limit.is_some() || self.status.is_some() {
                let mut pairs = url.query_pairs_mut();
                if let Some(limit) = self.limit {
                    pairs.append_pair("limit", &limit.to_string());
                }
                if let Some(status) = &self.status {
                    pairs.append_pair("status", status.as_str());
                }
            }
            url
        });
        let mut request = Request::new(OPERATION, Method::GET, url).with_template("/pets");
        request.forced = self.forced;
        request.page_size = self.limit;
        Ok(request)
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
