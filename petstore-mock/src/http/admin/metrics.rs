//! `GET /_mock/metrics`: counters and gauges for Prometheus.

use std::{fmt::Display, fmt::Write as _, sync::Arc};

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderValue, header::CONTENT_TYPE};

use crate::{report::Severity, state::AppState};

/// The text format of Prometheus, version 0.0.4.
const FORMAT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(super) async fn metrics(State(app): State<Arc<AppState>>) -> Response {
    let mut response = Response::new(Body::from(text(&app)));
    response.headers_mut().insert(CONTENT_TYPE, FORMAT);
    response
}

fn text(app: &AppState) -> String {
    let mut page = MetricsText::default();
    page.family("requests_total", "counter", "Requests to the service, by operation and status.");
    for ((operation, status), count) in app.journal.tally() {
        let operation = operation.map_or("none", |operation| operation.name());
        let status = status.map_or_else(|| "none".to_owned(), |status| status.to_string());
        page.sample(&[("operation", operation), ("status", &status)], count);
    }
    page.family("report_findings", "gauge", "Rules that clients have broken, by severity.");
    let report = app.journal.report();
    for severity in [Severity::Violation, Severity::Warning, Severity::Notice] {
        let broken = report.findings().filter(|finding| finding.severity == severity).count();
        page.sample(&[("severity", &severity.to_string())], broken);
    }
    page.family("fault_hits_total", "counter", "Requests that faults have changed, by fault.");
    for (name, hits) in app.faults.total_hits() {
        page.sample(&[("fault", &name)], hits);
    }
    page.family("clock_seconds", "gauge", "The mock's clock, in seconds since the Unix epoch.");
    page.sample(&[], app.clock.since_epoch().as_secs_f64());
    page.family("pets", "gauge", "Pets in the store.");
    page.sample(&[], app.read(|store| store.pets.len()));
    let keys = app.usage();
    let quotas =
        || keys.iter().flat_map(|key| [(key, "minute", key.minute), (key, "day", key.day)]);
    page.family("quota_limit", "gauge", "Requests that the quota of a key allows.");
    for (key, name, quota) in quotas() {
        page.sample(&[("key", &key.number.to_string()), ("quota", name)], quota.limit);
    }
    page.family("quota_remaining", "gauge", "Requests that are left of the quota of a key.");
    for (key, name, quota) in quotas() {
        page.sample(&[("key", &key.number.to_string()), ("quota", name)], quota.remaining);
    }
    page.family("key_banned", "gauge", "Whether a key is banned.");
    for key in &keys {
        page.sample(&[("key", &key.number.to_string())], u8::from(key.banned_until.is_some()));
    }
    page.text
}

/// The page in progress. Writing to a string can't fail.
#[derive(Default)]
struct MetricsText {
    text: String,
    /// The name of the current family.
    name: &'static str,
}

impl MetricsText {
    fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.name = name;
        let _ = writeln!(self.text, "# HELP petstore_mock_{name} {help}");
        let _ = writeln!(self.text, "# TYPE petstore_mock_{name} {kind}");
    }

    fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        let escaped =
            |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let label = |(name, text): &(&str, &str)| format!("{name}=\"{}\"", escaped(text));
        let labels: Vec<_> = labels.iter().map(label).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text, "petstore_mock_{}{labels} {value}", self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_the_format_of_prometheus() {
        let mut page = MetricsText::default();
        page.family("x_total", "counter", "What it is.");
        page.sample(&[], 1);
        page.sample(&[("a", "b\\\"c\nd"), ("e", "f")], 2.5);
        let expected = "# HELP petstore_mock_x_total What it is.\n\
                        # TYPE petstore_mock_x_total counter\n\
                        petstore_mock_x_total 1\n\
                        petstore_mock_x_total{a=\"b\\\\\\\"c\\nd\",e=\"f\"} 2.5\n";
        assert_eq!(page.text, expected);
    }
}
