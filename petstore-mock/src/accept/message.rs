//! What RFC 9112 asks of a request and hyper lets pass: one `Host`, and no transfer coding that can't be
//! undone here.

use http::{
    HeaderValue, Request, Version,
    header::{HOST, TRANSFER_ENCODING},
};

use crate::error::{ApiError, ErrorCode};

/// Returns why a request is no request that HTTP allows, if it is none. HTTP/2 has neither header.
pub(super) fn refusal<B>(request: &Request<B>) -> Option<ApiError> {
    let (headers, version) = (request.headers(), request.version());
    if version == Version::HTTP_2 {
        return None;
    }
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    if codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"chunked")) {
        let message = "this transfer coding is not known here: send the body as it is, or chunked";
        return Some(ApiError::new(ErrorCode::NotImplemented, message));
    }
    let mut hosts = headers.get_all(HOST).iter();
    let message = match (hosts.next(), hosts.next()) {
        (None, _) if version == Version::HTTP_11 => "the Host header is missing",
        (_, Some(_)) => "there is more than one Host header: send exactly one",
        (Some(host), None) if !is_host(host) => "the Host header holds what is no host",
        _ => return None,
    };
    Some(ApiError::new(ErrorCode::BadRequest, message))
}

/// Whether a host and a port can be written like this (RFC 3986, section 3.2.2).
fn is_host(value: &HeaderValue) -> bool {
    let is_part = |byte: &u8| {
        byte.is_ascii_graphic()
            && !matches!(byte, b'"' | b'#' | b'/' | b'<'..=b'@' | b'\\' | b'^' | b'`' | b'{'..=b'}')
    };
    value.as_bytes().iter().all(is_part)
}
