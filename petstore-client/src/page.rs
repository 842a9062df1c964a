//! One page of a list, and the rules for following the link to the next one.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;

use http::HeaderMap;
use url::Url;

use crate::http::base_url::same_origin;
use crate::http::headers;
use crate::redact::printable;

/// Empty pages in a row after which a list is taken for endless.
const MAX_EMPTY_PAGES: usize = 100;

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
    next: NextPage,
    more: More,
}

/// Where the next page is.
#[derive(Debug, Clone)]
pub(crate) enum NextPage {
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
            NextPage::None if items.len() < limit => More::No,
            NextPage::None => More::Maybe,
            NextPage::At(_) | NextPage::Refused(_) => More::Yes,
        };
        Self { items, next, more }
    }

    /// Returns whether more items may follow.
    #[must_use]
    pub fn more(&self) -> More {
        self.more
    }

    /// Returns the address of the next page, where the service offers one that may be followed: to
    /// go on from there later, with [`ListPets::from_page`](crate::operations::ListPets::from_page).
    #[must_use]
    pub fn next_url(&self) -> Option<&Url> {
        match &self.next {
            NextPage::At(url) => Some(url),
            NextPage::None | NextPage::Refused(_) => None,
        }
    }

    /// Returns the items.
    #[must_use]
    pub fn into_items(self) -> Vec<T> {
        self.items
    }

    /// Rewrites why the next page must not be asked for.
    pub(crate) fn map_refusal(mut self, change: impl FnOnce(String) -> String) -> Self {
        if let NextPage::Refused(problem) = self.next {
            self.next = NextPage::Refused(change(problem));
        }
        self
    }

    pub(crate) fn next(&self) -> &NextPage {
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
fn next(headers: &HeaderMap, asked: &Url) -> NextPage {
    let targets = headers::link_targets(headers, "next");
    let Some(target) = targets.first() else {
        return NextPage::None;
    };
    let shown = printable(target, 200);
    let Ok(mut url) = asked.join(target) else {
        return NextPage::Refused(format!("the link to the next page is no URL: {shown}"));
    };
    if !same_origin(&url, asked) {
        return NextPage::Refused(format!(
            "the link to the next page leads to another origin, where the key must not go: {shown}"
        ));
    }
    url.set_fragment(None);
    NextPage::At(url)
}

/// Notices a list without end, in 16 bytes a page.
#[derive(Debug, Default)]
pub(crate) struct PageGuard {
    asked: HashSet<u64>,
    contents: HashSet<u64>,
    empty: usize,
}

impl PageGuard {
    /// Refuses a URL that was asked for before.
    pub(crate) fn request(&mut self, url: &Url) -> Result<(), &'static str> {
        if self.asked.insert(digest(url.as_str())) {
            return Ok(());
        }
        Err("the service names a page as next that it has given before")
    }

    /// Refuses a page whose items have all come before as one page, and endless empty ones.
    pub(crate) fn received<I: Hash>(&mut self, items: &[I]) -> Result<(), &'static str> {
        if items.is_empty() {
            self.empty += 1;
            if self.empty > MAX_EMPTY_PAGES {
                return Err("the service sends empty pages without end");
            }
            return Ok(());
        }
        self.empty = 0;
        if self.contents.insert(digest(items)) {
            return Ok(());
        }
        Err("the service sends the same page again under another address")
    }
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
                NextPage::At(url) => assert_eq!(url.as_str(), expected),
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
            assert!(matches!(page.next(), NextPage::Refused(_)), "{target}");
        }
    }

    #[test]
    fn refuses_an_address_or_a_content_that_repeats() {
        let mut guard = PageGuard::default();
        let url: Url = ASKED.parse().unwrap();
        guard.request(&url).unwrap();
        assert!(guard.request(&url).is_err());
        guard.received(&[1, 2]).unwrap();
        guard.received(&[3, 4]).unwrap();
        assert!(guard.received(&[1, 2]).is_err());
    }

    #[test]
    fn gives_up_on_empty_pages_without_end() {
        let mut guard = PageGuard::default();
        for _ in 0..MAX_EMPTY_PAGES {
            guard.received::<i64>(&[]).unwrap();
        }
        assert!(guard.received::<i64>(&[]).is_err());
    }
}
