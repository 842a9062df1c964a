//! Lists as streams: page after page, or item after item.

use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use url::Url;

use crate::call::{CallFuture, Core, Decode, Request};
use crate::error::{Error, Failure};
use crate::options::RequestOptions;
use crate::page::{NextPage, Page};
use crate::response::Response;

/// Empty pages in a row after which a list is taken for endless.
const MAX_EMPTY_PAGES: usize = 100;

/// Identifies a page by its content; `None` for an empty one.
type Digest<P> = fn(&P) -> Option<u64>;

/// A stream of pages, from [`ListPets::pages`](crate::operations::ListPets::pages) and
/// [`RawRequest::pages`](crate::operations::RawRequest::pages). It ends after its first error.
///
/// `P` is `Page<Pet>`, or `Bytes` for raw requests. It owns what it needs, and may be moved, kept and
/// spawned.
#[must_use = "a stream does nothing until it is polled"]
pub struct Pages<P> {
    core: Arc<Core>,
    options: RequestOptions,
    decode: Decode<P>,
    digest: Digest<P>,
    guard: PageGuard,
    next: Option<Result<Request, Error>>,
    /// The request in flight, and its call.
    current: Option<(Request, CallFuture<P>)>,
}

impl<P> Pages<P> {
    pub(crate) fn new(
        core: Arc<Core>,
        first: Result<Request, Error>,
        options: RequestOptions,
        (decode, digest): (Decode<P>, Digest<P>),
    ) -> Self {
        let guard = PageGuard::default();
        Self { core, options, decode, digest, guard, next: Some(first), current: None }
    }

    /// Returns the next page; `None` after the last.
    ///
    /// # Errors
    ///
    /// Whatever ends a call, and [`ErrorKind::Paging`](crate::ErrorKind::Paging) for a link that
    /// leaves the origin or repeats.
    pub async fn try_next(&mut self) -> Result<Option<Response<P>>, Error> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await.transpose()
    }

    /// Starts the next call, if there is one.
    fn start(&mut self) -> Result<Option<&mut (Request, CallFuture<P>)>, Error> {
        if self.current.is_none() {
            let Some(request) = self.next.take().transpose()? else { return Ok(None) };
            self.guard
                .request(&request.http.url)
                .map_err(|problem| paging(problem.to_owned(), &request))?;
            let core = Arc::clone(&self.core);
            let call = CallFuture::new(core, Ok(request.clone()), self.options, self.decode);
            self.current = Some((request, call));
        }
        Ok(self.current.as_mut())
    }

    /// Checks a page, and notes where the one after it is.
    fn received(&mut self, page: &Response<P>, mut request: Request) -> Result<(), Error> {
        self.guard
            .received((self.digest)(page))
            .map_err(|problem| paging(problem.to_owned(), &request))?;
        self.next = match page.meta().next_page() {
            NextPage::None => None,
            NextPage::Refused(problem) => Some(Err(paging(problem, &request))),
            NextPage::At(url) => {
                request.http.url = url;
                Some(Ok(request))
            }
        };
        Ok(())
    }
}

impl<P> Stream for Pages<P> {
    type Item = Result<Response<P>, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let call = match this.start() {
            Ok(Some((_, call))) => call,
            Ok(None) => return Poll::Ready(None),
            Err(error) => return Poll::Ready(Some(Err(error))),
        };
        let result = ready!(Pin::new(call).poll(context));
        let request = this.current.take().map(|(request, _)| request);
        Poll::Ready(Some(result.and_then(|page| {
            if let Some(request) = request {
                this.received(&page, request)?;
            }
            Ok(page)
        })))
    }
}

impl<T: Unpin> Pages<Page<T>> {
    /// Turns the pages into their items.
    pub fn items(self) -> Items<T> {
        Items { pages: self, page: Vec::new().into_iter() }
    }
}

/// A stream of items, page after page, from
/// [`ListPets::items`](crate::operations::ListPets::items). It ends after its first error.
#[must_use = "a stream does nothing until it is polled"]
pub struct Items<T> {
    pages: Pages<Page<T>>,
    page: std::vec::IntoIter<T>,
}

impl<T: Unpin> Items<T> {
    /// Returns the next item; `None` after the last.
    ///
    /// # Errors
    ///
    /// Those of [`Pages::try_next`].
    pub async fn try_next(&mut self) -> Result<Option<T>, Error> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await.transpose()
    }

    /// Collects all items, at most `max`: a list may be longer than memory.
    ///
    /// # Errors
    ///
    /// Those of [`Pages::try_next`].
    pub async fn try_collect_max(mut self, max: usize) -> Result<Vec<T>, Error> {
        let mut items = Vec::new();
        while items.len() < max {
            match self.try_next().await? {
                Some(item) => items.push(item),
                None => break,
            }
        }
        Ok(items)
    }
}

impl<T: Unpin> Stream for Items<T> {
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

fn paging(problem: String, request: &Request) -> Error {
    Error::new(Failure::Paging(problem)).with_operation(request.operation.clone())
}

/// Notices a list without end, in 16 bytes a page.
#[derive(Debug, Default)]
struct PageGuard {
    asked: HashSet<u64>,
    contents: HashSet<u64>,
    empty: usize,
}

impl PageGuard {
    /// Refuses a URL that was asked for before.
    fn request(&mut self, url: &Url) -> Result<(), &'static str> {
        if self.asked.insert(digest(url.as_str())) {
            return Ok(());
        }
        Err("the service names a page as next that it has given before")
    }

    /// Refuses a page whose content, given by its digest, has come before, and endless empty ones.
    fn received(&mut self, content: Option<u64>) -> Result<(), &'static str> {
        let Some(content) = content else {
            self.empty += 1;
            if self.empty > MAX_EMPTY_PAGES {
                return Err("the service sends empty pages without end");
            }
            return Ok(());
        };
        self.empty = 0;
        if self.contents.insert(content) {
            return Ok(());
        }
        Err("the service sends the same page again under another address")
    }
}

/// Returns the digest of a page's items, if it has any.
pub(crate) fn items_digest<T: Hash>(page: &Page<T>) -> Option<u64> {
    (!page.is_empty()).then(|| digest(&page[..]))
}

/// Returns the digest of a page of any JSON; an empty array has no items.
pub(crate) fn body_digest(body: &Bytes) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_an_address_or_a_content_that_repeats() {
        let mut guard = PageGuard::default();
        let url: Url = "http://127.0.0.1:4010/v1/pets?limit=2".parse().unwrap();
        guard.request(&url).unwrap();
        assert!(guard.request(&url).is_err());
        guard.received(Some(1)).unwrap();
        guard.received(Some(2)).unwrap();
        assert!(guard.received(Some(1)).is_err());
    }

    #[test]
    fn gives_up_on_empty_pages_without_end() {
        let mut guard = PageGuard::default();
        for _ in 0..MAX_EMPTY_PAGES {
            guard.received(None).unwrap();
        }
        assert!(guard.received(None).is_err());
    }
}
