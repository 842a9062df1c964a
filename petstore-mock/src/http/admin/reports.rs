//! `GET /_mock/report`: what the clients did that they should not, in the format that is asked for by
//! name or by `Accept`.

use std::sync::Arc;

use axum::{body::Body, extract::State, response::Response};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};

use crate::{report::Report, state::AppState};

/// A path of its own for a format, its media type, and how it is written.
pub(super) type Format = (&'static str, &'static str, fn(&Report) -> String);

/// The first one is for who takes anything.
pub(super) const FORMATS: [Format; 4] = [
    ("/_mock/report.json", "application/json", Report::to_json),
    ("/_mock/report.txt", "text/plain; charset=utf-8", Report::to_text),
    ("/_mock/report.md", "text/markdown; charset=utf-8", Report::to_markdown),
    ("/_mock/report.xml", "application/xml", Report::to_junit),
];

/// `GET /_mock/report`.
pub(super) async fn negotiated(State(app): State<Arc<AppState>>, headers: HeaderMap) -> Response {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    // The order of a list is the order of preference wherever browsers and tools send one.
    let mut wanted = accept.split([',', ';']).map(str::trim);
    let of = |wanted: &str| FORMATS.iter().find(|(_, it, _)| it.split(';').next() == Some(wanted));
    let found = wanted.find_map(of);
    answer(&app, found.unwrap_or(&FORMATS[0]))
}

/// `DELETE /_mock/report`: forgets what was found.
pub(super) async fn forget(State(app): State<Arc<AppState>>) -> StatusCode {
    app.journal().forget_report();
    StatusCode::NO_CONTENT
}

/// Answers the report in one format.
pub(super) fn answer(app: &AppState, (_, media_type, write): &Format) -> Response {
    let report = app.journal().report();
    let mut response = Response::new(Body::from(write(&report)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
