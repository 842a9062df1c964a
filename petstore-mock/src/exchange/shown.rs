//! The public form of an exchange, with every key masked.

use std::{
    borrow::Cow,
    time::{SystemTime, UNIX_EPOCH},
};

use http::{HeaderMap, HeaderValue, Method};
use serde::{Serialize, Serializer};

use super::{Admission, Fields, KeyLabel, Masker, Record};
use crate::{clock::serialize_seconds, operation::Operation};

/// A request and its response in the journal.
///
/// It contains no credentials. The server's keys are masked wherever they were sent, and so are the
/// values of all credential fields (`Authorization`, `Cookie`, `X-Api-Key`, `?api_key=` and
/// similar).
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
    /// The number of the request, from 1.
    pub number: u64,
    /// The number of the connection, from 1.
    pub connection: u64,
    /// The number of the request on its connection, from 1.
    pub nth_on_connection: u64,
    /// When the request arrived, on the mock's clock.
    #[serde(rename = "at", serialize_with = "serialize_seconds")]
    pub arrived: SystemTime,
    /// When the response was ready, on the mock's clock.
    #[serde(rename = "endedAt", serialize_with = "serialize_seconds")]
    pub ended: SystemTime,
    /// The method.
    #[serde(serialize_with = "as_text")]
    pub method: Method,
    /// The path and query as sent.
    pub target: String,
    /// The header fields of the request.
    #[serde(serialize_with = "as_pairs")]
    pub headers: HeaderMap,
    /// The first 16 KiB of the request's body, as far as it was read.
    #[serde(serialize_with = "as_lossy_text")]
    pub body: Vec<u8>,
    /// The length of the request's body in bytes, as far as it was read.
    pub body_length: u64,
    /// The key; `None` if it is missing or unknown.
    pub key: Option<KeyLabel>,
    /// The operation; `None` if the path or method is unknown.
    pub operation: Option<Operation>,
    /// Whether the service admitted the request.
    pub admission: Admission,
    /// The status of the response; `None` if the client left first, or if a fault suppressed the
    /// response.
    pub status: Option<u16>,
    /// Whether the whole response was sent, as far as the mock can tell.
    pub answered: bool,
    /// The header fields of the response.
    #[serde(serialize_with = "as_pairs")]
    pub reply_headers: HeaderMap,
    /// The first 16 KiB of the response's body.
    #[serde(serialize_with = "as_lossy_text")]
    pub reply_body: Vec<u8>,
    /// The length of the response's body in bytes.
    pub reply_body_length: u64,
    /// The names of the faults that hit.
    pub faults: Vec<Cow<'static, str>>,
    /// A remark, for example that a delay waited for a frozen clock.
    pub note: Option<&'static str>,
}

impl Exchange {
    /// Converts a record. `keys` masks the keys.
    pub(crate) fn new(record: &Record, keys: &Masker) -> Self {
        Self {
            number: record.number,
            connection: record.caller.connection,
            nth_on_connection: record.caller.nth,
            arrived: UNIX_EPOCH + record.arrived.at(),
            ended: UNIX_EPOCH + record.ended.at(),
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

    /// Returns the path as sent.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Returns the query as sent, without the question mark; empty if there is none.
    #[must_use]
    pub fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }
}

fn headers(fields: &Fields, keys: &Masker) -> HeaderMap {
    let mut headers = fields.to_map();
    for value in headers.values_mut() {
        // A header value with masked keys is still a valid value.
        if let Ok(masked) = HeaderValue::from_bytes(&keys.bytes(value.as_bytes())) {
            *value = masked;
        }
    }
    headers
}

fn as_text<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(method.as_str())
}

fn as_lossy_text<S: Serializer>(body: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&String::from_utf8_lossy(body))
}

/// Serializes header fields as a list of pairs, because names can repeat.
fn as_pairs<S: Serializer>(headers: &HeaderMap, serializer: S) -> Result<S::Ok, S::Error> {
    let pairs = headers.iter();
    serializer.collect_seq(
        pairs.map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes()))),
    )
}
