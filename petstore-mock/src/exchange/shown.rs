//! An exchange as it is shown: owned, and with every key masked.

use std::{
    borrow::Cow,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::{HeaderMap, HeaderValue, Method};
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{Admission, Fields, KeyLabel, Masker, Record};
use crate::operation::Operation;

/// A request and its answer, as the journal shows them.
///
/// No credential is in it: every key of the server is masked wherever it was sent, and so is whatever
/// stands where a credential is expected (`Authorization`, `Cookie`, `X-Api-Key`, `?api_key=` and the
/// like), known or not.
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
/// assert_eq!(requests[0].target(), "/v1/pets?limit=5");
/// assert_eq!(requests[0].status(), Some(200));
/// assert_eq!(requests[0].headers()["authorization"], "Bearer ***");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Exchange {
    number: u64,
    connection: u64,
    nth: u64,
    arrived: Duration,
    ended: Duration,
    method: Method,
    target: String,
    headers: HeaderMap,
    body: Vec<u8>,
    body_length: u64,
    key: Option<KeyLabel>,
    operation: Option<Operation>,
    admission: Admission,
    status: Option<u16>,
    answered: bool,
    reply_headers: HeaderMap,
    reply_body: Vec<u8>,
    reply_body_length: u64,
    faults: Vec<Cow<'static, str>>,
    note: Option<&'static str>,
}

impl Exchange {
    /// Shows a record; `keys` takes the keys out of a text.
    pub(crate) fn new(record: &Record, keys: &Masker) -> Self {
        Self {
            number: record.number,
            connection: record.connection,
            nth: record.nth,
            arrived: record.arrived.at,
            ended: record.ended.at,
            method: record.method.clone(),
            target: keys.target(&record.target),
            headers: headers(&record.fields, keys),
            body: keys.bytes(&record.body.start),
            body_length: record.body.length,
            key: record.key.as_deref().cloned(),
            operation: record.operation,
            admission: record.admission,
            status: record.status,
            answered: record.status.is_some() && !record.is_lost(),
            reply_headers: headers(&record.reply_fields, keys),
            reply_body: keys.bytes(&record.reply_body.start),
            reply_body_length: record.reply_body.length,
            faults: record.faults.clone(),
            note: record.note,
        }
    }

    /// Returns its number: requests are counted from 1, as they arrive.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Returns the number of its connection, from 1.
    #[must_use]
    pub const fn connection(&self) -> u64 {
        self.connection
    }

    /// Returns the how-manieth request on its connection it is, from 1.
    #[must_use]
    pub const fn nth_on_connection(&self) -> u64 {
        self.nth
    }

    /// Returns when the request arrived, on the mock's clock.
    #[must_use]
    pub fn arrived(&self) -> SystemTime {
        UNIX_EPOCH + self.arrived
    }

    /// Returns when the answer was ready, on the mock's clock.
    #[must_use]
    pub fn ended(&self) -> SystemTime {
        UNIX_EPOCH + self.ended
    }

    /// Returns the method.
    #[must_use]
    pub const fn method(&self) -> &Method {
        &self.method
    }

    /// Returns path and query, as they were sent.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
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

    /// Returns the header fields of the request.
    #[must_use]
    pub const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns the first 16 KiB of the request's body, as far as it was read.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Returns how long the request's body was in bytes, as far as it was read.
    #[must_use]
    pub const fn body_length(&self) -> u64 {
        self.body_length
    }

    /// Returns the key it was sent with; nothing if that is missing or not known.
    #[must_use]
    pub const fn key(&self) -> Option<&KeyLabel> {
        self.key.as_ref()
    }

    /// Returns the operation it asked for; nothing if there is no such one.
    #[must_use]
    pub const fn operation(&self) -> Option<Operation> {
        self.operation
    }

    /// Returns whether it was let in.
    #[must_use]
    pub const fn admission(&self) -> Admission {
        self.admission
    }

    /// Returns the status it was answered; nothing if the client left before that, or if a fault
    /// left it without an answer.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        self.status
    }

    /// Returns whether all of the answer went out, as far as the mock can tell.
    #[must_use]
    pub const fn answered(&self) -> bool {
        self.answered
    }

    /// Returns the header fields of the answer.
    #[must_use]
    pub const fn reply_headers(&self) -> &HeaderMap {
        &self.reply_headers
    }

    /// Returns the first 16 KiB of the answer's body.
    #[must_use]
    pub fn reply_body(&self) -> &[u8] {
        &self.reply_body
    }

    /// Returns how long the answer's body was, in bytes.
    #[must_use]
    pub const fn reply_body_length(&self) -> u64 {
        self.reply_body_length
    }

    /// Returns what else there is to know of it: that its delay waited for a frozen clock, say.
    #[must_use]
    pub const fn note(&self) -> Option<&'static str> {
        self.note
    }

    /// Returns the names of the faults that hit.
    pub fn faults(&self) -> impl Iterator<Item = &str> {
        self.faults.iter().map(AsRef::as_ref)
    }
}

fn headers(fields: &Fields, keys: &Masker) -> HeaderMap {
    let mut headers = fields.to_map();
    for value in headers.values_mut() {
        // What was a value is one without its keys, too.
        if let Ok(masked) = HeaderValue::from_bytes(&keys.bytes(value.as_bytes())) {
            *value = masked;
        }
    }
    headers
}

impl Serialize for Exchange {
    /// Writes it for the mock's own pages: camel case, times in seconds since the Unix epoch.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("number", &self.number)?;
        map.serialize_entry("connection", &self.connection)?;
        map.serialize_entry("nthOnConnection", &self.nth)?;
        map.serialize_entry("at", &self.arrived.as_secs_f64())?;
        map.serialize_entry("endedAt", &self.ended.as_secs_f64())?;
        map.serialize_entry("method", self.method.as_str())?;
        map.serialize_entry("target", &self.target)?;
        map.serialize_entry("headers", &Pairs(&self.headers))?;
        map.serialize_entry("body", &String::from_utf8_lossy(&self.body))?;
        map.serialize_entry("bodyLength", &self.body_length)?;
        map.serialize_entry("key", &self.key)?;
        map.serialize_entry("operation", &self.operation)?;
        map.serialize_entry("admission", &self.admission)?;
        map.serialize_entry("status", &self.status)?;
        map.serialize_entry("answered", &self.answered)?;
        map.serialize_entry("replyHeaders", &Pairs(&self.reply_headers))?;
        map.serialize_entry("replyBody", &String::from_utf8_lossy(&self.reply_body))?;
        map.serialize_entry("replyBodyLength", &self.reply_body_length)?;
        map.serialize_entry("faults", &self.faults)?;
        map.serialize_entry("note", &self.note)?;
        map.end()
    }
}

/// Header fields as a list of pairs: a name can be there more than once.
struct Pairs<'a>(&'a HeaderMap);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let pair = |(name, value): (&'_ http::HeaderName, &'_ http::HeaderValue)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        serializer.collect_seq(self.0.iter().map(pair))
    }
}
