//! The parameters of a query string: each at most once, and decoded without guessing. What values
//! they may have is left to who asks for them.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::error::{ApiError, ErrorCode};

/// Returns the decoded value of the parameter `name`, or nothing if it is not there.
///
/// Parameters that nobody asks for are ignored, broken or not.
pub(crate) fn single<'q>(query: &'q str, name: &str) -> Result<Option<Cow<'q, str>>, ApiError> {
    let mut found = None;
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if decode(key).as_deref() != Some(name) {
            continue;
        }
        if found.replace(value).is_some() {
            return Err(invalid(format!(
                "the query parameter `{name}` is given more than once: give it once"
            )));
        }
    }
    let decoded = found.map(|value| {
        decode(value).ok_or_else(|| {
            invalid(format!(
                "the query parameter `{name}` is not percent-encoded UTF-8: encode it again"
            ))
        })
    });
    decoded.transpose()
}

pub(super) fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorCode::InvalidParameter, message)
}

/// Decodes `%XX` and `+`; returns nothing where a `%` is not followed by two hexadecimal digits, or
/// where the outcome is not UTF-8.
fn decode(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.contains(['%', '+']) {
        return Some(Cow::Borrowed(raw));
    }
    let encoded = raw.replace('+', " ");
    let whole = encoded.split('%').skip(1).all(|after| {
        let digits = after.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    if !whole {
        return None;
    }
    let text = percent_decode_str(&encoded).decode_utf8().ok()?;
    Some(Cow::Owned(text.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(query: &str) -> Option<String> {
        single(query, "limit").unwrap().map(Cow::into_owned)
    }

    #[test]
    fn finds_a_parameter_among_others() {
        assert_eq!(value("a=%zz&limit=5&&b"), Some("5".to_owned()));
        assert_eq!(value("%6Cimit=%35+"), Some("5 ".to_owned()));
        assert_eq!(value("limit"), Some(String::new()));
        assert_eq!(value("Limit=5&limits=6"), None);
        assert_eq!(value(""), None);
    }

    #[test]
    fn refuses_a_parameter_given_twice_or_broken() {
        for query in ["limit=5&limit=5", "limit&%6cimit=1", "limit=%", "limit=%1", "limit=%ff"] {
            assert!(single(query, "limit").is_err(), "{query}");
        }
    }
}
