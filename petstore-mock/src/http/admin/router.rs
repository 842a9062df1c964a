//! The mock's own paths, under `/_mock`: outside the service, its keys and its quotas. What they take and
//! answer is described by `admin.yaml`.

use std::{future::ready, sync::Arc};

use axum::{
    Router,
    extract::{Extension, Request, State},
    middleware::{Next, from_fn_with_state},
    response::Response,
    routing::{MethodRouter, delete, get, patch, post, put},
};
use http::{
    HeaderMap, Method, Uri,
    header::{HOST, ORIGIN},
};

use super::{assets, clock, events, keys, metrics, reports, requests, state};
use crate::{
    http::{
        auth::RequestContext,
        credentials::bearer,
        error::{ApiError, ErrorCode},
    },
    openapi::OpenApi,
    printable::{nearest, printable},
    state::AppState,
};

/// RFC 6750, section 3.
const CHALLENGE: &str = "Bearer realm=\"petstore-mock\"";

/// How many letters of a path may be wrong, missing, too many or swapped.
const MAX_TYPOS: usize = 3;

/// Returns the routes.
pub(crate) fn router(app: &Arc<AppState>) -> Router {
    Table::new(Arc::clone(app)).into_router()
}

/// The routes, and beside them the list of their paths, which a test compares with the document.
struct Table {
    router: Router<Arc<AppState>>,
    /// Each path, with the methods it takes.
    paths: Vec<(&'static str, &'static str)>,
    app: Arc<AppState>,
}

impl Table {
    fn new(app: Arc<AppState>) -> Self {
        let empty = Self { router: Router::new(), paths: Vec::new(), app };
        empty.assets().health().clock().watching().faults().keys().store()
    }

    /// Returns the router; an unknown path is answered with the most similar one.
    fn into_router(self) -> Router {
        let Self { router, paths, app } = self;
        let unknown = move |method: Method, uri: Uri| {
            let known = paths.iter().map(|(path, _)| *path);
            ready(unknown(&method, uri.path(), known))
        };
        let page = with_allow("GET, HEAD", get(assets::inspector));
        router.route("/_mock/", page).fallback(unknown).with_state(app)
    }

    fn assets(self) -> Self {
        use OpenApi::{Administration, Service};
        self.open("/_mock", get(assets::inspector))
            .open("/_mock/inspector/{file}", get(assets::inspector_file))
            .open("/_mock/openapi.yaml", get(async || assets::yaml(Service)))
            .open("/_mock/openapi.json", get(async || assets::json(Service)))
            .open("/_mock/admin.yaml", get(async || assets::yaml(Administration)))
            .open("/_mock/admin.json", get(async || assets::json(Administration)))
    }

    fn health(self) -> Self {
        self.open("/_mock/health", get(state::health)).open("/_mock/ready", get(state::ready))
    }

    fn clock(self) -> Self {
        self.guarded("/_mock/clock", "GET, HEAD", get(clock::show))
            .guarded("/_mock/clock/advance", "POST", post(clock::advance))
            .guarded("/_mock/clock/freeze", "POST", post(clock::freeze))
            .guarded("/_mock/clock/resume", "POST", post(clock::resume))
            .guarded("/_mock/clock/scale", "POST", post(clock::scale))
            .guarded("/_mock/clock/set", "POST", post(clock::set))
    }

    fn watching(self) -> Self {
        let requests = get(requests::list).delete(requests::clear);
        let formats = reports::FORMATS.into_iter().fold(self, |table, format| {
            let answer =
                async move |State(app): State<Arc<AppState>>| reports::answer(&app, &format);
            table.guarded(format.0, "GET, HEAD", get(answer))
        });
        formats
            .guarded("/_mock/requests", "GET, HEAD, DELETE", requests)
            .guarded("/_mock/events", "GET, HEAD", get(events::events))
            .guarded("/_mock/metrics", "GET, HEAD", get(metrics::metrics))
            .guarded(
                "/_mock/report",
                "GET, HEAD, DELETE",
                get(reports::negotiated).delete(reports::forget),
            )
    }

