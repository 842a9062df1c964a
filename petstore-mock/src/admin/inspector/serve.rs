//! The files of the page, all of them embedded.

use axum::{body::Body, extract::Path, response::Response};
use http::{
    HeaderName, HeaderValue,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE},
};

use crate::{admin::reply::not_found, error::ApiError};

/// Nothing from elsewhere, nothing inline, and nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Each file's name, media type and text.
const FILES: [(&str, &str, &str); 12] = [
    ("page.css", STYLE, include_str!("page.css")),
    ("main.js", SCRIPT, include_str!("main.js")),
    ("api.js", SCRIPT, include_str!("api.js")),
    ("clock.js", SCRIPT, include_str!("clock.js")),
    ("dom.js", SCRIPT, include_str!("dom.js")),
    ("faults.js", SCRIPT, include_str!("faults.js")),
    ("keys.js", SCRIPT, include_str!("keys.js")),
    ("pets.js", SCRIPT, include_str!("pets.js")),
    ("report.js", SCRIPT, include_str!("report.js")),
    ("requests.js", SCRIPT, include_str!("requests.js")),
    ("time.js", SCRIPT, include_str!("time.js")),
    ("timeline.js", SCRIPT, include_str!("timeline.js")),
];

/// `GET /_mock` and `/_mock/`: the page.
pub(in crate::admin) async fn page() -> Response {
    let mut response = text("text/html; charset=utf-8", include_str!("page.html"));
    set(&mut response, CONTENT_SECURITY_POLICY, POLICY);
    response
}

/// `GET /_mock/inspector/{file}`: what the page is made of.
pub(in crate::admin) async fn file(Path(name): Path<String>) -> Result<Response, ApiError> {
    let found = FILES.iter().find(|(known, ..)| *known == name);
    let (_, media_type, content) = found.ok_or_else(|| not_found("file", "GET /_mock/"))?;
    Ok(text(media_type, content))
}

fn text(media_type: &'static str, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    set(&mut response, CONTENT_TYPE, media_type);
    // A newer mock at the same port has newer files.
    set(&mut response, CACHE_CONTROL, "no-cache");
    response
}

fn set(response: &mut Response, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}
