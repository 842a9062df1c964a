//! What every response of `GET /pets/{petId}` announces (specification, section 9): since when it is
//! deprecated (RFC 9745), when it is removed (RFC 8594), and what takes its place (RFC 5829).

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, header::LINK};

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
/// 5 December 2025: an assumption, since the specification does not say when the deprecation began.
const SINCE: HeaderValue = HeaderValue::from_static("@1764892800");

const SUNSET: HeaderName = HeaderName::from_static("sunset");
const REMOVED_ON: HeaderValue = HeaderValue::from_static("Thu, 05 Dec 2030 00:00:00 GMT");

const SUCCESSOR: HeaderValue = HeaderValue::from_static("</v1/pets>; rel=\"successor-version\"");

/// Adds the announcement to a response, be it a pet or an error.
pub(super) fn deprecated(mut response: Response<Bytes>) -> Response<Bytes> {
    let headers = response.headers_mut();
    // Also for those that every answer has, so that they are moved once.
    headers.reserve(8);
    headers.insert(DEPRECATION, SINCE);
    headers.insert(SUNSET, REMOVED_ON);
    headers.append(LINK, SUCCESSOR);
    response
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::operation::REMOVAL;

    #[test]
    fn the_dates_agree_with_one_another() {
        assert_eq!(REMOVED_ON.to_str().unwrap(), httpdate::fmt_http_date(UNIX_EPOCH + REMOVAL));
        let since = SINCE.to_str().unwrap().trim_start_matches('@').parse().unwrap();
        assert_eq!(
            httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(since)),
            "Fri, 05 Dec 2025 00:00:00 GMT"
        );
    }
}
