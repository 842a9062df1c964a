//! A list of pets as a stream of pages or of pets.

use std::collections::HashSet;
use std::fmt;
use std::future::poll_fn;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::call::Call;
use crate::error::Error;
use crate::models::Pet;
use crate::page::Page;
use crate::response::Response;

/// A list with more consecutive empty pages counts as endless.
const MAX_EMPTY_PAGES: usize = 100;

/// A stream of pages, from [`ListPets::pages`](crate::operations::ListPets::pages). It ends after its
/// first error. It can be stored, moved and spawned.
///
/// ```
/// # async fn show(client: petstore_client::Client) -> petstore_client::Result<()> {
/// let mut pages = client.pets().list().limit(100).pages();
/// while let Some(page) = pages.try_next().await? {
///     println!("{} pets", page.len());
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a stream does nothing until it is polled"]
pub struct Pages {
    /// The request for the next page; `None` at the end.
    step: Option<Step>,
}

type Step = Pin<Box<dyn Future<Output = Result<(Page<Pet>, Option<Walk>), Error>> + Send + Sync>>;

/// A walk through the pages of a list.
struct Walk {
    next: Call<Page<Pet>>,
    /// The digests of all URLs and pages so far.
    seen: HashSet<u64>,
    /// The number of consecutive empty pages.
    empty: usize,
}

impl Walk {
    /// Fetches the next page. Returns the page, and the walk after it unless it is the last one.
    async fn step(mut self) -> Result<(Page<Pet>, Option<Self>), Error> {
        let (operation, url) = match &self.next.request {
            Ok(request) => (request.operation.clone(), digest(request.url.as_str())),
            Err(error) => return Err(error.clone()),
        };
        let failed = |problem: &str| Error::paging(problem).with_operation(operation.clone());
        if !self.seen.insert(url) {
            return Err(failed("the service sends the same next page again"));
        }
        let Response { value: page, meta } = self.next.clone().with_meta().await?;
        if !page.is_empty() {
            if !self.seen.insert(digest(&page.items)) {
                return Err(failed(
                    "the service sends the same page again under another URL",
                ));
            }
            self.empty = 0;
        } else if self.empty == MAX_EMPTY_PAGES {
            return Err(failed("the service sends empty pages without end"));
        } else {
            self.empty += 1;
        }
        if let Some(url) = page.next_url.clone() {
            self.next = self.next.from_page(url);
        } else if let Err(problem) = meta.next_page() {
            self.next.request = Err(failed(&problem));
        } else {
            return Ok((page, None));
        }
        Ok((page, Some(self)))
    }
}

impl Pages {
    pub(super) fn new(first: Call<Page<Pet>>) -> Self {
        let walk = Walk {
            next: first,
            seen: HashSet::new(),
            empty: 0,
        };
        Self {
            step: Some(Box::pin(walk.step())),
        }
    }

    /// Returns the next page, or `None` after the last one.
    ///
    /// # Errors
    ///
    /// Fails if a call fails, and with [`ErrorKind::Paging`](crate::ErrorKind::Paging) if a link
    /// leaves the origin or pages repeat.
    pub async fn try_next(&mut self) -> Result<Option<Page<Pet>>, Error> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context))
            .await
            .transpose()
    }

    /// Turns the stream of pages into a stream of pets.
    pub fn items(self) -> Items {
        Items {
            pages: self,
            page: Vec::new().into_iter(),
        }
    }
}

impl Stream for Pages {
    type Item = Result<Page<Pet>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(step) = &mut self.step else {
            return Poll::Ready(None);
        };
        let result = ready!(step.as_mut().poll(context));
        self.step = None;
        Poll::Ready(Some(result.map(|(page, walk)| {
            self.step = walk.map(|walk| Box::pin(walk.step()) as _);
            page
        })))
    }
}

/// A stream of pets, from [`ListPets::items`](crate::operations::ListPets::items). It ends after
/// its first error.
///
/// ```
/// # async fn show(client: petstore_client::Client) -> petstore_client::Result<()> {
/// let mut pets = client.pets().list().limit(100).items();
/// while let Some(pet) = pets.try_next().await? {
///     println!("{}", pet.name);
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a stream does nothing until it is polled"]
pub struct Items {
    pages: Pages,
    page: std::vec::IntoIter<Pet>,
}

impl Items {
    /// Returns the next pet, or `None` after the last one.
    ///
    /// # Errors
    ///
    /// The same as [`Pages::try_next`].
    pub async fn try_next(&mut self) -> Result<Option<Pet>, Error> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context))
            .await
            .transpose()
    }
}

impl Stream for Items {
    type Item = Result<Pet, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(pet) = self.page.next() {
                return Poll::Ready(Some(Ok(pet)));
            }
            match ready!(Pin::new(&mut self.pages).poll_next(context)) {
                Some(Ok(page)) => self.page = page.into_iter(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

fn digest<H: Hash + ?Sized>(value: &H) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").finish_non_exhaustive()
    }
}

impl fmt::Debug for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").finish_non_exhaustive()
    }
}
