//! One page of a list, and the link to the next one.

use std::ops::Deref;

use http::HeaderMap;
use serde::{Serialize, Serializer};
use url::Url;

use crate::wire::base_url::same_origin;
use crate::wire::headers;
use crate::wire::redact::printable;

/// One page of a list. It derefs to a slice of its items, and is serialized as an array of them.
///
/// ```
/// # async fn show(client: petstore_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let mut page = client.pets().list().limit(50).await?;
/// page.items.sort_by(|a, b| a.name.cmp(&b.name));
/// println!("{}", serde_json::to_string(&page)?);
/// if page.has_more().is_none() {
///     println!("there may be more");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// The URL of the next page, if the service sends a valid one.
    /// [`ListPets::from_page`](crate::operations::ListPets::from_page) continues from there.
    pub next_url: Option<Url>,
    has_more: Option<bool>,
}

impl<T> Page<T> {
    /// Creates a page for up to `limit` items, with the [`next_page`] after it.
    pub(crate) fn new(items: Vec<T>, limit: usize, next: Result<Option<Url>, String>) -> Self {
        let has_more = match next {
            Ok(None) if items.len() < limit => Some(false),
            Ok(None) => None,
            _ => Some(true),
        };
        Self {
            items,
            next_url: next.ok().flatten(),
            has_more,
        }
    }

    /// Returns whether more items follow: the service sends a link to them, or the page is not full.
    /// A full page without a link is `None`: the specification does not define paging, so more items
    /// may exist that cannot be reached.
    #[must_use]
    pub fn has_more(&self) -> Option<bool> {
        self.has_more
    }
}

impl<T> Deref for Page<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T: Serialize> Serialize for Page<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.items.serialize(serializer)
    }
}

/// Creates the last page of a list.
impl<T> From<Vec<T>> for Page<T> {
    fn from(items: Vec<T>) -> Self {
        Self::new(items, usize::MAX, Ok(None))
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

/// Returns the first `rel="next"` of a response, resolved against the requested URL (RFC 8288,
/// section 3.1). Fails if it leaves the key's origin.
pub(crate) fn next_page(headers: &HeaderMap, asked: &Url) -> Result<Option<Url>, String> {
    let Some(target) = headers::link_targets(headers, "next").next() else {
        return Ok(None);
    };
    let refused = |why: &str| format!("{why}: {}", printable(target, 200));
    let mut url = asked
        .join(target)
        .map_err(|_| refused("the link to the next page is not a URL"))?;
    if !same_origin(&url, asked) {
        return Err(refused(
            "the next page is on another host, which must not get the API key",
        ));
    }
    url.set_fragment(None);
    Ok(Some(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_iterated_by_value_and_by_reference() {
        let page = Page::new(vec![1, 2], 2, Ok(None));
        assert_eq!((&page).into_iter().copied().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(page.into_iter().collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn the_error_of_a_long_link_shows_its_first_200_characters() {
        let link = format!("http://evil.example/{}", "a".repeat(181));
        let headers = [(
            http::header::LINK,
            format!("<{link}>; rel=next").parse().unwrap(),
        )];
        let asked = Url::parse("https://petstore.example/v1/pets").unwrap();
        let error = next_page(&headers.into_iter().collect(), &asked).unwrap_err();
        assert!(error.ends_with(&format!(": {}…", &link[..200])), "{error}");
    }
}
