//! `listPets`: one page, a stream of pages, or a stream of pets.

use std::fmt;

use bytes::Bytes;
use http::Method;
use url::Url;

use super::call::{Call, CallFuture};
use super::pages::{Items, Pages};
use crate::client::Client;
use crate::error::Error;
use crate::models::{Pet, PetStatus};
use crate::page::Page;
use crate::request::Request;
use crate::response::Response;

/// The service's default for `limit` (specification, section 4.1).
const DEFAULT_LIMIT: u32 = 20;
/// The query parameters with methods of their own.
const KNOWN_PARAMETERS: [&str; 2] = ["limit", "status"];
const LIMITS: std::ops::RangeInclusive<u32> = 1..=100;

/// A list of pets, from [`Pets::list`](super::Pets::list): one page, or with
/// [`pages`](Call::pages) and [`items`](Call::items) a stream.
///
/// Await it for one [`Page`], which derefs to a slice of pets:
///
/// ```
/// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
/// for pet in client.pets().list().limit(50).await? {
///     println!("{}", pet.name);
/// }
/// # Ok(())
/// # }
/// ```
pub type ListPets = Call<Page<Pet>>;

/// Only for a list of pets.
impl Call<Page<Pet>> {
    pub(super) fn list(client: Client) -> Self {
        let mut request = Request::new("listPets", Method::GET, client.core.base.pets());
        request.template = Some("/pets");
        Self {
            client,
            request: Ok(request),
            decode: page,
        }
    }

    /// Sends one request, even if the rate limits are known to be used up.
    pub(super) fn once_regardless_of_limits(mut self) -> CallFuture<Page<Pet>> {
        self.options_mut().max_attempts = Some(1);
        let forced = self.try_map(|request| {
            request.forced = true;
            Ok(())
        });
        forced.send()
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
    /// status and further parameters, and replaces those that were set before. Set the same limit
    /// first, because a page with fewer pets counts as the last one.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// let page = client.pets().list().limit(50).await?;
    /// if let Some(next) = page.next_url {
    ///     let second = client.pets().list().limit(50).from_page(next).await?;
    ///     println!("{} and {} pets", page.items.len(), second.len());
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
    ///     println!("{} pets, and more: {:?}", page.len(), page.has_more());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn pages(self) -> Pages {
        Pages::new(self)
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
    pub fn items(self) -> Items {
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
    let Response { value: pets, meta } = response.decoded::<Vec<Pet>>()?;
    let limit = usize::try_from(meta.page_size().unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
    Ok(Response::new(
        Page::new(pets, limit, meta.next_page()),
        meta,
    ))
}
