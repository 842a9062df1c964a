//! The embedded files: the inspector at `/_mock/`, and the OpenAPI documents. They contain nothing
//! of the mock's state.

use axum::{
    body::Body,
    extract::Path,
    response::{IntoResponse, Response},
};
use http::{
    StatusCode,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE},
};
use serde::Serialize;

use super::input::not_found;
use crate::http::{body, error::ApiError};

/// The policy for the inspector: no external resources, no inline scripts, no framing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Each file's name, media type and text.
const FILES: &[(&str, &str, &str)] = &[
    ("page.css", STYLE, include_str!("inspector/page.css")),
    ("main.js", SCRIPT, include_str!("inspector/main.js")),
    ("api.js", SCRIPT, include_str!("inspector/api.js")),
    ("clock.js", SCRIPT, include_str!("inspector/clock.js")),
    ("curl.js", SCRIPT, include_str!("inspector/curl.js")),
    ("dom.js", SCRIPT, include_str!("inspector/dom.js")),
    ("faults.js", SCRIPT, include_str!("inspector/faults.js")),
    ("keys.js", SCRIPT, include_str!("inspector/keys.js")),
    ("pets.js", SCRIPT, include_str!("inspector/pets.js")),
    ("report.js", SCRIPT, include_str!("inspector/report.js")),
    ("requests.js", SCRIPT, include_str!("inspector/requests.js")),
    ("time.js", SCRIPT, include_str!("inspector/time.js")),
    ("timeline.js", SCRIPT, include_str!("inspector/timeline.js")),
];

/// `GET /_mock` and `/_mock/`: the inspector.
pub(super) async fn inspector() -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, include_str!("inspector/page.html"))
}

/// `GET /_mock/inspector/{file}`.
pub(super) async fn inspector_file(
    Path(name): Path<String>,
) -> Result<impl IntoResponse, ApiError> {
    let found = FILES.iter().find(|(known, ..)| *known == name);
    let (_, media_type, content) = *found.ok_or_else(|| not_found("file", "GET /_mock/"))?;
    // The browser must ask again: another version of the mock may run on the same port later.
    let headers = [(CONTENT_TYPE, media_type), (CACHE_CONTROL, "no-cache")];
    Ok((headers, content))
}

/// A response with a text.
pub(super) fn text(media_type: &'static str, text: impl Into<Body>) -> Response {
    ([(CONTENT_TYPE, media_type)], text.into()).into_response()
}

/// A response with this value as its body.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    body::json(status, value).map(Body::from)
}

#[cfg(test)]
mod tests {
    use crate::operation::Operation;

    #[test]
    fn the_page_offers_each_operation() {
        let page = include_str!("inspector/page.html");
        let choices: Vec<_> = page.split("<select name=\"operation\">").skip(1).collect();
        assert_eq!(choices.len(), 2);
        for choice in choices {
            let (choice, _) = choice.split_once("</select>").unwrap();
            for operation in Operation::ALL {
                let option = format!("<option>{operation}</option>");
                assert!(choice.contains(&option), "{option}");
            }
        }
    }
}
