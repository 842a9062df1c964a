//! Which exchanges are meant, and how far others are from that.

use std::{fmt, ops::RangeFull};

use http::Method;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::{
    exchange::{Admission, Captured, KeyLabel, Masker, Record},
    operation::Operation,
    text::printable,
};

/// Which exchanges are meant: those for which everything that was said holds.
///
/// An operation stands for all of its requests, `..` for all there are.
///
/// ```
/// # use petstore_mock::{MockServer, Operation, Pattern};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), reqwest::Error> {
/// let server = MockServer::start().await;
/// reqwest::get(format!("{}/pets?limit=5", server.url())).await?;
///
/// assert_eq!(server.requests(..).len(), 1);
/// assert_eq!(server.requests(Operation::ListPets).len(), 1);
/// let with_limit = Pattern::from(Operation::ListPets).query("limit", "5");
/// assert_eq!(server.requests(with_limit.clone()).len(), 1);
/// assert_eq!(server.requests(with_limit.status(200)).len(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Pattern(Vec<Condition>);

impl Pattern {
    /// Returns the pattern of every exchange.
    pub fn any() -> Self {
        Self::default()
    }

    /// Means requests with this method only.
    pub fn method(self, method: Method) -> Self {
        self.and(Condition::Method(method))
    }

    /// Means requests to this path only, such as `/v1/pets`, as it was sent and without the query.
    pub fn path(self, path: impl Into<String>) -> Self {
        self.and(Condition::Path(path.into()))
    }

    /// Means requests only whose query has this parameter; name and value are compared as they read
    /// when they are decoded.
    pub fn query(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.and(Condition::Query(name.into(), value.into()))
    }

    /// Means requests with this header only. What the journal masks, such as `Authorization`, is
    /// compared as it is masked.
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.and(Condition::Header(name.into(), value.into()))
    }

    /// Means requests with this key only, which must be one of the server's.
    pub fn key(self, key: impl Into<String>) -> Self {
        self.and(Condition::Key(key.into()))
    }

    /// Means requests only that were met like this.
    pub fn admission(self, admission: Admission) -> Self {
        self.and(Condition::Admission(admission))
    }

    /// Means requests that were answered this status only.
    pub fn status(self, status: u16) -> Self {
        self.and(Condition::Status(status))
    }

    /// Means requests with exactly this body only, of at most 16 KiB.
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        self.and(Condition::Body(body.into()))
    }

    /// Means requests only whose body, of at most 16 KiB, is this JSON value, however it is written.
    pub fn json(self, body: Value) -> Self {
        self.and(Condition::Json(body))
    }

    /// Means requests only whose body, of at most 16 KiB, is a JSON value that holds this one: objects
    /// may have more fields, arrays are as long.
    pub fn json_including(self, part: Value) -> Self {
        self.and(Condition::JsonIncluding(part))
    }

    pub(crate) fn matches(&self, record: &Record, keys: &Masker) -> bool {
        self.0.iter().all(|condition| condition.mismatch(record, keys).is_none())
    }

    /// Returns what a record has instead of what was said.
    pub(crate) fn mismatches(&self, record: &Record, keys: &Masker) -> Vec<String> {
        self.0.iter().filter_map(|condition| condition.mismatch(record, keys)).collect()
    }

    /// Writes the pattern, without a key in it.
    pub(crate) fn describe(&self, keys: &Masker) -> String {
        if self.0.is_empty() {
            return "any request".to_owned();
        }
        let all: Vec<_> = self.0.iter().map(|condition| condition.describe(keys)).collect();
        all.join(", ")
    }

    fn and(mut self, condition: Condition) -> Self {
        self.0.push(condition);
        self
    }
}

impl From<Operation> for Pattern {
    fn from(operation: Operation) -> Self {
        Self::any().and(Condition::Operation(operation))
    }
}

impl From<RangeFull> for Pattern {
    fn from(_: RangeFull) -> Self {
        Self::any()
    }
}

/// One condition.
#[derive(Clone)]
enum Condition {
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
    fn mismatch(&self, record: &Record, keys: &Masker) -> Option<String> {
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
                json_mismatch(record, |found| differences(wanted, found, true), shown)
            }
            Self::JsonIncluding(wanted) => {
                json_mismatch(record, |found| differences(wanted, found, false), shown)
            }
        }
    }

    /// Writes the condition; a key by its label.
    fn describe(&self, keys: &Masker) -> String {
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

/// Returns each place where `found` differs from `wanted`, and how; with `all`, what is in `found` only
/// is a difference, too.
fn differences(wanted: &Value, found: &Value, all: bool) -> Vec<String> {
    let mut out = Vec::new();
    compare("", wanted, found, all, &mut out);
    out
}

fn compare(place: &str, wanted: &Value, found: &Value, all: bool, out: &mut Vec<String>) {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            for (name, value) in wanted {
                let place = format!("{place}/{name}");
                match found.get(name) {
                    Some(found) => compare(&place, value, found, all, out),
                    None => out.push(format!("{place} is missing")),
                }
            }
            let extra = found.iter().filter(|(name, _)| all && !wanted.contains_key(*name));
            out.extend(extra.map(|(name, value)| format!("{place}/{name} is {value}, unasked")));
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            for (at, (wanted, found)) in wanted.iter().zip(found).enumerate() {
                compare(&format!("{place}/{at}"), wanted, found, all, out);
            }
        }
        (wanted, found) if wanted == found => {}
        (wanted, found) => {
            let place = if place.is_empty() { "all of it" } else { place };
            out.push(format!("{place} is {found}, not {wanted}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_each_place_that_differs() {
        let wanted = json!({"categoryId": 7, "name": "Rex", "tags": [1, {"a": 2}]});
        let found = json!({"name": "Tom", "tags": [1, {"a": 3}], "status": "sold"});
        assert_eq!(
            differences(&wanted, &found, true),
            [
                "/categoryId is missing",
                "/name is \"Tom\", not \"Rex\"",
                "/tags/1/a is 3, not 2",
                "/status is \"sold\", unasked"
            ]
        );
        assert_eq!(differences(&json!([1]), &json!([1, 2]), true), ["all of it is [1,2], not [1]"]);
        assert_eq!(differences(&wanted, &wanted, true), [""; 0]);
    }

    #[test]
    fn lets_more_be_there_where_only_a_part_is_wanted() {
        let found = json!({"name": "Rex", "more": {"a": 1, "b": 2}});
        assert_eq!(differences(&json!({"more": {"a": 1}}), &found, false), [""; 0]);
        assert_eq!(differences(&json!({"more": {"c": 1}}), &found, false), ["/more/c is missing"]);
    }
}
