//! `GET /_mock/openapi.yaml` and `.json`, `/_mock/admin.yaml` and `.json`: what the mock takes and
//! answers, for tools.

use axum::{body::Body, response::Response};
use http::{HeaderValue, header::CONTENT_TYPE};

use crate::{error::JSON, openapi::OpenApi};

/// RFC 9512.
const YAML: HeaderValue = HeaderValue::from_static("application/yaml");

pub(super) fn yaml(document: OpenApi) -> Response {
    answer(YAML, document.yaml())
}

pub(super) fn json(document: OpenApi) -> Response {
    answer(JSON, document.json())
}

fn answer(media_type: HeaderValue, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}
