//! The body of a request: said to be JSON, of a bounded length, and UTF-8. What the JSON has to say
//! is left to who asks for it.

use std::{error::Error, iter::successors};

use axum::BoxError;
use bytes::Bytes;
use http::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as HttpBody;

use crate::error::{ApiError, ErrorCode};

/// The longest body that the service takes: 1 MiB.
const LONGEST: usize = 1024 * 1024;

/// Why a body can't be read: it took too long to arrive.
#[derive(Debug, thiserror::Error)]
#[error("the body took too long to arrive")]
pub(crate) struct TooSlow;

/// A body of whatever media type.
#[derive(Debug)]
pub(crate) struct Text(Bytes);

impl Text {
    /// Reads a body of at most so many bytes.
    pub(crate) async fn read<B>(body: B, longest: usize) -> Result<Self, ApiError>
    where
        B: HttpBody<Data = Bytes, Error: Into<BoxError>>,
    {
        let too_large = || {
            ApiError::new(
                ErrorCode::PayloadTooLarge,
                format!("the body is longer than the {longest} bytes that are taken: send less"),
            )
        };
        // A length that was announced is refused without reading any of it.
        if body.size_hint().lower() > longest as u64 {
            return Err(too_large());
        }
        match Limited::new(body, longest).collect().await {
            Ok(collected) => Ok(Self(collected.to_bytes())),
            Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
            Err(error) if is_too_slow(&*error) => Err(ApiError::new(
                ErrorCode::RequestTimeout,
                "the body of the request took too long to arrive",
            )
            .and_close()),
            Err(_) => Err(ApiError::new(
                ErrorCode::InvalidBody,
                "the body could not be read to its end: send it whole",
            )
            .and_close()),
        }
    }

    pub(crate) fn as_str(&self) -> Result<&str, ApiError> {
        std::str::from_utf8(&self.0).map_err(|error| {
            let at = error.valid_up_to();
            let before = &self.0[..at];
            let line_start =
                before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let column = at - line_start + 1;
            ApiError::new(
                ErrorCode::InvalidBody,
                format!("the body is not UTF-8 at line {line} column {column}: JSON must be"),
            )
        })
    }
}

/// Reads a body that must be said to be JSON.
pub(super) async fn json_text<B>(request: http::Request<B>) -> Result<Text, ApiError>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>>,
{
    check_is_json(request.headers())?;
    Text::read(request.into_body(), LONGEST).await
}

fn check_is_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let unsupported = |message| Err(ApiError::new(ErrorCode::UnsupportedMediaType, message));
    if headers.contains_key(CONTENT_ENCODING) {
        return unsupported("the body is compressed or otherwise encoded: send it as plain JSON");
    }
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    match (types.next(), types.next()) {
        (Some(one), None) if is_json(one.as_bytes()) => Ok(()),
        (None, _) => {
            unsupported("the body has no media type: send `Content-Type: application/json`")
        }
        _ => unsupported("the body is not said to be JSON: send `Content-Type: application/json`"),
    }
}

/// Parameters such as `charset=utf-8` are allowed, and mean nothing (RFC 8259, section 11).
fn is_json(media_type: &[u8]) -> bool {
    let essence = media_type.split(|byte| *byte == b';').next();
    essence.is_some_and(|it| it.trim_ascii().eq_ignore_ascii_case(b"application/json"))
}

fn is_too_slow(error: &(dyn Error + 'static)) -> bool {
    successors(Some(error), |&error| error.source()).any(<dyn Error>::is::<TooSlow>)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_json_with_or_without_parameters() {
        for media_type in
            ["application/json", "Application/JSON; charset=utf-8", "application/json ;x=y"]
        {
            assert!(is_json(media_type.as_bytes()), "{media_type}");
        }
        for media_type in ["", "text/json", "application/jsonx", "application/problem+json", ";"] {
            assert!(!is_json(media_type.as_bytes()), "{media_type}");
        }
    }
}
