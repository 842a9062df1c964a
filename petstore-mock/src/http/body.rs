//! Reads the bodies of requests with a size limit, and reads and writes JSON.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use http_body_util::BodyExt;
use hyper::body::Body;
use serde::{Serialize, de::DeserializeOwned};

use super::error::{ApiError, ErrorCode, JSON};
use crate::text::read_json;

/// The maximum size of a body for the service: 1 MiB.
pub(crate) const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The part of a body that was read, and why it is not the whole body.
#[derive(Default)]
pub(crate) struct ReadBody {
    read: Vec<u8>,
    error: Option<ApiError>,
}

impl ReadBody {
    /// Reads a body of at most `limit` bytes.
    pub(crate) async fn new<B>(mut body: B, limit: usize) -> Self
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let too_large = || {
            let message = format!("the body exceeds {limit} bytes: send less");
            ApiError::new(ErrorCode::PayloadTooLarge, message)
        };
        let mut this = Self::default();
        // If the announced length is too large, refuse it without reading the body.
        if body.size_hint().lower() > limit as u64 {
            this.error = Some(too_large());
            return this;
        }
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                let message = "the body could not be read to its end: send it whole";
                this.error = Some(ApiError::new(ErrorCode::InvalidBody, message));
                return this;
            };
            if let Ok(data) = frame.into_data() {
                this.read.extend_from_slice(&data);
            }
            if this.read.len() > limit {
                this.error = Some(too_large());
                return this;
            }
        }
        this
    }

    /// Whether the client may still send a part of the body.
    pub(crate) fn is_partial(&self) -> bool {
        self.error.is_some()
    }

    /// Returns what was read, whole or not.
    pub(crate) fn read(&self) -> &[u8] {
        &self.read
    }

    /// Returns the whole body.
    pub(crate) fn whole(self) -> Result<Vec<u8>, ApiError> {
        self.error.map_or(Ok(self.read), Err)
    }
}

/// Parses a JSON object. Errors contain `example`.
pub(crate) fn read_object<T: DeserializeOwned>(body: &[u8], example: &str) -> Result<T, ApiError> {
    let invalid = |message| Err(ApiError::new(ErrorCode::InvalidBody, message));
    if let Err(error) = str::from_utf8(body) {
        return invalid(format!("the body is not UTF-8, as JSON must be: {error}"));
    }
    // A derived struct would also accept an array of its fields.
    if !body.trim_ascii_start().starts_with(b"{") {
        return invalid(format!(
            "the body must be one JSON object, such as {example}"
        ));
    }
    read_json(body).or_else(|what| invalid(format!("invalid body: {what}; send {example}")))
}

/// Refuses a body whose content type is not JSON.
pub(crate) fn check_is_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let unsupported = |message| Err(ApiError::new(ErrorCode::UnsupportedMediaType, message));
    let is_plain = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(CONTENT_ENCODING).iter().all(is_plain) {
        return unsupported("the body is compressed or otherwise encoded: send it as plain JSON");
    }
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    match (types.next(), types.next()) {
        (Some(one), None) if is_json(one.as_bytes()) => Ok(()),
        (None, _) => {
            unsupported("the body has no media type: send `Content-Type: application/json`")
        }
        _ => unsupported(
            "the content type of the body is not JSON in UTF-8: send `Content-Type: application/json`",
        ),
    }
}

/// JSON is UTF-8 (RFC 8259, section 8.1), which includes US-ASCII. Ignores parameters other than
/// `charset`.
fn is_json(media_type: &[u8]) -> bool {
    let text = String::from_utf8_lossy(media_type).to_ascii_lowercase();
    let mut parts = text.split(';').map(str::trim);
    let essence = parts.next();
    let mut charsets = parts.filter_map(|parameter| parameter.strip_prefix("charset="));
    let is_utf8 = |charset: &str| {
        let charset = charset.trim_matches('"');
        matches!(charset, "utf-8" | "utf8" | "us-ascii")
    };
    essence == Some("application/json") && charsets.all(is_utf8)
}

/// Returns a response with this JSON.
pub(crate) fn json_response(status: StatusCode, json: Bytes) -> Response<Bytes> {
    let mut response = Response::new(json);
    *response.status_mut() = status;
    // This is enough for most responses, and avoids reallocation.
    *response.headers_mut() = HeaderMap::with_capacity(8);
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// Returns a response with this value as its body.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response<Bytes> {
    json_response(status, to_json(value))
}

/// Serializes a value of the mock.
pub(crate) fn to_json(value: &impl Serialize) -> Bytes {
    let json = serde_json::to_vec(value);
    json.expect("every value of the mock can be JSON").into()
}
