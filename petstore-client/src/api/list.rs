//! `listPets`: one page, a stream of pages, a stream of pets.

use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use http::Method;
use url::Url;

use super::call::fetch;
use crate::base_url::BaseUrl;
use crate::error::{Error, Kind};
use crate::models::{Pet, PetStatus};
use crate::options::CallOptions;
use crate::page::{Guard, Next, Page};
use crate::pipeline::Pipeline;
use crate::request::Request;
use crate::response::Response;

/// The service's page size where none is asked for (specification, section 4.1).
const DEFAULT_LIMIT: u32 = 20;
const LIMITS: std::ops::RangeInclusive<u32> = 1..=100;

/// A list of pets to ask for, from [`Pets::list`](crate::Pets::list).
#[derive(Debug, Clone)]
#[must_use = "nothing is asked until `send`, `pages` or `items`"]
pub struct ListPets<'c> {
    pipeline: &'c Arc<Pipeline>,
    base: &'c BaseUrl,
    limit: Option<u32>,
    status: Option<PetStatus>,
    start: Option<Url>,
    options: CallOptions,
}

impl<'c> ListPets<'c> {
    pub(crate) fn new(pipeline: &'c Arc<Pipeline>, base: &'c BaseUrl) -> Self {
        Self { pipeline, base, limit: None, status: None, start: None, options: CallOptions::new() }
    }

    /// Sets how many pets a page may hold: 1 to 100. The service's default is 20.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Asks only for pets with this availability.
    pub fn status(mut self, status: PetStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// Starts at a page that an earlier one named as next ([`Page::next_url`]), in place of the
    /// first. The address says which pets; the limit should be the same, since a page that is not
    /// full is taken for the last one.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// let page = client.pets().list().limit(50).send().await?;
    /// if let Some(next) = page.next_url() {
    ///     let second = client.pets().list().limit(50).starting_at(next.clone()).send().await?;
    ///     println!("{} and {} pets", page.len(), second.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn starting_at(mut self, next: Url) -> Self {
        self.start = Some(next);
        self
    }

    /// Sets the limits of each call that this takes.
    pub fn with(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// Asks for the first page.
    ///
    /// # Errors
    ///
    /// Where the limit is out of range (nothing is sent), and whatever else ends a call.
    pub async fn send(self) -> Result<Response<Page<Pet>>, Error> {
        let query = self.query()?;
        query.page(self.pipeline, query.first.clone()).await
    }

    /// Asks for one page after the other, as long as the service offers a next one
    /// (`Link: …; rel="next"`, RFC 8288) on the same origin.
    ///
    /// The stream ends after its first error. It owns what it needs, so it can be moved to
    /// another task.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// use futures_util::TryStreamExt as _;
    ///
    /// let mut pages = client.pets().list().limit(100).pages();
    /// while let Some(page) = pages.try_next().await? {
    ///     println!("{} pets, then {:?}", page.len(), page.more());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn pages(self) -> BoxStream<'static, Result<Response<Page<Pet>>, Error>> {
        let pipeline = Arc::clone(self.pipeline);
        let start = match self.query() {
            Ok(query) => query,
            Err(error) => return stream::iter([Err(error)]).boxed(),
        };
        let next = Next::At(start.first.clone());
        let state = (pipeline, start, Guard::default(), next);
        stream::try_unfold(state, |(pipeline, query, mut guard, next)| async move {
            let url = match next {
                Next::None => return Ok(None),
                Next::Refused(problem) => return Err(lost_way(problem)),
                Next::At(url) => url,
            };
            guard.ask(&url).map_err(of_list)?;
            let page = query.page(&pipeline, url).await?;
            guard.received(&page).map_err(of_list)?;
            let next = page.next().clone();
            Ok(Some((page, (pipeline, query, guard, next))))
        })
        .boxed()
    }

    /// Asks for page after page, and yields their pets one by one.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// use futures_util::TryStreamExt as _;
    ///
    /// let mut pets = client.pets().list().items();
    /// while let Some(pet) = pets.try_next().await? {
    ///     println!("{}", pet.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn items(self) -> BoxStream<'static, Result<Pet, Error>> {
        let each = |page: Response<Page<Pet>>| stream::iter(page.into_inner().into_iter().map(Ok));
        self.pages().map_ok(each).try_flatten().boxed()
    }

    fn query(&self) -> Result<Query, Error> {
        if let Some(limit) = self.limit
            && !LIMITS.contains(&limit)
        {
            let problem = format!("`limit` is {limit}, and must be from 1 to 100");
            return Err(of_list(Error::invalid(problem)));
        }
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        if let Some(first) = self.start.clone() {
            return Ok(Query { first, limit, options: self.options });
        }
        let mut first = self.base.at("/pets");
        if self.limit.is_some() || self.status.is_some() {
            let mut pairs = first.query_pairs_mut();
            if let Some(limit) = self.limit {
                pairs.append_pair("limit", &limit.to_string());
            }
            if let Some(status) = &self.status {
                pairs.append_pair("status", status.as_str());
            }
        }
        Ok(Query { first, limit, options: self.options })
    }
}

/// What all pages of one list have in common.
struct Query {
    first: Url,
    limit: u32,
    options: CallOptions,
}

impl Query {
    async fn page(&self, pipeline: &Pipeline, url: Url) -> Result<Response<Page<Pet>>, Error> {
        let mut request = Request::new("listPets", Method::GET, url);
        request.options = self.options;
        let pets: Response<Vec<Pet>> = fetch(pipeline, &request).await?;
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let page =
            pets.map_with_headers(|items, headers| Page::new(items, limit, headers, &request.url));
        let without_key = page.without_key();
        Ok(page.map(|page| page.map_refusal(without_key)))
    }
}

fn lost_way(problem: String) -> Error {
    of_list(Error::new(Kind::Paging(problem)))
}

fn of_list(error: Error) -> Error {
    error.of("listPets")
}
