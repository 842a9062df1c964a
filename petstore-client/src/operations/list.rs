//! `listPets`: one page, a stream of pages, a stream of pets.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use http::Method;
use url::Url;

use crate::call::{CallFuture, Core, Request};
use crate::error::{Error, Failure};
use crate::models::{Pet, PetStatus};
use crate::options::{RequestOptions, option_setters};
use crate::page::{NextPage, Page, PageGuard};
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
        let request = self.request(self.start.clone());
        CallFuture::new(self.core, request, self.options, page)
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
        let state = (self, PageGuard::default(), None);
        stream::try_unfold(state, |(list, mut guard, next)| async move {
            let url = match next {
                None => list.start.clone(),
                Some(NextPage::None) => return Ok(None),
                Some(NextPage::Refused(problem)) => return Err(paging(problem)),
                Some(NextPage::At(url)) => Some(url),
            };
            let request = list.request(url)?;
            guard.request(&request.http.url).map_err(paging)?;
            let page =
                CallFuture::new(Arc::clone(&list.core), Ok(request), list.options, page).await?;
            guard.received(&page).map_err(paging)?;
            let next = page.next().clone();
            Ok(Some((page, (list, guard, Some(next)))))
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

    /// Returns the request for a page, or for the first one.
    fn request(&self, page: Option<Url>) -> Result<Request, Error> {
        if let Some(limit) = self.limit
            && !LIMITS.contains(&limit)
        {
            let problem = format!("`limit` is {limit}, and must be from 1 to 100");
            return Err(Error::invalid(problem).with_operation(OPERATION));
        }
        let url = page.unwrap_or_else(|| {
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
        let mut request = Request::new(OPERATION, Method::GET, url);
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
    let page = Page::new(pets, limit, &meta.headers, &meta.url);
    let page = page.map_refusal(|problem| match &meta.redactor {
        Some(redactor) => redactor.removed_from_text(problem),
        None => problem,
    });
    Ok(Response::new(page, meta))
}

fn paging(problem: impl Into<String>) -> Error {
    Error::new(Failure::Paging(problem.into())).with_operation(OPERATION)
}
