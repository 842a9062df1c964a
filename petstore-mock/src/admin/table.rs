//! Which path leads to which handler, and who may take it. A list of the paths is kept beside the
//! router, so that a test can hold it against the document.

use std::{future::ready, sync::Arc};

use axum::{
    Router,
    extract::State,
    middleware::from_fn_with_state,
    routing::{MethodRouter, delete, get, patch, post, put},
};
use http::{Method, Uri};

use super::{
    access, clock, docs, documents, events, faults, health, inspector, keys, metrics, pets, report,
    requests, state::Admin, unknown::unknown,
};
use crate::{error::ApiError, extract::Visit, openapi::OpenApi, world::World};

/// The mock's own paths.
pub(crate) struct Table {
    router: Router<Admin>,
    /// Each path, with the methods it takes.
    paths: Vec<(&'static str, &'static str)>,
    admin: Admin,
}

impl Table {
    /// Returns all of them.
    pub(crate) fn new(world: Arc<World>) -> Self {
        let empty = Self { router: Router::new(), paths: Vec::new(), admin: Admin::new(world) };
        empty.inspector().documents().health().clock().watching().faults().keys().pets()
    }

    /// Returns the router; a path that is none of these is told the one that is most like it.
    pub(crate) fn into_router(self) -> Router {
        let Self { router, paths, admin } = self;
        let unknown = move |visit: Visit, method: Method, uri: Uri| {
            let known = paths.iter().map(|(path, _)| *path);
            ready(visit.check().and_then(|()| Err::<(), _>(unknown(&method, uri.path(), known))))
        };
        let page = with_allow("GET, HEAD", get(inspector::page));
        router.route("/_mock/", page).fallback(unknown).with_state(admin)
    }

    fn inspector(self) -> Self {
        self.open("/_mock", get(inspector::page))
            .open("/_mock/inspector/{file}", get(inspector::file))
    }

    fn documents(self) -> Self {
        use OpenApi::{Administration, Service};
        self.open("/_mock/openapi.yaml", get(async || documents::yaml(Service)))
            .open("/_mock/openapi.json", get(async || documents::json(Service)))
            .open("/_mock/admin.yaml", get(async || documents::yaml(Administration)))
            .open("/_mock/admin.json", get(async || documents::json(Administration)))
            .open("/_mock/docs", get(docs::page))
            .open("/_mock/docs/admin", get(docs::page))
            .open("/_mock/docs/page.css", get(docs::style))
            .open("/_mock/docs/page.js", get(docs::script))
            .open("/_mock/docs/swagger-ui.css", get(docs::ui_style))
            .open("/_mock/docs/swagger-ui-bundle.js", get(docs::bundle))
    }

    fn health(self) -> Self {
        self.open("/_mock/health", get(health::health)).open("/_mock/ready", get(health::health))
    }

    fn clock(self) -> Self {
        self.guarded("/_mock/clock", "GET, HEAD", get(clock::show))
            .guarded("/_mock/clock/advance", "POST", post(clock::advance))
            .guarded("/_mock/clock/freeze", "POST", post(clock::freeze))
            .guarded("/_mock/clock/resume", "POST", post(clock::resume))
            .guarded("/_mock/clock/scale", "POST", post(clock::scale))
    }

    fn watching(self) -> Self {
        let requests = get(requests::list).delete(requests::clear);
        let formats = report::FORMATS.into_iter().fold(self, |table, format| {
            let answer = async move |State(admin): State<Admin>| report::answer(&admin, &format);
            table.guarded(format.0, "GET, HEAD", get(answer))
        });
        formats
            .guarded("/_mock/requests", "GET, HEAD, DELETE", requests)
            .guarded("/_mock/events", "GET, HEAD", get(events::events))
            .guarded("/_mock/metrics", "GET, HEAD", get(metrics::metrics))
            .guarded(
                "/_mock/report",
                "GET, HEAD, DELETE",
                get(report::negotiated).delete(report::forget),
            )
    }

    fn faults(self) -> Self {
        let all = get(faults::list).post(faults::set).delete(faults::clear);
        self.guarded("/_mock/faults", "GET, HEAD, POST, DELETE", all).guarded(
            "/_mock/faults/{id}",
            "DELETE",
            delete(faults::remove),
        )
    }

    fn keys(self) -> Self {
        let one = patch(keys::change).delete(keys::remove);
        self.guarded("/_mock/keys", "GET, HEAD, POST", get(keys::list).post(keys::add))
            .guarded("/_mock/keys/{id}", "PATCH, DELETE", one)
            .guarded("/_mock/keys/{id}/ban", "PUT, DELETE", put(keys::ban).delete(keys::unban))
    }

    fn pets(self) -> Self {
        let snapshot = get(pets::snapshot).put(pets::restore);
        self.guarded("/_mock/pets", "GET, HEAD", get(pets::list))
            .guarded("/_mock/seed", "POST", post(pets::seed))
            .guarded("/_mock/reset", "POST", post(pets::reset))
            .guarded("/_mock/snapshot", "GET, HEAD, PUT", snapshot)
    }

    /// Adds a path that anyone may get: nothing of the mock's state is there.
    fn open(self, path: &'static str, methods: MethodRouter<Admin>) -> Self {
        self.add(path, "GET, HEAD", with_allow("GET, HEAD", methods))
    }

    /// Adds a path for those who may administer the mock.
    fn guarded(
        self,
        path: &'static str,
        allow: &'static str,
        methods: MethodRouter<Admin>,
    ) -> Self {
        let guard = from_fn_with_state(Arc::clone(self.admin.world()), access::guard);
        // What it does not take is no one else's business either.
        self.add(path, allow, with_allow(allow, methods).layer(guard))
    }

    fn add(
        mut self,
        path: &'static str,
        allow: &'static str,
        methods: MethodRouter<Admin>,
    ) -> Self {
        self.paths.push((path, allow));
        self.router = self.router.route(path, methods);
        self
    }
}

fn with_allow(allow: &'static str, methods: MethodRouter<Admin>) -> MethodRouter<Admin> {
    methods.fallback(move || ready(ApiError::method_not_allowed(allow)))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{clock::Clock, settings::Settings, store::Store};

    #[test]
    fn the_document_describes_every_path_and_no_other() {
        let world = World::new(Clock::system(), Settings::default(), [], Store::default());
        let table = Table::new(Arc::new(world.unwrap()));
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
}