    fn faults(self) -> Self {
        let all = get(state::faults).post(state::set_fault).delete(state::clear_faults);
        self.guarded("/_mock/faults", "GET, HEAD, POST, DELETE", all).guarded(
            "/_mock/faults/{id}",
            "DELETE",
            delete(state::remove_fault),
        )
    }

    fn keys(self) -> Self {
        let one = patch(keys::change).delete(keys::remove);
        self.guarded("/_mock/keys", "GET, HEAD, POST", get(keys::list).post(keys::add))
            .guarded("/_mock/keys/{id}", "PATCH, DELETE", one)
            .guarded("/_mock/keys/{id}/ban", "PUT, DELETE", put(keys::ban).delete(keys::unban))
    }

    fn store(self) -> Self {
        let snapshot = get(state::snapshot).put(state::restore);
        self.guarded("/_mock/pets", "GET, HEAD", get(state::pets))
            .guarded("/_mock/seed", "POST", post(state::seed))
            .guarded("/_mock/reset", "POST", post(state::reset))
            .guarded("/_mock/snapshot", "GET, HEAD, PUT", snapshot)
    }

    /// Adds a path that anyone may get: it shows nothing of the mock's state.
    fn open(self, path: &'static str, methods: MethodRouter<Arc<AppState>>) -> Self {
        self.add(path, "GET, HEAD", with_allow("GET, HEAD", methods))
    }

    /// Adds a path for those who may administer the mock.
    fn guarded(
        self,
        path: &'static str,
        allow: &'static str,
        methods: MethodRouter<Arc<AppState>>,
    ) -> Self {
        let guard = from_fn_with_state(Arc::clone(&self.app), guard);
        // Which methods it takes is shown to nobody else either.
        self.add(path, allow, with_allow(allow, methods).layer(guard))
    }

    fn add(
        mut self,
        path: &'static str,
        allow: &'static str,
        methods: MethodRouter<Arc<AppState>>,
    ) -> Self {
        self.paths.push((path, allow));
        self.router = self.router.route(path, methods);
        self
    }
}

fn with_allow(
    allow: &'static str,
    methods: MethodRouter<Arc<AppState>>,
) -> MethodRouter<Arc<AppState>> {
    methods.fallback(move || ready(ApiError::method_not_allowed(allow)))
}

/// Lets a request through to its handler, or refuses it.
async fn guard(
    Extension(context): Extension<RequestContext>,
    State(app): State<Arc<AppState>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let headers = request.headers();
    let token = app.settings().admin_token.as_ref();
    let has_token = |token| bearer(headers).is_ok_and(|sent| token_matches(token, sent));
    let is_local = context.peer.to_canonical().is_loopback();
    if (is_local && names_this_machine(headers) && is_same_origin(headers))
        || token.is_some_and(|token| has_token(token.reveal()))
    {
        return Ok(next.run(request).await);
    }
    Err(match token {
        Some(_) => ApiError::unauthorized(
            "administration is local only, or needs the token: send it as `Authorization: Bearer \
             TOKEN`",
            CHALLENGE,
        ),
        None => ApiError::new(
            ErrorCode::RouteNotFound,
            "administration is local only; use `--admin-token-file` to open it to other machines",
        ),
    })
}

/// Takes as long whatever is wrong, so that nobody can find the token letter by letter.
fn token_matches(token: &str, sent: &str) -> bool {
    let differences = token.bytes().zip(sent.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    token.len() == sent.len() && differences == 0
}

/// A page of another site can have its own name lead to this machine (DNS rebinding), and then asks
/// without an `Origin`; but its requests still bear that name.
fn names_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST) else {
        // HTTP/2 has it in the target; no browser speaks that without TLS.
        return true;
    };
    let host = host.to_str().unwrap_or("").parse::<http::uri::Authority>();
    host.is_ok_and(|host| {
        let name = host.host();
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost") || bare.parse::<std::net::IpAddr>().is_ok()
    })
}

/// Only browsers send `Origin`; without this check any page could move the clock of a mock that runs
/// on its reader's machine.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else {
        return true;
    };
    let origin = origin.as_bytes();
    let origin = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    origin.is_some() && origin == headers.get(HOST).map(http::HeaderValue::as_bytes)
}

