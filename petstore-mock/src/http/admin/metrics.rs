//! `GET /_mock/metrics`: what has happened so far and how things stand, for Prometheus.

use std::{fmt::Write as _, sync::Arc};

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderValue, header::CONTENT_TYPE};

use crate::{
    report::Severity,
    state::Store,
    state::{AppState, KeyUsage},
};

/// The text format of Prometheus, version 0.0.4.
const FORMAT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Answers all metrics.
pub(super) async fn metrics(State(app): State<Arc<AppState>>) -> Response {
    let mut response = Response::new(Body::from(text(&app)));
    response.headers_mut().insert(CONTENT_TYPE, FORMAT);
    response
}

fn text(app: &AppState) -> String {
    let mut page = MetricsText::default();
    page.family("requests_total", "counter", "Requests to the service, by operation and status.");
    for ((operation, status), count) in app.journal().tally() {
        let operation = operation.map_or("none", |operation| operation.name());
        let status = status.map_or_else(|| "none".to_owned(), |status| status.to_string());
        page.sample("requests_total", &[("operation", operation), ("status", &status)], count);
    }
    page.family("report_findings", "gauge", "Rules that clients have broken, by severity.");
    let report = app.journal().report();
    for (severity, name) in [
        (Severity::Violation, "violation"),
        (Severity::Warning, "warning"),
        (Severity::Notice, "notice"),
    ] {
        let broken = report.findings().filter(|finding| finding.severity == severity);
        page.sample("report_findings", &[("severity", name)], broken.count());
    }
    page.family("fault_hits_total", "counter", "Requests that faults have changed, by fault.");
    for (name, hits) in app.faults().total_hits() {
        page.sample("fault_hits_total", &[("fault", &name)], hits);
    }
    page.family("clock_seconds", "gauge", "The mock's clock, in seconds since the Unix epoch.");
    page.sample("clock_seconds", &[], app.clock().since_epoch().as_secs_f64());
    page.family("pets", "gauge", "Pets in the store.");
    page.sample("pets", &[], app.read(Store::len));
    quotas(app, &mut page);
    page.0
}

fn quotas(app: &AppState, page: &mut MetricsText) {
    let keys = app.usage();
    let quotas = || {
        let of =
            |key: &KeyUsage| [("minute", key.minute), ("day", key.day)].map(|it| (key.number, it));
        keys.iter().flat_map(of)
    };
    page.family("quota_limit", "gauge", "Requests that the quota of a key allows.");
    for (key, (name, quota)) in quotas() {
        page.sample("quota_limit", &[("key", &key.to_string()), ("quota", name)], quota.limit);
    }
    page.family("quota_remaining", "gauge", "Requests that are left of the quota of a key.");
    for (key, (name, quota)) in quotas() {
        let labels = [("key", &*key.to_string()), ("quota", name)];
        page.sample("quota_remaining", &labels, quota.remaining);
    }
    page.family("key_banned", "gauge", "Whether a key is banned.");
    for key in &keys {
        let is_banned = u8::from(key.banned_until.is_some());
        page.sample("key_banned", &[("key", &key.number.to_string())], is_banned);
    }
}

/// The page as it grows. Writing to a string does not fail.
#[derive(Default)]
struct MetricsText(String);

impl MetricsText {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP petstore_mock_{name} {help}");
        let _ = writeln!(self.0, "# TYPE petstore_mock_{name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let _ = write!(self.0, "petstore_mock_{name}");
        for (place, (label, text)) in labels.iter().enumerate() {
            let open = if place == 0 { '{' } else { ',' };
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{open}{label}=\"{text}\"");
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{close} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_prometheus_reads() {
        let mut page = MetricsText::default();
        page.family("x_total", "counter", "What it is.");
        page.sample("x_total", &[], 1);
        page.sample("x_total", &[("a", "b\\\"c\nd"), ("e", "f")], 2.5);
        let expected = "# HELP petstore_mock_x_total What it is.\n\
                        # TYPE petstore_mock_x_total counter\n\
                        petstore_mock_x_total 1\n\
                        petstore_mock_x_total{a=\"b\\\\\\\"c\\nd\",e=\"f\"} 2.5\n";
        assert_eq!(page.0, expected);
    }
}
