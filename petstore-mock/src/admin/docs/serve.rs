//! The files of the page, all of them embedded.

use axum::{body::Body, response::Response};
use http::{
    HeaderName, HeaderValue,
    header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE},
};

/// Nothing from elsewhere, and nobody's frame. Swagger UI sets styles from its script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      connect-src 'self'; img-src 'self' data:; font-src data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// `GET /_mock/docs` and `/_mock/docs/admin`: the page of either document.
pub(in crate::admin) async fn page() -> Response {
    let html = include_str!("page.html");
    let mut response = text("text/html; charset=utf-8", html);
    set(&mut response, CONTENT_SECURITY_POLICY, POLICY);
    response
}

/// `GET /_mock/docs/page.css`.
pub(in crate::admin) async fn style() -> Response {
    text("text/css; charset=utf-8", include_str!("page.css"))
}

/// `GET /_mock/docs/page.js`.
pub(in crate::admin) async fn script() -> Response {
    text("text/javascript; charset=utf-8", include_str!("page.js"))
}

/// `GET /_mock/docs/swagger-ui.css`.
pub(in crate::admin) async fn ui_style() -> Response {
    let gz = include_bytes!(concat!(env!("OUT_DIR"), "/swagger-ui.css.gz"));
    gzipped("text/css; charset=utf-8", gz)
}

/// `GET /_mock/docs/swagger-ui-bundle.js`.
pub(in crate::admin) async fn bundle() -> Response {
    let gz = include_bytes!(concat!(env!("OUT_DIR"), "/swagger-ui-bundle.js.gz"));
    gzipped("text/javascript; charset=utf-8", gz)
}

fn text(media_type: &'static str, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    set(&mut response, CONTENT_TYPE, media_type);
    response
}

/// Every browser takes gzip, so it is not unpacked for anyone.
fn gzipped(media_type: &'static str, gz: &'static [u8]) -> Response {
    let mut response = Response::new(Body::from(gz));
    set(&mut response, CONTENT_TYPE, media_type);
    set(&mut response, CONTENT_ENCODING, "gzip");
    set(&mut response, CACHE_CONTROL, "max-age=600");
    response
}

fn set(response: &mut Response, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}
