//! The JSON form of own routes, for `--routes`.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue, Method};
use serde::Deserialize;
use serde_json::Value;

use super::{Route, RouteResponse, Routes};
use crate::text::{present, read_array};

impl Route {
    /// Parses and checks an array of routes.
    pub(crate) fn all_from_json(text: &[u8]) -> Result<Vec<Self>, String> {
        let example = r#"{"method": "PUT", "path": "/pets/{petId}", "json": {}}"#;
        let forms: Vec<RouteForm> = read_array(text, example)?;
        let routes = forms.into_iter().map(RouteForm::route);
        let routes: Vec<_> = routes.collect::<Result<_, _>>()?;
        Routes::new(routes.clone()).map_err(|error| error.to_string())?;
        Ok(routes)
    }
}

/// The JSON form of a route.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteForm {
    method: String,
    path: String,
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "present")]
    json: Option<Value>,
    text: Option<String>,
}

impl RouteForm {
    fn route(self) -> Result<Route, String> {
        let route = format!("{} {}", self.method, self.path);
        let method = Method::from_bytes(self.method.as_bytes())
            .map_err(|_| format!("the route {route}: `method` is not a method"))?;
        let mut response = match (&self.json, self.text) {
            (Some(_), Some(_)) => {
                return Err(format!(
                    "the route {route}: give `json` or `text`, not both"
                ));
            }
            (Some(json), None) => RouteResponse::json(json),
            (None, Some(text)) => RouteResponse::text(text),
            (None, None) => RouteResponse::empty(),
        };
        for (name, value) in &self.headers {
            let wrong = || format!("the route {route}: the header `{name}` is not valid");
            let name = HeaderName::try_from(name).map_err(|_| wrong())?;
            let value = HeaderValue::try_from(value).map_err(|_| wrong())?;
            response = response.with_header(name, value);
        }
        let response = response.with_status(self.status.unwrap_or(200));
        Ok(Route::new(method, &self.path, response))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_routes_and_says_what_is_wrong_with_them() {
        let read = |text: &str| Route::all_from_json(text.as_bytes());
        let text = r#"[{"method": "PUT", "path": "/pets/{petId}", "status": 202,
            "headers": {"x-a": "1"}, "json": null}]"#;
        let response = RouteResponse::json(&Value::Null)
            .with_status(202)
            .with_header(
                HeaderName::from_static("x-a"),
                HeaderValue::from_static("1"),
            );
        let routes = Routes::new(read(text).unwrap()).unwrap();
        assert_eq!(routes.find(&Method::PUT, "/v1/pets/1"), Some(&response));
        let object = read(r#"{"method": "PUT"}"#).unwrap_err();
        assert!(object.starts_with("give an array, such as [{"), "{object}");
        for (route, wrong) in [
            (r#""path": "/a""#, "missing field `method`"),
            (
                r#""method": "GET", "path": "/a", "body": 1"#,
                "unknown field `body`",
            ),
            (
                r#""method": "GET", "path": "/a", "json": 1, "text": """#,
                "the route GET /a: give `json` or `text`, not both",
            ),
            (
                r#""method": "A B", "path": "/a""#,
                "`method` is not a method",
            ),
            (
                r#""method": "GET", "path": "/a", "headers": {"a b": ""}"#,
                "the header `a b` is not valid",
            ),
            (
                r#""method": "GET", "path": "/a", "status": 99"#,
                "from 200 to 599",
            ),
            (
                r#""method": "GET", "path": "/a", "status": 204, "text": "x""#,
                "a response with this status has no body",
            ),
            (
                r#""method": "GET", "path": "/a", "headers": {"content-length": "1"}"#,
                "Content-Length and Transfer-Encoding follow from the body",
            ),
            (
                r#""method": "GET", "path": "/a", "headers": {"x-RateLimit-Reset": "1"}"#,
                "the mock itself sets Date and the rate headers",
            ),
            (
                r#""method": "GET", "path": "/a", "headers": {"Date": "1"}"#,
                "the mock itself sets Date and the rate headers",
            ),
        ] {
            let error = read(&format!("[{{{route}}}]")).unwrap_err();
            assert!(error.contains(wrong), "{route}: {error}");
        }
    }
}
