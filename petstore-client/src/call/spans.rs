//! The spans of a call and of its attempts, with the names of OpenTelemetry's conventions for HTTP
//! clients. Fields that no subscriber wants cost nothing.

use http::Response;
use tracing::field::{Empty, display};
use tracing::{Instrument as _, Span};
use url::Url;

use crate::error::Error;
use crate::logging::TARGET;
use crate::request::Request;

/// Parameters of queries whose values are shown. Others may be secret.
const SHOWN_PARAMETERS: [&str; 2] = ["limit", "status"];

/// Creates the span of a call, a child of the current span.
pub(super) fn call_span(request: &Request) -> Span {
    tracing::info_span!(
        target: TARGET,
        "call",
        otel.name = &*request.operation,
        otel.kind = "client",
        otel.status_code = Empty,
        operation = &*request.operation,
        http.request.method = request.method.as_str(),
        url.template = request.template,
        server.address = request.url.host_str(),
        server.port = request.url.port_or_known_default(),
        http.response.status_code = Empty,
        error.type = Empty,
        http.request.resend_count = Empty,
        petstore.attempts = Empty,
        petstore.wait_ms = Empty,
    )
}

/// Records in a call's span how it failed.
pub(super) fn record_error(span: &Span, error: &Error) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", display(error.kind()));
}

/// The span of an attempt.
pub(super) struct AttemptSpan(Span);

impl AttemptSpan {
    /// Creates the span of an attempt, a child of its call's.
    pub(super) fn new(request: &Request, number: u32) -> Self {
        Self(tracing::info_span!(
            target: TARGET,
            "attempt",
            otel.name = %AttemptName(request),
            otel.kind = "client",
            otel.status_code = Empty,
            http.request.method = request.method.as_str(),
            url.template = request.template,
            url.full = %redacted(&request.url),
            server.address = request.url.host_str(),
            server.port = request.url.port_or_known_default(),
            http.request.resend_count = (number > 1).then(|| number - 1),
            http.response.status_code = Empty,
            error.type = Empty,
        ))
    }

    pub(super) fn in_scope<T>(&self, run: impl FnOnce() -> T) -> T {
        self.0.in_scope(run)
    }

    pub(super) fn instrument<F: Future>(&self, future: F) -> impl Future<Output = F::Output> {
        future.instrument(self.0.clone())
    }

    /// Records how the attempt ended.
    pub(super) fn record<T>(&self, result: &Result<Response<T>, Error>) {
        if self.0.is_disabled() {
            return;
        }
        let failed = match result {
            Ok(response) => {
                let status = response.status();
                self.0.record("http.response.status_code", status.as_u16());
                if status.is_success() {
                    return;
                }
                self.0.record("error.type", status.as_str());
                status.is_client_error() || status.is_server_error()
            }
            Err(error) => {
                let status = error.status().map(|status| status.as_u16());
                self.0.record("http.response.status_code", status);
                self.0.record("error.type", display(error.kind()));
                true
            }
        };
        if failed {
            self.0.record("otel.status_code", "ERROR");
        }
    }
}

/// The name of an attempt's span: the method and the template of the path.
struct AttemptName<'a>(&'a Request);

impl std::fmt::Display for AttemptName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.method.as_str())?;
        match self.0.template {
            Some(template) => write!(f, " {template}"),
            None => Ok(()),
        }
    }
}

/// Returns a URL with the values of most parameters replaced.
fn redacted(url: &Url) -> Url {
    let mut shown = url.clone();
    if url.query().is_some() {
        shown.set_query(None);
        let mut query = shown.query_pairs_mut();
        for (name, value) in url.query_pairs() {
            if SHOWN_PARAMETERS.contains(&&*name) {
                query.append_pair(&name, &value);
            } else {
                query.append_pair(&name, "REDACTED");
            }
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_shows_only_harmless_parameters() {
        let url =
            Url::parse("https://petstore.example/v1/pets?limit=5&cursor=s3cret&token=x").unwrap();
        let shown = "https://petstore.example/v1/pets?limit=5&cursor=REDACTED&token=REDACTED";
        assert_eq!(redacted(&url).as_str(), shown);
        let bare = Url::parse("https://petstore.example/v1/pets").unwrap();
        assert_eq!(redacted(&bare), bare);
    }
}
