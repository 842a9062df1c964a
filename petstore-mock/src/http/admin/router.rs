//! The routes of the administration, under `/_mock`. `admin.yaml` describes them.

use std::sync::Arc;

use axum::{
    Router,
    middleware::from_fn_with_state,
    routing::{delete, get, patch, post, put},
};
use http::{Method, Uri};

use super::{
    assets::{self, text},
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

/// Returns the routes.
pub(crate) fn router(app: &Arc<AppState>) -> Router {
    let guard = from_fn_with_state(Arc::clone(app), guard);
    open_routes()
        .merge(guarded_routes().route_layer(guard))
        .fallback(unknown)
        .with_state(Arc::clone(app))
}

async fn unknown(method: Method, uri: Uri) -> ApiError {
    let overview = "GET /_mock/admin.yaml lists all paths";
    ApiError::route_not_found(&method, uri.path(), overview)
}

/// The routes that need no access control. They show nothing of the mock's state.
fn open_routes() -> Router<Arc<AppState>> {
    let yaml = "application/yaml";
    Router::new()
        .route("/_mock", get(assets::inspector))
        .route("/_mock/", get(assets::inspector))
        .route("/_mock/inspector/{file}", get(assets::inspector_file))
        .route(
            "/_mock/openapi.yaml",
            get(async move || text(yaml, Service.yaml())),
        )
        .route(
            "/_mock/admin.yaml",
            get(async move || text(yaml, Administration.yaml())),
        )
        .route("/_mock/ca.pem", get(handlers::authority))
        .route("/_mock/health", get(handlers::health))
}

fn guarded_routes() -> Router<Arc<AppState>> {
    let report_json = report("application/json", Report::to_json);
    let report_text = report("text/plain; charset=utf-8", Report::to_text);
    let requests = get(handlers::requests).delete(handlers::clear_requests);
    let faults = get(handlers::faults).post(handlers::set_fault);
    let pets = get(handlers::pets).post(handlers::add_pet);
    let snapshot = get(handlers::snapshot).put(handlers::restore);
    let routes = Router::new();
    #[cfg(feature = "junit")]
    let routes = routes.route(
        "/_mock/report.xml",
        report("application/xml", Report::to_junit),
    );
    routes
        .route("/_mock/clock", get(handlers::clock))
        .route("/_mock/clock/advance", post(handlers::advance_clock))
        .route("/_mock/clock/freeze", post(handlers::freeze_clock))
        .route("/_mock/clock/resume", post(handlers::resume_clock))
        .route("/_mock/clock/set", post(handlers::set_clock))
        .route("/_mock/requests", requests)
        .route("/_mock/events", get(events::events))
        .route(
            "/_mock/report",
            report_json.clone().delete(handlers::forget_report),
        )
        .route("/_mock/report.json", report_json)
        .route("/_mock/report.txt", report_text)
        .route("/_mock/faults", faults.delete(handlers::clear_faults))
        .route("/_mock/faults/{id}", delete(handlers::remove_fault))
        .route("/_mock/keys", get(handlers::keys).post(handlers::add_key))
        .route(
            "/_mock/keys/{id}",
            patch(handlers::change_key).delete(handlers::remove_key),
        )
        .route(
            "/_mock/keys/{id}/ban",
            put(handlers::ban_key).delete(handlers::unban_key),
        )
        .route("/_mock/keys/{id}/reset", post(handlers::reset_key))
        .route("/_mock/pets", pets.delete(handlers::clear_pets))
        .route("/_mock/pets/{id}", delete(handlers::remove_pet))
        .route("/_mock/seed", post(handlers::seed))
        .route("/_mock/reset", post(handlers::reset))
        .route("/_mock/snapshot", snapshot)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The paths of the routes, from this file.
    fn paths() -> BTreeSet<&'static str> {
        let source = include_str!("router.rs").split("#[cfg(test)]").next();
        let after = source.unwrap().split("\"/_mock").skip(1);
        let ends = after.map(|rest| rest.split('"').next().unwrap());
        ends.filter(|end| !matches!(*end, "/")).collect()
    }

    #[test]
    fn the_readme_names_every_path() {
        let readme = include_str!("../../../README.md");
        for path in paths() {
            let is_of_the_page = path.starts_with("/inspector/");
            assert!(
                readme.contains(&format!("/_mock{path}`")) || is_of_the_page,
                "{path}"
            );
        }
    }

    #[test]
    fn the_document_describes_every_path_and_no_other() {
        let lines = Administration.yaml().lines();
        let described = lines.filter_map(|line| line.strip_prefix("  /_mock")?.strip_suffix(':'));
        assert_eq!(paths(), described.collect());
    }
}
