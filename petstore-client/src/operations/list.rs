//! `listPets`: one page, a stream of pages, or a stream of pets.

use bytes::Bytes;
use http::Method;
use url::Url;

use super::call::Call;
use super::pages::{Items, Pages, items_digest};
use crate::client::Client;
use crate::error::Error;
use crate::exact::ReceivedPet;
use crate::models::{Pet, PetStatus};
use crate::page::Page;
use crate::request::Request;
use crate::response::Response;

/// The service's default for `limit` (specification, section 4.1).
const DEFAULT_LIMIT: u32 = 20;
const LIMITS: std::ops::RangeInclusive<u32> = 1..=100;

/// A list of pets, from [`Pets::list`](super::Pets::list): one page, or with
/// [`pages`](Self::pages) and [`items`](Self::items) a stream.
pub type ListPets = Call<Page<Pet>>;

impl ListPets {
    pub(super) fn list(client: Client) -> Self {
        let mut request = Request::new("listPets", Method::GET, client.core.base.at("/pets"));
        request.template = Some("/pets");
        Self {
            client,
            request: Ok(request),
            decode: page,
        }
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

    /// Lists only pets with this availability.
    pub fn status(self, status: impl Into<PetStatus>) -> Self {
        self.try_map(|request| {
            set_parameter(&mut request.url, "status", status.into().as_str());
            Ok(())
        })
    }

    /// Starts at the page after an earlier one ([`Page::next_url`]). The URL contains the limit and the
    /// status, and replaces those that were set before. Set the same limit first, because a page with
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
        Pages::new(self, items_digest)
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
    let (received, meta) = response.decoded::<Vec<ReceivedPet>>()?.into_parts();
    let pets = received.into_iter().map(ReceivedPet::into_pet).collect();
    let limit = usize::try_from(meta.page_size.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
    Ok(Response::new(
        Page::new(pets, limit, meta.next_page()),
        meta,
    ))
}
