//! Headers that a program adds to requests.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::wire::redact::printable;

/// Adds those headers whose names are missing.
pub(crate) fn add_missing(headers: &mut HeaderMap, others: &HeaderMap) {
    for name in others.keys() {
        if !headers.contains_key(name) {
            for value in others.get_all(name) {
                headers.append(name, value.clone());
            }
        }
    }
}

/// Headers that only the client sets: a second `Authorization` or `Host` could misdirect the key,
/// and a wrong length would break the connection for the next request.
const RESERVED: [HeaderName; 5] = [
    header::AUTHORIZATION,
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
];

/// Checks a header that a program adds to requests.
pub(crate) fn additional_header<V: TryInto<HeaderValue>>(
    name: &str,
    value: V,
) -> Result<(HeaderName, HeaderValue), String> {
    let Ok(name) = HeaderName::try_from(name) else {
        return Err(format!(
            "`{}` is not a valid header name",
            printable(name, 60)
        ));
    };
    if RESERVED.contains(&name) {
        return Err(format!("the client sets the header `{name}` itself"));
    }
    match value.try_into() {
        Ok(value) => Ok((name, value)),
        Err(_) => Err(format!("the value of the header `{name}` is invalid")),
    }
}
