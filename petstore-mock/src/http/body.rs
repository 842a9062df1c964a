//! Reads the bodies of requests with a size limit, and writes JSON.

use axum::BoxError;
use bytes::Bytes;
use http::{
    HeaderMap, Response, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as HttpBody;
use serde::Serialize;

use super::error::{ApiError, ErrorCode, JSON};

/// The maximum size of a body for the service: 1 MiB.
pub(crate) const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The usual number of fields of a response, to avoid reallocation.
const HEADER_FIELDS: usize = 8;

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read_body<B>(body: B, limit: usize) -> Result<Bytes, ApiError>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>>,
{
    let too_large = || {
        let message = format!("the body exceeds {limit} bytes: send less");
        ApiError::new(ErrorCode::PayloadTooLarge, message)
    };
    // If the announced length is too large, refuse it without reading the body.
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => {
            let message = "the body could not be read to its end: send it whole";
            Err(ApiError::new(ErrorCode::InvalidBody, message).and_close())
        }
    }
}

/// Refuses a body whose content type is not JSON.
pub(crate) fn check_is_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let unsupported = |message| Err(ApiError::new(ErrorCode::UnsupportedMediaType, message));
    if headers.contains_key(CONTENT_ENCODING) {
        return unsupported("the body is compressed or otherwise encoded: send it as plain JSON");
    }
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    match (types.next(), types.next()) {
        (Some(one), None) if is_json(one.as_bytes()) => check_charset(one.as_bytes()),
        (None, _) => {
            unsupported("the body has no media type: send `Content-Type: application/json`")
        }
        _ => unsupported(
            "the content type of the body is not JSON: send `Content-Type: application/json`",
        ),
    }
}

fn is_json(media_type: &[u8]) -> bool {
    let essence = media_type.split(|byte| *byte == b';').next();
    essence.is_some_and(|it| it.trim_ascii().eq_ignore_ascii_case(b"application/json"))
}

/// JSON is UTF-8 (RFC 8259, section 8.1), which includes US-ASCII. Ignores parameters other than
/// `charset`.
fn check_charset(media_type: &[u8]) -> Result<(), ApiError> {
    let text = String::from_utf8_lossy(media_type).to_ascii_lowercase();
    let parameters = text
        .split(';')
        .skip(1)
        .filter_map(|parameter| parameter.split_once('='));
    let mut charsets = parameters.filter(|(name, _)| name.trim() == "charset");
    let is_utf8 = |charset: &str| {
        matches!(
            charset.trim().trim_matches('"'),
            "utf-8" | "utf8" | "us-ascii"
        )
    };
    if charsets.all(|(_, charset)| is_utf8(charset)) {
        return Ok(());
    }
    let message = "the body is not said to be UTF-8: send `Content-Type: application/json`";
    Err(ApiError::new(ErrorCode::UnsupportedMediaType, message))
}

/// Returns a response with this JSON.
pub(crate) fn json_response(status: StatusCode, json: Bytes) -> Response<Bytes> {
    let mut response = Response::new(json);
    *response.status_mut() = status;
    *response.headers_mut() = HeaderMap::with_capacity(HEADER_FIELDS);
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// Returns a response with this value as its body.
pub(crate) fn json(
    status: StatusCode,
    value: &impl Serialize,
) -> Result<Response<Bytes>, ApiError> {
    Ok(json_response(status, to_json(value)?))
}

/// Serializes a value.
pub(crate) fn to_json(value: &impl Serialize) -> Result<Bytes, ApiError> {
    let unwritten = |_| ApiError::internal("the response could not be written as JSON");
    serde_json::to_vec(value)
        .map(Bytes::from)
        .map_err(unwritten)
}