/// Names the path that is most similar to this one, if any is.
fn unknown<'a>(method: &Method, path: &str, known: impl Iterator<Item = &'a str>) -> ApiError {
    let nearest = nearest_path(path, known);
    let nearest = nearest.map_or_else(String::new, |it| format!(" did you mean {it}?"));
    let (method, path) = (printable(method.as_str()), printable(path));
    let message =
        format!("there is no {method} {path}:{nearest} GET /_mock/admin.yaml lists what there is");
    ApiError::new(ErrorCode::RouteNotFound, message)
}

fn nearest_path<'a>(path: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let path = path.trim_end_matches('/').to_ascii_lowercase();
    let last = path.rsplit('/').next().unwrap_or_default();
    nearest(&path, MAX_TYPOS, known, |known| {
        // Whatever stands for a number or a name is right.
        let stem = known.ends_with('}').then(|| known.rsplit_once('/')).flatten();
        stem.map_or_else(|| (*known).to_owned(), |(stem, _)| format!("{stem}/{last}"))
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::Value;

    use super::*;
    use crate::{clock::Clock, state::Settings, state::Store};

    #[test]
    fn the_document_describes_every_path_and_no_other() {
        let app = AppState::new(Clock::system(), Settings::default(), [], Store::default());
        let table = Table::new(Arc::new(app.unwrap()));
        let document: Value = serde_json::from_str(OpenApi::Administration.json()).unwrap();
        let described: Vec<_> = document["paths"].as_object().unwrap().iter().collect();
        let methods = |item: &Value| {
            let has = |method: &str| item.get(method.to_lowercase()).is_some();
            let all = ["GET", "POST", "PUT", "PATCH", "DELETE"].into_iter().filter(|it| has(it));
            all.collect::<Vec<_>>().join(", ").replace("GET", "GET, HEAD")
        };
        let mut described: Vec<_> =
            described.into_iter().map(|(path, item)| (path.as_str(), methods(item))).collect();
        let mut taken: Vec<_> =
            table.paths.iter().map(|(path, allow)| (*path, (*allow).to_owned())).collect();
        described.sort();
        taken.sort();
        assert_eq!(taken, described);
    }

    fn with(pairs: &[(http::HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn only_names_that_nobody_else_can_give_are_this_machines() {
        for host in ["localhost", "LocalHost:4010", "127.0.0.1:4010", "[::1]:4010", "192.0.2.1"] {
            assert!(names_this_machine(&with(&[(HOST, host)])), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:4010", "x", "", "a b", "127.0.0.1.x"] {
            assert!(!names_this_machine(&with(&[(HOST, host)])), "{host}");
        }
    }

    #[test]
    fn an_origin_must_be_the_host_itself() {
        let host = (HOST, "localhost:4010");
        assert!(is_same_origin(&with(std::slice::from_ref(&host))));
        for (origin, same) in [
            ("http://localhost:4010", true),
            ("https://localhost:4010", true),
            ("http://localhost", false),
            ("http://evil.example", false),
            ("null", false),
        ] {
            assert_eq!(is_same_origin(&with(&[host.clone(), (ORIGIN, origin)])), same, "{origin}");
        }
    }

    #[test]
    fn a_token_matches_itself_only() {
        assert!(token_matches("t0ken", "t0ken"));
        for sent in ["", "t0ke", "t0kenn", "T0ken", "xxxxx"] {
            assert!(!token_matches("t0ken", sent), "{sent}");
        }
    }

    #[test]
    fn guesses_what_was_meant() {
        let known = ["/_mock", "/_mock/clock", "/_mock/requests", "/_mock/keys/{id}"];
        for (path, meant) in [
            ("/_mock/clok", Some("/_mock/clock")),
            ("/_mock/Request/", Some("/_mock/requests")),
            ("/_mock/key/7", Some("/_mock/keys/{id}")),
            ("/_mocks", Some("/_mock")),
            ("/_mock/journal", None),
        ] {
            assert_eq!(nearest_path(path, known.into_iter()), meant, "{path}");
        }
        assert_eq!(nearest_path(&"/_mock".repeat(20), known.into_iter()), None);
    }
}
