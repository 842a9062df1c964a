//! One thing that is said of the exchanges that are meant, and what an exchange has in its place.

use std::fmt;

use http::Method;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::json;
use crate::{
    exchange::{Admission, Captured, KeyLabel, Masker, Record},
    operation::Operation,
    printable::printable,
};

/// One condition.
#[derive(Clone)]
pub(super) enum Condition {
    Operation(Operation),
    Method(Method),
    Path(String),
    Query(String, String),
    Header(String, String),
    Key(String),
    Admission(Admission),
    Status(u16),
    Body(Vec<u8>),
    Json(Value),
    JsonIncluding(Value),
}

impl Condition {
    /// Returns what a record has instead; nothing if the condition holds.
    pub(super) fn mismatch(&self, record: &Record, keys: &Masker) -> Option<String> {
        let target = || record.target.split_once('?').unwrap_or((&*record.target, ""));
        let shown = |text: &str| printable(&keys.text(text));
        match self {
            Self::Operation(wanted) => (record.operation != Some(*wanted)).then(|| {
                let name = record.operation.map_or("none", Operation::name);
                format!("its operation is {name}")
            }),
            Self::Method(wanted) => (record.method != *wanted)
                .then(|| format!("its method is {}", shown(record.method.as_str()))),
            Self::Path(wanted) => {
                (target().0 != wanted).then(|| format!("its path is {}", shown(target().0)))
            }
            Self::Query(name, wanted) => {
                let values = parameters(target().1, name);
                let found = values.iter().map(|value| shown(value)).collect::<Vec<_>>();
                (!values.contains(wanted)).then(|| in_its_place("query parameter", name, &found))
            }
            Self::Header(name, wanted) => {
                let fields = record.fields.to_map();
                let values = fields.get_all(name).iter();
                let values: Vec<_> =
                    values.map(|one| String::from_utf8_lossy(one.as_bytes())).collect();
                let found = values.iter().map(|value| shown(value)).collect::<Vec<_>>();
                (!values.iter().any(|value| value == wanted))
                    .then(|| in_its_place("header", name, &found))
            }
            Self::Key(wanted) => {
                let number = keys.label(wanted).map(KeyLabel::number);
                let came = record.key.as_deref();
                (number.is_none() || came.map(KeyLabel::number) != number).then(|| {
                    came.map_or("it has no valid key".to_owned(), |key| format!("its key is {key}"))
                })
            }
            Self::Admission(wanted) => (record.admission != *wanted)
                .then(|| format!("it was {:?}", record.admission).to_lowercase()),
            Self::Status(wanted) => (record.status != Some(*wanted)).then(|| match record.status {
                Some(status) => format!("it was answered {status}"),
                None => "it was not answered".to_owned(),
            }),
            Self::Body(wanted) => (*record.body.start != **wanted).then(|| {
                format!("its body is {}", shown(&String::from_utf8_lossy(&record.body.start)))
            }),
            Self::Json(wanted) => {
                json_mismatch(record, |found| json::differences(wanted, found, true), shown)
            }
            Self::JsonIncluding(wanted) => {
                json_mismatch(record, |found| json::differences(wanted, found, false), shown)
            }
        }
    }

    /// Writes the condition; a key by its label.
    pub(super) fn describe(&self, keys: &Masker) -> String {
        match self {
            Self::Key(key) => match keys.label(key) {
                Some(label) => format!("key {label}"),
                None => "a key that the server does not know".to_owned(),
            },
            other => keys.text(&format!("{other:?}")),
        }
    }
}

fn json_mismatch(
    record: &Record,
    differences: impl FnOnce(&Value) -> Vec<String>,
    shown: impl Fn(&str) -> String,
) -> Option<String> {
    if record.body.length == 0 {
        return Some("it has no body".to_owned());
    }
    if record.body.length > Captured::MOST as u64 {
        return Some("its body is longer than what is kept of it".to_owned());
    }
    let Ok(found) = serde_json::from_slice(&record.body.start) else {
        let body = shown(&String::from_utf8_lossy(&record.body.start));
        return Some(format!("its body is no JSON: {body}"));
    };
    let differences = differences(&found);
    let shown: Vec<_> = differences.iter().take(3).map(|one| shown(one)).collect();
    (!differences.is_empty()).then(|| format!("its body differs: {}", shown.join("; ")))
}

fn in_its_place(what: &str, name: &str, found: &[String]) -> String {
    match found {
        [] => format!("it has no {what} {name}"),
        found => format!("its {what} {name} is {}", found.join(", ")),
    }
}

/// Returns the values of a parameter, decoded.
fn parameters(query: &str, name: &str) -> Vec<String> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.filter(|(one, _)| decoded(one) == name).map(|(_, value)| decoded(value)).collect()
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation(operation) => write!(f, "operation {operation}"),
            Self::Method(method) => write!(f, "method {method}"),
            Self::Path(path) => write!(f, "path {path}"),
            Self::Query(name, value) => write!(f, "query parameter {name}={value}"),
            Self::Header(name, value) => write!(f, "header {name}: {value}"),
            Self::Key(_) => f.write_str("key ***"),
            Self::Admission(admission) => f.write_str(&format!("{admission:?}").to_lowercase()),
            Self::Status(status) => write!(f, "status {status}"),
            Self::Body(body) => write!(f, "body {}", printable(&String::from_utf8_lossy(body))),
            Self::Json(json) => write!(f, "body {json}"),
            Self::JsonIncluding(json) => write!(f, "body with {json}"),
        }
    }
}
