//! Patterns that match exchanges, and that describe how other exchanges differ.

use std::{borrow::Cow, fmt, ops::RangeFull};

use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::{
    exchange::{Captured, KeyLabel, Masker, Record},
    operation::Operation,
    text::printable,
};

/// Matches exchanges that meet all conditions.
///
/// An operation converts to the pattern of its requests, and `..` to the pattern of all requests.
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

/// One condition.
#[derive(Clone)]
enum Condition {
    /// A part of the exchange equals this value.
    Part(Part, Vec<u8>),
    Key(String),
    /// The body equals this JSON value, or includes it.
    Json {
        value: Value,
        is_whole: bool,
    },
}

/// A part of an exchange that is compared as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Operation,
    Method,
    Path,
    Query(String),
    Header(String),
    Status,
    Body,
}

impl Pattern {
    /// Returns the pattern of every exchange.
    pub fn any() -> Self {
        Self::default()
    }

    /// Matches only requests with this method.
    pub fn method(self, method: impl AsRef<str>) -> Self {
        self.part(Part::Method, method.as_ref())
    }

    /// Matches only requests to this path as sent, without the query, such as `/v1/pets`.
    pub fn path(self, path: impl Into<String>) -> Self {
        self.part(Part::Path, path.into())
    }

    /// Matches only requests with this query parameter. Compares decoded names and values.
    pub fn query(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.part(Part::Query(name.into()), value.into())
    }

    /// Matches only requests with this header. Credentials such as `Authorization` are masked in
    /// the journal, and compared in masked form.
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.part(Part::Header(name.into()), value.into())
    }

    /// Matches only requests with this key, which must be one of the server's.
    pub fn key(self, key: impl Into<String>) -> Self {
        self.and(Condition::Key(key.into()))
    }

    /// Matches only requests that were answered with this status.
    pub fn status(self, status: u16) -> Self {
        self.part(Part::Status, status.to_string())
    }

    /// Matches only requests with exactly this body, at most 16 KiB.
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        self.part(Part::Body, body)
    }

    /// Matches only requests whose body equals this JSON value, at most 16 KiB.
    pub fn json(self, body: Value) -> Self {
        self.and(Condition::Json {
            value: body,
            is_whole: true,
        })
    }

    /// Matches only requests whose body is JSON that includes this value, at most 16 KiB: objects
    /// may have more fields, but arrays must have the same length.
    pub fn json_including(self, part: Value) -> Self {
        self.and(Condition::Json {
            value: part,
            is_whole: false,
        })
    }

    pub(crate) fn matches(&self, record: &Record, keys: &Masker) -> bool {
        self.0
            .iter()
            .all(|condition| condition.mismatch(record, keys).is_none())
    }

    /// Describes how a record differs.
    pub(crate) fn mismatches(&self, record: &Record, keys: &Masker) -> Vec<String> {
        self.0
            .iter()
            .filter_map(|condition| condition.mismatch(record, keys))
            .collect()
    }

    /// Describes the pattern, without keys.
    pub(crate) fn describe(&self, keys: &Masker) -> String {
        let describe = |condition: &Condition| match condition {
            Condition::Key(key) => match keys.label(key) {
                Some(label) => format!("key {label}"),
                None => "a key that the server does not know".to_owned(),
            },
            other => keys.text(&format!("{other:?}")),
        };
        let all: Vec<_> = self.0.iter().map(describe).collect();
        if all.is_empty() {
            "any request".to_owned()
        } else {
            all.join(", ")
        }
    }

    fn part(self, part: Part, value: impl Into<Vec<u8>>) -> Self {
        self.and(Condition::Part(part, value.into()))
    }

    fn and(mut self, condition: Condition) -> Self {
        self.0.push(condition);
        self
    }
}

impl From<Operation> for Pattern {
    fn from(operation: Operation) -> Self {
        Self::any().part(Part::Operation, operation.name())
    }
}

impl From<RangeFull> for Pattern {
    fn from(_: RangeFull) -> Self {
        Self::any()
    }
}

impl Condition {
    /// Describes how a record differs; `None` if the condition holds.
    fn mismatch(&self, record: &Record, keys: &Masker) -> Option<String> {
        let shown = |bytes: &[u8]| printable(&keys.text(&String::from_utf8_lossy(bytes)));
        match self {
            Self::Part(part, wanted) => {
                let values = part.values(record);
                if values.iter().any(|value| **value == **wanted) {
                    return None;
                }
                let found: Vec<_> = values.iter().map(|value| shown(value)).collect();
                Some(match &found[..] {
                    [] => format!("it has no {part}"),
                    found => format!("its {part} is {}", found.join(", ")),
                })
            }
            Self::Key(wanted) => {
                let (wanted, key) = (
                    keys.label(wanted).map(KeyLabel::number),
                    &record.arrival.key,
                );
                match key {
                    Some(key) if Some(key.number()) == wanted => None,
                    Some(key) => Some(format!("its key is {key}")),
                    None => Some("it has no valid key".to_owned()),
                }
            }
            Self::Json { value, is_whole } => json_mismatch(record, value, *is_whole, shown),
        }
    }
}

