//! An exchange as it is shown: owned, and with every key masked.

use std::{
    borrow::Cow,
    time::{SystemTime, UNIX_EPOCH},
};

use http::{HeaderMap, HeaderValue, Method};
use serde::{Serialize, Serializer};

use super::{Admission, Fields, KeyLabel, Masker, Record};
use crate::operation::Operation;

/// A request and its answer, as the journal shows them.
///
/// It contains no credential: every key of the server is masked wherever it was sent, and so is the value
/// of every credential field (`Authorization`, `Cookie`, `X-Api-Key`, `?api_key=` and the like), known or
/// not.
///
/// ```
/// # use petstore_mock::{MockServer, Operation};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), reqwest::Error> {
/// let server = MockServer::start().await;
/// let pets = format!("{}/pets?limit=5", server.url());
/// reqwest::Client::new().get(pets).bearer_auth("free-key").send().await?;
///
/// let requests = server.requests(Operation::ListPets);
/// assert_eq!(requests[0].target, "/v1/pets?limit=5");
/// assert_eq!(requests[0].status, Some(200));
/// assert_eq!(requests[0].headers["authorization"], "Bearer ***");
/// # Ok(())
/// # }
/// ```
///
/// In JSON, times are seconds since the Unix epoch.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Exchange {
    /// Its number: requests are counted from 1, as they arrive.
    pub number: u64,
    /// The number of its connection, from 1.
    pub connection: u64,
    /// 1-based index of the request on its connection.
    pub nth_on_connection: u64,
    /// When the request arrived, on the mock's clock.
    #[serde(rename = "at", serialize_with = "as_seconds")]
    pub arrived: SystemTime,
    /// When the answer was ready, on the mock's clock.
    #[serde(rename = "endedAt", serialize_with = "as_seconds")]
    pub ended: SystemTime,
    /// The method.
    #[serde(serialize_with = "as_text")]
    pub method: Method,
    /// Path and query, as they were sent.
    pub target: String,
    /// The header fields of the request.
    #[serde(serialize_with = "as_pairs")]
    pub headers: HeaderMap,
    /// The first 16 KiB of the request's body, as far as it was read.
    #[serde(serialize_with = "as_lossy_text")]
    pub body: Vec<u8>,
    /// The length of the request's body in bytes, as far as it was read.
    pub body_length: u64,
    /// The key it was sent with; nothing if that is missing or unknown.
    pub key: Option<KeyLabel>,
    /// The operation it asked for; nothing if there is no such operation.
    pub operation: Option<Operation>,
    /// Whether it was let in.
    pub admission: Admission,
    /// The status of the answer; nothing if the client left before that, or if a fault left it without
    /// an answer.
    pub status: Option<u16>,
    /// Whether all of the answer was sent, as far as the mock can tell.
    pub answered: bool,
    /// The header fields of the answer.
    #[serde(serialize_with = "as_pairs")]
    pub reply_headers: HeaderMap,
    /// The first 16 KiB of the answer's body.
    #[serde(serialize_with = "as_lossy_text")]
    pub reply_body: Vec<u8>,
    /// The length of the answer's body in bytes.
    pub reply_body_length: u64,
    /// The names of the faults that hit.
    pub faults: Vec<Cow<'static, str>>,
    /// A remark, such as that its delay waited for a frozen clock.
    pub note: Option<&'static str>,
}

impl Exchange {
    /// Shows a record; `keys` masks the keys.
    pub(crate) fn new(record: &Record, keys: &Masker) -> Self {
        Self {
            number: record.number,
            connection: record.caller.connection,
            nth_on_connection: record.caller.nth,
            arrived: UNIX_EPOCH + record.arrived.at,
            ended: UNIX_EPOCH + record.ended.at,
            method: record.method.clone(),
            target: keys.target(&record.arrival.target),
            headers: headers(&record.fields, keys),
            body: keys.bytes(&record.body.start),
            body_length: record.body.length,
            key: record.arrival.key.as_deref().cloned(),
            operation: record.arrival.operation,
            admission: record.arrival.admission,
            status: record.status,
            answered: record.status.is_some() && !record.is_lost(),
            reply_headers: headers(&record.reply_fields, keys),
            reply_body: keys.bytes(&record.reply_body.start),
            reply_body_length: record.reply_body.length,
            faults: record.faults.clone(),
            note: record.note,
        }
    }

    /// Returns the path, as it was sent.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Returns the query, as it was sent and without the question mark; empty if there is none.
    #[must_use]
    pub fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }
}

fn headers(fields: &Fields, keys: &Masker) -> HeaderMap {
    let mut headers = fields.to_map();
    for value in headers.values_mut() {
        // A header value without its keys is a valid one, too.
        if let Ok(masked) = HeaderValue::from_bytes(&keys.bytes(value.as_bytes())) {
            *value = masked;
        }
    }
    headers
}

fn as_seconds<S: Serializer>(at: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    let since_epoch = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    serializer.serialize_f64(since_epoch.as_secs_f64())
}

fn as_text<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(method.as_str())
}

fn as_lossy_text<S: Serializer>(body: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&String::from_utf8_lossy(body))
}

/// Writes header fields as a list of pairs: a name can be there more than once.
fn as_pairs<S: Serializer>(headers: &HeaderMap, serializer: S) -> Result<S::Ok, S::Error> {
    let pairs = headers.iter();
    serializer.collect_seq(
        pairs.map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes()))),
    )
}
