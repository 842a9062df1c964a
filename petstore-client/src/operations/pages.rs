//! Lists as streams of pages or items.

use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;

use super::call::{Call, CallFuture, Decode};
use crate::client::Client;
use crate::error::Error;
use crate::page::Page;
use crate::request::Request;
use crate::response::Response;

/// A list with more consecutive empty pages counts as endless.
const MAX_EMPTY_PAGES: usize = 100;

/// A stream of pages, from [`ListPets::pages`](crate::operations::ListPets::pages) and
/// [`RawRequest::pages`](crate::operations::RawRequest::pages). It ends after its first error.
///
/// `P` is `Page<Pet>`, or `Bytes` for raw requests. The stream can be stored, moved and spawned.
///
/// ```
/// # async fn show(client: petstore_client::Client) -> petstore_client::Result<()> {
/// let mut pages = client.pets().list().limit(100).pages();
/// while let Some(page) = pages.try_next().await? {
///     println!("{} pets, after {:?} of waiting", page.len(), page.meta().waited());
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a stream does nothing until it is polled"]
pub struct Pages<P> {
    /// The request for the next page; `None` at the end.
    step: Option<Step<P>>,
}

type Step<P> =
    Pin<Box<dyn Future<Output = Result<(Response<P>, Option<Walk<P>>), Error>> + Send + Sync>>;

/// Identifies a page by its content; `None` for an empty one.
type Digest<P> = fn(&P) -> Option<u64>;

/// A walk through the pages of a list.
struct Walk<P> {
    client: Client,
    next: Result<Request, Error>,
    decode: Decode<P>,
    digest: Digest<P>,
    /// The digests of all URLs and pages so far.
    seen: HashSet<u64>,
    /// The number of consecutive empty pages.
    empty: usize,
}

impl<P: 'static> Walk<P> {
    /// Fetches the next page. Returns the page, and the walk after it unless it is the last one.
    async fn step(mut self) -> Result<(Response<P>, Option<Self>), Error> {
        let mut request = self.next?;
        let operation = request.operation.clone();
        let failed = |problem: &str| Error::paging(problem).with_operation(operation.clone());
        if !self.seen.insert(digest(request.url.as_str())) {
            return Err(failed("the service sends the same next page again"));
        }
        let page = CallFuture::new(self.client.clone(), Ok(request.clone()), self.decode).await?;
        match (self.digest)(&page) {
            None if self.empty == MAX_EMPTY_PAGES => {
                return Err(failed("the service sends empty pages without end"));
            }
            None => self.empty += 1,
            Some(content) if !self.seen.insert(content) => {
                return Err(failed(
                    "the service sends the same page again under another URL",
                ));
            }
            Some(_) => self.empty = 0,
        }
        self.next = match page.meta().next_page() {
            Ok(None) => return Ok((page, None)),
            Ok(Some(url)) => {
                request.url = url;
                Ok(request)
            }
            Err(problem) => Err(failed(&problem)),
        };
        Ok((page, Some(self)))
    }
}

impl<P: 'static> Pages<P> {
    pub(super) fn new(first: Call<P>, digest: Digest<P>) -> Self {
        let Call {
            client,
            request,
            decode,
        } = first;
        let walk = Walk {
            client,
            next: request,
            decode,
            digest,
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
    pub async fn try_next(&mut self) -> Result<Option<Response<P>>, Error> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context))
            .await
            .transpose()
    }
}

impl<P: 'static> Stream for Pages<P> {
    type Item = Result<Response<P>, Error>;

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

impl<T: Unpin + 'static> Pages<Page<T>> {
    /// Turns the stream of pages into a stream of items.
    pub fn items(self) -> Items<T> {
        Items {
            pages: self,
            page: Vec::new().into_iter(),
        }
    }
}

/// A stream of items, from [`ListPets::items`](crate::operations::ListPets::items). It ends after
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
pub struct Items<T> {
    pages: Pages<Page<T>>,
    page: std::vec::IntoIter<T>,
}

impl<T: Unpin + 'static> Items<T> {
    /// Returns the next item, or `None` after the last one.
    ///
    /// # Errors
    ///
    /// The same as [`Pages::try_next`].
    pub async fn try_next(&mut self) -> Result<Option<T>, Error> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context))
            .await
            .transpose()
    }
}

impl<T: Unpin + 'static> Stream for Items<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.page.next() {
                return Poll::Ready(Some(Ok(item)));
            }
            match ready!(Pin::new(&mut self.pages).poll_next(context)) {
                Some(Ok(page)) => self.page = page.into_iter(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

/// Returns the digest of a page's items; `None` for an empty page.
pub(super) fn items_digest<T: Hash>(page: &Page<T>) -> Option<u64> {
    (!page.is_empty()).then(|| digest(&page[..]))
}

/// Returns the digest of a raw page; `None` if it is empty or an empty array.
pub(super) fn body_digest(body: &Bytes) -> Option<u64> {
    let text = body.trim_ascii();
    (!text.is_empty() && text != b"[]").then(|| digest(text))
}

fn digest<H: Hash + ?Sized>(value: &H) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl<P> fmt::Debug for Pages<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Items<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").finish_non_exhaustive()
    }
}
