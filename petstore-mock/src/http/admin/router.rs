//! The routes of the administration, under `/_mock`. `admin.yaml` describes them.

use std::{future::ready, sync::Arc};

use axum::{
    Router,
    middleware::from_fn_with_state,
    routing::{MethodRouter, delete, get, patch, post, put},
};
use http::{Method, Uri};

use super::{
    assets,
    auth::guard,
    events,
    handlers::{self, report},
};
use crate::{
    http::error::ApiError,
    openapi::OpenApi::{Administration, Service},
    report::Report,
    state::AppState,
};

/// RFC 9512.
const YAML: &str = "application/yaml";
const JSON: &str = "application/json";

type Route = (&'static str, MethodRouter<Arc<AppState>>);

/// Returns the routes. The response to an unknown path suggests the most similar one.
pub(crate) fn router(app: &Arc<AppState>) -> Router {
    let guard = from_fn_with_state(Arc::clone(app), guard);
    let guarded = guarded_routes()
        .into_iter()
        .map(|(path, methods)| (path, methods.layer(guard.clone())));
    let (mut router, mut paths) = (Router::new(), Vec::new());
    for (path, methods) in open_routes().into_iter().chain(guarded) {
        router = router.route(path, methods);
        paths.push(path);
    }
    let unknown = move |method: Method, uri: Uri| {
        let overview = "GET /_mock/admin.yaml lists all paths";
        ready(ApiError::route_not_found(
            &method,
            uri.path(),
            &paths,
            overview,
        ))
    };
    router
        .route("/_mock/", get(assets::inspector))
        .fallback(unknown)
        .with_state(Arc::clone(app))
}

/// The routes that need no access control. They show nothing of the mock's state.
fn open_routes() -> [Route; 8] {
    [
        ("/_mock", get(assets::inspector)),
        ("/_mock/inspector/{file}", get(assets::inspector_file)),
        (
            "/_mock/openapi.yaml",
            get(async || assets::text(YAML, Service.yaml())),
        ),
        (
            "/_mock/openapi.json",
            get(async || assets::text(JSON, Service.json())),
        ),
        (
            "/_mock/admin.yaml",
            get(async || assets::text(YAML, Administration.yaml())),
        ),
        (
            "/_mock/admin.json",
            get(async || assets::text(JSON, Administration.json())),
        ),
        ("/_mock/ca.pem", get(handlers::authority)),
        ("/_mock/health", get(handlers::health)),
    ]
}

fn guarded_routes() -> impl IntoIterator<Item = Route> {
    [
        ("/_mock/clock", get(handlers::clock)),
        ("/_mock/clock/advance", post(handlers::advance_clock)),
        ("/_mock/clock/freeze", post(handlers::freeze_clock)),
        ("/_mock/clock/resume", post(handlers::resume_clock)),
        ("/_mock/clock/scale", post(handlers::scale_clock)),
        ("/_mock/clock/set", post(handlers::set_clock)),
        (
            "/_mock/requests",
            get(handlers::requests).delete(handlers::clear_requests),
        ),
        ("/_mock/events", get(events::events)),
        (
            "/_mock/report",
            report(JSON, Report::to_json).delete(handlers::forget_report),
        ),
        ("/_mock/report.json", report(JSON, Report::to_json)),
        (
            "/_mock/report.txt",
            report("text/plain; charset=utf-8", Report::to_text),
        ),
        #[cfg(feature = "junit")]
        (
            "/_mock/report.xml",
            report("application/xml", Report::to_junit),
        ),
        (
            "/_mock/faults",
            get(handlers::faults)
                .post(handlers::set_fault)
                .delete(handlers::clear_faults),
        ),
        ("/_mock/faults/{id}", delete(handlers::remove_fault)),
        ("/_mock/keys", get(handlers::keys).post(handlers::add_key)),
        (
            "/_mock/keys/{id}",
            patch(handlers::change_key).delete(handlers::remove_key),
        ),
        (
            "/_mock/keys/{id}/ban",
            put(handlers::ban_key).delete(handlers::unban_key),
        ),
        ("/_mock/keys/{id}/reset", post(handlers::reset_key)),
        (
            "/_mock/pets",
            get(handlers::pets)
                .post(handlers::add_pet)
                .delete(handlers::clear_pets),
        ),
        ("/_mock/pets/{id}", delete(handlers::remove_pet)),
        ("/_mock/seed", post(handlers::seed)),
        ("/_mock/reset", post(handlers::reset)),
        (
            "/_mock/snapshot",
            get(handlers::snapshot).put(handlers::restore),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_readme_names_every_path() {
        let readme = include_str!("../../../README.md");
        for (path, _) in open_routes().into_iter().chain(guarded_routes()) {
            let is_of_the_page = path.starts_with("/_mock/inspector/");
            assert!(
                readme.contains(&format!("{path}`")) || is_of_the_page,
                "{path}"
            );
        }
    }

    #[cfg(feature = "junit")]
    #[test]
    fn the_document_describes_every_path_and_no_other() {
        let document: Value = serde_json::from_str(Administration.json()).unwrap();
        let described: Vec<_> = document["paths"].as_object().unwrap().keys().collect();
        let routes = open_routes().into_iter().chain(guarded_routes());
        let mut paths: Vec<_> = routes.map(|(path, _)| path).collect();
        paths.sort_unstable();
        let mut described: Vec<_> = described.into_iter().map(String::as_str).collect();
        described.sort_unstable();
        assert_eq!(paths, described);
    }
}
