//! What is wrong with how a key was sent, for the compliance report: it changes nothing about the
//! answer.

use std::hash::{DefaultHasher, Hash, Hasher};

use http::{HeaderMap, Request, header::AUTHORIZATION};
use percent_encoding::percent_decode_str;

use super::auth::CredentialError;
use crate::{exchange::KeyFlaw, world::World};

/// Names of query parameters that hold keys elsewhere.
const NAMES: [&str; 8] =
    ["api_key", "apikey", "api-key", "key", "token", "access_token", "authorization", "auth"];

/// What is shorter than this is not looked up: it is a word of the service's own.
const SHORTEST: usize = 8;

/// Returns what is wrong with how a key was sent, if anything is.
pub(crate) fn key_flaw<B>(
    request: &Request<B>,
    wrong: Option<CredentialError>,
    world: &World,
) -> Option<KeyFlaw> {
    let is_key = |text: &str| text.len() >= SHORTEST && world.has_key(text);
    let uri = request.uri();
    if uri.query().is_some_and(|query| in_query(query, is_key)) || uri.path().split('/').any(is_key)
    {
        return Some(KeyFlaw::InUrl);
    }
    (wrong == Some(CredentialError::NotBearer)).then_some(KeyFlaw::OtherScheme)
}

fn in_query(query: &str, is_key: impl Fn(&str) -> bool) -> bool {
    query.split('&').any(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let is_named = || NAMES.iter().any(|one| one.eq_ignore_ascii_case(name));
        let is_key = || match percent_decode_str(value).decode_utf8() {
            Ok(value) => is_key(&value),
            Err(_) => false,
        };
        !value.is_empty() && (is_named() || is_key())
    })
}

/// Returns a number that differs where the credentials of strangers do.
pub(crate) fn credentials(headers: &HeaderMap, wrong: Option<CredentialError>) -> u64 {
    if wrong.is_none() {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    headers.get_all(AUTHORIZATION).iter().for_each(|value| value.as_bytes().hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_keys_and_what_is_called_one() {
        let is_key = |text: &str| text == "free-key";
        for query in ["a=free-key", "limit=5&x=free%2dkey", "API_KEY=x", "token=1&limit=5"] {
            assert!(in_query(query, is_key), "{query}");
        }
        for query in ["", "limit=5", "token=", "token", "free-key", "a=free-key2", "a=%ff"] {
            assert!(!in_query(query, is_key), "{query}");
        }
    }
}
