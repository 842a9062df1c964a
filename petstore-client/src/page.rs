//! One page of a list, and the rules for going on to the next.
//!
//! Fetching pages is left to `api`.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;

use http::HeaderMap;
use url::Url;

use crate::error::{Error, Kind};
use crate::headers;
use crate::text::printable;

/// Empty pages in a row after which a list is taken for endless.
const MOST_EMPTY: usize = 100;

/// Whether more items may follow a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum More {
    /// This is the end: the page was not full, and the service offers no next one.
    No,
    /// The service offers a next page.
    Yes,
    /// The page is full, and the service offers no next one: how to page beyond `limit` is not
    /// specified, so there may be more that cannot be reached.
    Maybe,
}

/// One page of a list; derefs to a slice of its items.
#[derive(Debug, Clone)]
pub struct Page<T> {
    items: Vec<T>,
    next: Next,
    more: More,
}

/// Where the next page is.
#[derive(Debug, Clone)]
pub(crate) enum Next {
    None,
    At(Url),
    /// The service named a next page that must not be asked for, and why.
    Refused(String),
}

impl<T> Page<T> {
    /// Builds the page that `asked` (with room for `limit` items) returned.
    pub(crate) fn new(items: Vec<T>, limit: usize, headers: &HeaderMap, asked: &Url) -> Self {
        let next = next(headers, asked);
        let more = match next {
            Next::None if items.len() < limit => More::No,
            Next::None => More::Maybe,
            Next::At(_) | Next::Refused(_) => More::Yes,
        };
        Self { items, next, more }
    }

    /// Returns whether more items may follow.
    #[must_use]
    pub fn more(&self) -> More {
        self.more
    }

    /// Returns the address of the next page, where the service offers one that may be followed: to
    /// go on from there later, with [`ListPets::starting_at`](crate::ListPets::starting_at).
    #[must_use]
    pub fn next_url(&self) -> Option<&Url> {
        match &self.next {
            Next::At(url) => Some(url),
            Next::None | Next::Refused(_) => None,
        }
    }

    /// Returns the items.
    #[must_use]
    pub fn into_items(self) -> Vec<T> {
        self.items
    }

    /// Rewrites why the next page must not be asked for.
    pub(crate) fn map_refusal(mut self, change: impl FnOnce(String) -> String) -> Self {
        if let Next::Refused(problem) = self.next {
            self.next = Next::Refused(change(problem));
        }
        self
    }

    pub(crate) fn next(&self) -> &Next {
        &self.next
    }
}

impl<T> Deref for Page<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> IntoIterator for Page<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'p, T> IntoIterator for &'p Page<T> {
    type Item = &'p T;
    type IntoIter = std::slice::Iter<'p, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

/// Returns the target of the first `rel="next"`, resolved against the request's URL (RFC 8288,
/// section 3.1), and only where it stays on the origin that the key belongs to.
fn next(headers: &HeaderMap, asked: &Url) -> Next {
    let targets = headers::targets(headers, "next");
    let Some(target) = targets.first() else {
        return Next::None;
    };
    let shown = printable(target, 200);
    let Ok(mut url) = asked.join(target) else {
        return Next::Refused(format!("the link to the next page is no URL: {shown}"));
    };
    if !same_origin(&url, asked) {
        return Next::Refused(format!(
            "the link to the next page leads to another origin, where the key must not go: {shown}"
        ));
    }
    url.set_fragment(None);
    Next::At(url)
}

/// Returns whether two URLs have the same scheme, host and port, and the first no credentials.
pub(crate) fn same_origin(url: &Url, home: &Url) -> bool {
    url.scheme() == home.scheme()
        && url.host() == home.host()
        && url.port_or_known_default() == home.port_or_known_default()
        && url.username().is_empty()
        && url.password().is_none()
}

/// Notices a list that goes round in circles, in 16 bytes a page.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    asked: HashSet<u64>,
    contents: HashSet<u64>,
    empty: usize,
}

impl Guard {
    /// Refuses a URL that was asked for before.
    pub(crate) fn ask(&mut self, url: &Url) -> Result<(), Error> {
        if self.asked.insert(digest(url.as_str())) {
            return Ok(());
        }
        Err(circle("the service names a page as next that it has given before"))
    }

    /// Refuses a page whose items have all come before as one page, and endless empty ones.
    pub(crate) fn received<I: Hash>(&mut self, items: &[I]) -> Result<(), Error> {
        if items.is_empty() {
            self.empty += 1;
            if self.empty > MOST_EMPTY {
                return Err(circle("the service sends empty pages without end"));
            }
            return Ok(());
        }
        self.empty = 0;
        if self.contents.insert(digest(items)) {
            return Ok(());
        }
        Err(circle("the service sends the same page again under another address"))
    }
}

fn circle(problem: &str) -> Error {
    Error::new(Kind::Paging(problem.to_owned()))
}

fn digest<H: Hash + ?Sized>(value: &H) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: &str = "http://127.0.0.1:4010/v1/pets?limit=2";

    fn page(items: usize, link: Option<&str>) -> Page<usize> {
        let mut headers = HeaderMap::new();
        if let Some(link) = link {
            headers.insert(http::header::LINK, link.parse().unwrap());
        }
        Page::new((0..items).collect(), 2, &headers, &ASKED.parse().unwrap())
    }

    #[test]
    fn says_whether_more_may_exist() {
        assert_eq!(page(1, None).more(), More::No);
        assert_eq!(page(2, None).more(), More::Maybe);
        assert_eq!(page(0, Some("<?cursor=x>; rel=next")).more(), More::Yes);
    }

    #[test]
    fn resolves_a_relative_target_against_the_request() {
        for (target, expected) in [
            ("?cursor=x", "http://127.0.0.1:4010/v1/pets?cursor=x"),
            ("/v2/pets#top", "http://127.0.0.1:4010/v2/pets"),
            ("//127.0.0.1:4010/x", "http://127.0.0.1:4010/x"),
        ] {
            match page(2, Some(&format!("<{target}>; rel=next"))).next() {
                Next::At(url) => assert_eq!(url.as_str(), expected),
                other => panic!("{target}: {other:?}"),
            }
        }
    }

    #[test]
    fn never_follows_to_another_origin() {
        for target in [
            "http://127.0.0.1:4011/v1/pets",
            "https://127.0.0.1:4010/v1/pets",
            "http://localhost:4010/v1/pets",
            "//evil.example/v1/pets",
            "http://user@127.0.0.1:4010/v1/pets",
            "http://127.0.0.1:4010@evil.example/",
            "javascript:alert(1)",
        ] {
            let page = page(2, Some(&format!("<{target}>; rel=next")));
            assert!(matches!(page.next(), Next::Refused(_)), "{target}");
        }
    }

    #[test]
    fn refuses_an_address_or_a_content_that_repeats() {
        let mut guard = Guard::default();
        let url: Url = ASKED.parse().unwrap();
        guard.ask(&url).unwrap();
        assert!(guard.ask(&url).unwrap_err().is_paging());
        guard.received(&[1, 2]).unwrap();
        guard.received(&[3, 4]).unwrap();
        assert!(guard.received(&[1, 2]).unwrap_err().is_paging());
    }

    #[test]
    fn gives_up_on_empty_pages_without_end() {
        let mut guard = Guard::default();
        for _ in 0..MOST_EMPTY {
            guard.received::<i64>(&[]).unwrap();
        }
        assert!(guard.received::<i64>(&[]).unwrap_err().is_paging());
    }
}
