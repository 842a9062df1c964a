//! `listPets`: one page, a stream of pages, or a stream of pets.

use std::fmt;

use bytes::Bytes;
use http::Method;
use url::Url;

use super::call::{Call, CallFuture, call_methods};
use super::pages::{Items, Pages, items_digest};
use crate::client::Client;
use crate::error::Error;
use crate::models::{Pet, PetStatus};
use crate::options::option_setters;
use crate::page::Page;
use crate::request::Request;
use crate::response::Response;

/// The service's default for `limit` (specification, section 4.1).
const DEFAULT_LIMIT: u32 = 20;
/// The query parameters with methods of their own.
const KNOWN_PARAMETERS: [&str; 2] = ["limit", "status"];
const LIMITS: std::ops::RangeInclusive<u32> = 1..=100;

/// A list of pets, from [`Pets::list`](super::Pets::list): one page, or with
/// [`pages`](Self::pages) and [`items`](Self::items) a stream.
///
/// Await it for one page. The response derefs to the [`Page`], and that to a slice of pets. To own
/// the pets, take them out of the response and the page:
///
/// ```
/// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
/// let response = client.pets().list().limit(50).await?;
/// println!("HTTP {}, {} pets", response.meta().status(), response.len());
/// let pets: Vec<petstore_client::Pet> = response.into_inner().into_items();
/// # let _ = pets;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a list does nothing until it is awaited"]
pub struct ListPets(Call<Page<Pet>>);

call_methods!(ListPets, Page<Pet>);

impl ListPets {
    pub(super) fn list(client: Client) -> Self {
        let mut request = Request::new("listPets", Method::GET, client.core.base.at("/pets"));
        request.template = Some("/pets");
        Self(Call {
            client,
            request: Ok(request),
            decode: page,
        })
    }

    /// Lets the first attempt be sent even if the rate limits are known to be used up.
    pub(super) fn forced(self) -> Self {
        self.try_map(|request| {
            request.forced = true;
            Ok(())
        })
    }

    fn try_map(self, change: impl FnOnce(&mut Request) -> Result<(), Error>) -> Self {
        Self(self.0.try_map(change))
    }

    /// Sets the maximum size of a page, from 1 to 100 pets. The service's default is 20.
    pub fn limit(self, limit: u32) -> Self {
        self.try_map(|request| {
            if !LIMITS.contains(&limit) {
                let problem = format!("`limit` is {limit}, and must be from 1 to 100");
                return Err(Error::invalid(problem));
            }
            request.page_size = Some(limit);
            set_parameter(&mut request.url, "limit", &limit.to_string());
            Ok(())
        })
    }

    /// Lists only pets with this status.
    pub fn status(self, status: impl Into<PetStatus>) -> Self {
        self.try_map(|request| {
            set_parameter(&mut request.url, "status", status.into().as_str());
            Ok(())
        })
    }

    /// Adds a query parameter that this version does not know, such as a new filter.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// let mut dogs = client.pets().list().query("categoryId", 7).items();
    /// while let Some(dog) = dogs.try_next().await? {
    ///     println!("{}", dog.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn query(self, name: &str, value: impl fmt::Display) -> Self {
        self.try_map(|request| {
            if KNOWN_PARAMETERS.contains(&name) {
                let problem = format!("set the parameter `{name}` with the method `{name}`");
                return Err(Error::invalid(problem));
            }
            let mut query = request.url.query_pairs_mut();
            query.append_pair(name, &value.to_string());
            Ok(())
        })
    }

    /// Starts at the page after an earlier one ([`Page::next_url`]). The URL contains the limit, the
    /// status and further parameters, and replaces those that were set before. Set the same limit first, because a page with
    /// fewer pets counts as the last one.
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
    pub fn from_page(self, next: Url) -> Self {
        self.try_map(|request| {
            request.url = next;
            Ok(())
        })
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
        Pages::new(self.0, items_digest)
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
}

/// Sets a parameter of a query, in place of an earlier one.
fn set_parameter(url: &mut Url, name: &str, value: &str) {
    let known: Vec<_> = url
        .query_pairs()
        .into_owned()
        .filter(|(known, _)| known != name)
        .collect();
    url.query_pairs_mut()
        .clear()
        .extend_pairs(known)
        .append_pair(name, value);
}

fn page(response: Response<Bytes>) -> Result<Response<Page<Pet>>, Error> {
    let (pets, meta) = response.decoded::<Vec<Pet>>()?.into_parts();
    let limit = usize::try_from(meta.page_size.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
    Ok(Response::new(
        Page::new(pets, limit, meta.next_page()),
        meta,
    ))
}
