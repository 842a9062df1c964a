//! What messages say about the service: its host, where its address and key come from, and the
//! proxy.

use petstore_client::url::Url;

use crate::env::System;
use crate::settings::credentials::KeySource;
use crate::settings::{Settings, is_local};

/// The service of a command, for messages.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    host: String,
    proxy: Option<&'static str>,
    base_url_source: String,
    key: KeySource,
}

impl Service {
    /// Creates the value that is used before a service is known.
    pub(super) fn none(settings: &Settings) -> Self {
        Self {
            host: String::new(),
            proxy: None,
            base_url_source: settings.source("base_url"),
            key: KeySource::Typed,
        }
    }

    pub(super) fn new(
        base_url: &Url,
        key: KeySource,
        settings: &Settings,
        system: &System,
    ) -> Self {
        let host = base_url.host_str().unwrap_or_default();
        let host = match base_url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        Self {
            host,
            proxy: proxy(base_url, system),
            key,
            ..Self::none(settings)
        }
    }

    /// Returns the host and port.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Returns the host without its port.
    pub(super) fn host_name(&self) -> &str {
        let name = self.host.rsplit_once(':').map(|(name, _)| name);
        name.unwrap_or(&self.host)
    }

    /// Returns the variable that names a proxy, if any.
    pub(super) fn proxy(&self) -> Option<&'static str> {
        self.proxy
    }

    /// Returns the source of the base URL, in brackets.
    pub(super) fn base_url_source(&self) -> &str {
        &self.base_url_source
    }

    pub(super) fn key(&self) -> &KeySource {
        &self.key
    }
}

/// Returns the variable that names a proxy for a URL, if any.
fn proxy(base_url: &Url, system: &System) -> Option<&'static str> {
    // For this machine, the client never uses a proxy.
    if is_local(base_url) {
        return None;
    }
    let own = match base_url.scheme() {
        "https" => ["https_proxy", "HTTPS_PROXY"],
        _ => ["http_proxy", "HTTP_PROXY"],
    };
    let mut all = own.into_iter().chain(["all_proxy", "ALL_PROXY"]);
    all.find(|name| system.var(name).is_some())
}