impl Part {
    /// Returns the values of this part.
    fn values<'a>(&self, record: &'a Record) -> Vec<Cow<'a, [u8]>> {
        let (path, query) = record
            .arrival
            .target
            .split_once('?')
            .unwrap_or((&record.arrival.target, ""));
        let text = |text: String| Cow::Owned(text.into_bytes());
        match self {
            Self::Operation => record
                .arrival
                .operation
                .iter()
                .map(|it| it.name().as_bytes().into())
                .collect(),
            Self::Method => vec![record.method.as_str().as_bytes().into()],
            Self::Path => vec![path.as_bytes().into()],
            Self::Query(name) => parameters(query, name).into_iter().map(text).collect(),
            Self::Header(name) => {
                let name = name.to_ascii_lowercase();
                let fields = record
                    .fields
                    .iter()
                    .filter(|(one, _)| *one == name.as_bytes());
                fields.map(|(_, value)| value.into()).collect()
            }
            Self::Status => record
                .status
                .iter()
                .map(|status| text(status.to_string()))
                .collect(),
            Self::Body => vec![(&*record.body.start).into()],
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query(name) => write!(f, "query parameter {name}"),
            Self::Header(name) => write!(f, "header {name}"),
            other => f.write_str(&format!("{other:?}").to_lowercase()),
        }
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Part(part, value) => {
                write!(f, "{part} {}", printable(&String::from_utf8_lossy(value)))
            }
            Self::Key(_) => f.write_str("key ***"),
            Self::Json {
                value,
                is_whole: true,
            } => write!(f, "body {value}"),
            Self::Json {
                value,
                is_whole: false,
            } => write!(f, "body with {value}"),
        }
    }
}

/// Describes how a body differs from a JSON value. With `all`, additional fields are differences.
fn json_mismatch(
    record: &Record,
    wanted: &Value,
    all: bool,
    shown: impl Fn(&[u8]) -> String,
) -> Option<String> {
    let body = &record.body;
    if body.length == 0 {
        return Some("it has no body".to_owned());
    }
    if body.length > Captured::MAX as u64 {
        return Some("its body is longer than the part that is kept".to_owned());
    }
    let Ok(found) = serde_json::from_slice(&body.start) else {
        return Some(format!("its body is invalid JSON: {}", shown(&body.start)));
    };
    let differences = differences("", wanted, &found, all);
    let shown: Vec<_> = differences
        .iter()
        .take(3)
        .map(|one| shown(one.as_bytes()))
        .collect();
    (!differences.is_empty()).then(|| format!("its body differs: {}", shown.join("; ")))
}

/// Returns the decoded values of a parameter.
fn parameters(query: &str, name: &str) -> Vec<String> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let pairs = query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs
        .filter(|(one, _)| decoded(one) == name)
        .map(|(_, value)| decoded(value))
        .collect()
}

/// Describes each place where `found` differs from `wanted`. With `all`, additional fields of
/// `found` are differences.
pub(crate) fn differences(place: &str, wanted: &Value, found: &Value, all: bool) -> Vec<String> {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            let wanted_fields = wanted.iter().flat_map(|(name, value)| {
                let place = format!("{place}/{name}");
                match found.get(name) {
                    Some(found) => differences(&place, value, found, all),
                    None => vec![format!("{place} is missing")],
                }
            });
            let extra = found
                .iter()
                .filter(|(name, _)| all && !wanted.contains_key(*name));
            let extra =
                extra.map(|(name, value)| format!("{place}/{name} is {value}, but not expected"));
            wanted_fields.chain(extra).collect()
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            let pairs = wanted.iter().zip(found).enumerate();
            let at = |at| format!("{place}/{at}");
            pairs
                .flat_map(|(n, (wanted, found))| differences(&at(n), wanted, found, all))
                .collect()
        }
        (wanted, found) if wanted == found => Vec::new(),
        (wanted, found) => {
            let place = if place.is_empty() { "all of it" } else { place };
            vec![format!("{place} is {found}, not {wanted}")]
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
            differences("", &wanted, &found, true),
            [
                "/categoryId is missing",
                "/name is \"Tom\", not \"Rex\"",
                "/tags/1/a is 3, not 2",
                "/status is \"sold\", but not expected"
            ]
        );
        assert_eq!(
            differences("", &json!([1]), &json!([1, 2]), true),
            ["all of it is [1,2], not [1]"]
        );
        assert_eq!(differences("", &wanted, &wanted, true), [""; 0]);
    }

    #[test]
    fn allows_additional_fields_if_only_a_part_is_compared() {
        let found = json!({"name": "Rex", "more": {"a": 1, "b": 2}});
        assert_eq!(
            differences("", &json!({"more": {"a": 1}}), &found, false),
            [""; 0]
        );
        assert_eq!(
            differences("", &json!({"more": {"c": 1}}), &found, false),
            ["/more/c is missing"]
        );
    }
}
