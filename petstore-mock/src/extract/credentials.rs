//! The API key, as the specification's section 5 wants it: one `Authorization: Bearer KEY`. Whether
//! such a key exists is left to `world`.

use http::{HeaderMap, header::AUTHORIZATION};

use crate::error::ApiError;

/// The challenge of RFC 6750, section 3, to who sent no key.
const CHALLENGE: &str = "Bearer realm=\"petstore\"";
/// The same to who sent one that is no good.
const INVALID_TOKEN: &str = "Bearer realm=\"petstore\", error=\"invalid_token\"";

/// What is wrong with the key of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyFault {
    Missing,
    Repeated,
    NotBearer,
    Empty,
    /// Spaces, or bytes beyond ASCII.
    Malformed,
    Unknown,
}

impl From<KeyFault> for ApiError {
    /// No message repeats what was sent: it may be a key after all.
    fn from(fault: KeyFault) -> Self {
        match fault {
            KeyFault::Missing => Self::unauthorized(
                "the API key is missing: send it as `Authorization: Bearer KEY`",
                CHALLENGE,
            ),
            KeyFault::Repeated => Self::unauthorized(
                "there is more than one Authorization header: send exactly one",
                CHALLENGE,
            ),
            KeyFault::NotBearer => Self::unauthorized(
                "the Authorization header has another scheme: send `Authorization: Bearer KEY`",
                CHALLENGE,
            ),
            KeyFault::Empty => Self::unauthorized(
                "the API key is empty: send it after `Authorization: Bearer `",
                CHALLENGE,
            ),
            KeyFault::Malformed => Self::unauthorized(
                "the API key holds a space or a character beyond ASCII, which no key does",
                INVALID_TOKEN,
            ),
            KeyFault::Unknown => Self::unauthorized(
                "the API key is not known: check it for a typing error, or give it to the mock \
                 with --key KEY=PLAN",
                INVALID_TOKEN,
            ),
        }
    }
}

/// Returns the key that a request was sent with.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<&str, KeyFault> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(KeyFault::Missing)?;
    if values.next().is_some() {
        return Err(KeyFault::Repeated);
    }
    let bytes = value.as_bytes();
    let (scheme, rest) = match bytes.iter().position(|byte| *byte == b' ') {
        Some(space) => bytes.split_at(space),
        None => (bytes, &b""[..]),
    };
    if scheme.is_empty() {
        return Err(KeyFault::Missing);
    }
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Err(KeyFault::NotBearer);
    }
    let token = rest.trim_ascii();
    if token.is_empty() {
        return Err(KeyFault::Empty);
    }
    if !token.iter().all(u8::is_ascii_graphic) {
        return Err(KeyFault::Malformed);
    }
    // All of it is ASCII, so this can't fail.
    std::str::from_utf8(token).map_err(|_| KeyFault::Malformed)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(values: &[&'static [u8]]) -> Result<String, KeyFault> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        bearer(&headers).map(str::to_owned)
    }

    #[test]
    fn finds_the_key_whatever_the_case_of_the_scheme() {
        for value in [&b"Bearer k=1/2"[..], b"bearer k=1/2", b"BEARER   k=1/2"] {
            assert_eq!(of(&[value]).as_deref(), Ok("k=1/2"));
        }
    }

    #[test]
    fn says_what_is_wrong() {
        assert_eq!(of(&[]), Err(KeyFault::Missing));
        assert_eq!(of(&[b""]), Err(KeyFault::Missing));
        assert_eq!(of(&[b"Bearer a", b"Bearer a"]), Err(KeyFault::Repeated));
        assert_eq!(of(&[b"Basic abc"]), Err(KeyFault::NotBearer));
        assert_eq!(of(&[b"free-key"]), Err(KeyFault::NotBearer));
        assert_eq!(of(&[b"Bearer"]), Err(KeyFault::Empty));
        assert_eq!(of(&[b"Bearer  "]), Err(KeyFault::Empty));
        assert_eq!(of(&[b"Bearer a b"]), Err(KeyFault::Malformed));
        assert_eq!(of(&[b"Bearer \xff"]), Err(KeyFault::Malformed));
    }
}
