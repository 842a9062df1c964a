//! The header fields of a message in one piece of memory: a header map would keep alive the whole
//! buffer that the message was read into, however little of it the message is.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{AUTHORIZATION, PROXY_AUTHORIZATION},
};

use super::masking::{MASK, is_credential_field};

/// The fields of one message: of each the length of its name, the name, the length of its value and the
/// value, so that a field is found without a look at what is between. The values that are secrets by
/// definition are not in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(Box<[u8]>);

impl Fields {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let length = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 8);
        let mut all = Vec::with_capacity(length.sum());
        for (name, value) in headers {
            for part in [name.as_str().as_bytes(), without_secret(name, value)] {
                // No head is longer than a few MiB.
                all.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
                all.extend_from_slice(part);
            }
        }
        Self(all.into_boxed_slice())
    }

    /// Returns the fields as a map, in the order they came in.
    pub(crate) fn to_map(&self) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in self.iter() {
            let name = HeaderName::from_bytes(name);
            // They were in a map before, so neither is refused now.
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
                map.append(name, value);
            }
        }
        map
    }

    /// Returns the first value of a field; its name is in lower case.
    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(one, _)| *one == name.as_bytes()).map(|(_, value)| value)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let (name, after) = part(rest)?;
            let (value, after) = part(after)?;
            rest = after;
            Some((name, value))
        })
    }
}

/// Returns the part that bytes begin with, and those after it.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

/// Returns the value, or what may be kept of it.
fn without_secret<'a>(name: &HeaderName, value: &'a HeaderValue) -> &'a [u8] {
    if name == AUTHORIZATION || name == PROXY_AUTHORIZATION {
        let value = value.as_bytes();
        if value.len() > 7 && value[..7].eq_ignore_ascii_case(b"bearer ") {
            return b"Bearer ***";
        }
        return MASK.as_bytes();
    }
    let is_secret = is_credential_field(name) || value.is_sensitive();
    if is_secret { MASK.as_bytes() } else { value.as_bytes() }
}

#[cfg(test)]
mod tests {
    use http::header::COOKIE;

    use super::*;

    #[test]
    fn gives_back_what_it_was_given_but_the_secrets() {
        let mut map = HeaderMap::new();
        map.append("accept", HeaderValue::from_static("a: b"));
        map.append("x-a", HeaderValue::from_static(""));
        map.append("x-a", HeaderValue::from_bytes(b"\xff").unwrap());
        map.append(AUTHORIZATION, HeaderValue::from_static("bearer secret"));
        map.append(AUTHORIZATION, HeaderValue::from_static("secret"));
        map.append(COOKIE, HeaderValue::from_static("secret"));
        let back = Fields::of(&map).to_map();
        let seen: Vec<_> =
            back.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        assert_eq!(
            seen,
            [
                ("accept", &b"a: b"[..]),
                ("x-a", b""),
                ("x-a", b"\xff"),
                ("authorization", b"Bearer ***"),
                ("authorization", b"***"),
                ("cookie", b"***"),
            ]
        );
    }

    #[test]
    fn finds_a_field() {
        let mut map = HeaderMap::new();
        map.append("retry-after", HeaderValue::from_static("50"));
        let fields = Fields::of(&map);
        assert_eq!(fields.get("retry-after"), Some(&b"50"[..]));
        assert_eq!(fields.get("retry"), None);
    }
}
