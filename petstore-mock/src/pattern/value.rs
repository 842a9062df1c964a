//! The pattern as its user writes it: conditions, all of which must hold.

use std::ops::RangeFull;

use http::Method;
use serde_json::Value;

use super::condition::Condition;
use crate::{
    exchange::{Admission, Masker, Record},
    operation::Operation,
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
