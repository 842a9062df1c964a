//! A successful response: the value, and what came with it.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use url::Url;

use crate::deprecation::Deprecation;
use crate::error::{CallStats, Error, Failure, JsonProblem};
use crate::http::headers::date;
use crate::page::Page;
use crate::rate_limit::QuotaWindow;
use crate::redact::{Redactor, printable};

/// A value that the service returned; derefs to it. What came with it is in [`meta`](Self::meta).
///
/// ```
/// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
/// let pets = client.pets().list().await?;
/// println!("{} pets, {:?} left", pets.len(), pets.meta().quota().map(|quota| quota.remaining));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Response<T> {
    value: T,
    meta: ResponseMeta,
}

/// What came with a value, and what it took to get it.
#[derive(Debug, Clone)]
pub struct ResponseMeta {
    pub(crate) operation: Cow<'static, str>,
    /// The address that was asked, and how many items its page may hold, where that was set.
    pub(crate) url: Url,
    pub(crate) page_size: Option<u32>,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) deprecation: Option<Box<Deprecation>>,
    pub(crate) stats: CallStats,
    /// Set where the response repeats the key, for errors of who reads it.
    pub(crate) redactor: Option<Redactor>,
}

impl<T> Response<T> {
    pub(crate) fn new(value: T, meta: ResponseMeta) -> Self {
        Self { value, meta }
    }

    /// Returns what came with the value: status, headers, quota, attempts.
    #[must_use]
    pub fn meta(&self) -> &ResponseMeta {
        &self.meta
    }

    /// Returns the value alone.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Returns the value and what came with it.
    #[must_use]
    pub fn into_parts(self) -> (T, ResponseMeta) {
        (self.value, self.meta)
    }

    /// Replaces the value, and keeps what came with it.
    #[must_use]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Response<U> {
        Response { value: change(self.value), meta: self.meta }
    }
}

impl ResponseMeta {
    /// Returns the status, always a success (2xx).
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns all headers as they came.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns the quota that the response describes (specification, section 8), where its three
    /// headers make sense.
    #[must_use]
    pub fn quota(&self) -> Option<QuotaWindow> {
        QuotaWindow::read(&self.headers)
    }

    /// Returns the service's own time when it answered (`Date`).
    #[must_use]
    pub fn date(&self) -> Option<SystemTime> {
        date(&self.headers)
    }

    /// Returns the announced end of the operation, where there is one: what the service says of
    /// it, and for what it leaves out what the specification says.
    #[must_use]
    pub fn deprecation(&self) -> Option<&Deprecation> {
        self.deprecation.as_deref()
    }

    /// Returns how many attempts it took, the successful one included.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.stats.attempts
    }

    /// Returns how long the call waited: between attempts, for rate limits, and for other calls
    /// with the key ([`WaitReason`](crate::rate_limit::WaitReason)).
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.stats.waited
    }
}

impl<T> Deref for Response<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Response<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> AsRef<T> for Response<T> {
    fn as_ref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Display> fmt::Display for Response<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T> IntoIterator for Response<Page<T>> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.value.into_iter()
    }
}

impl<'r, T> IntoIterator for &'r Response<Page<T>> {
    type Item = &'r T;
    type IntoIter = std::slice::Iter<'r, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.value.iter()
    }
}

impl Response<Bytes> {
    /// Reads the body of a raw response as JSON.
    ///
    /// # Errors
    ///
    /// Where it is no JSON, or not of this type; see [`Error::decode_path`].
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.value).map_err(|problem| self.undecodable::<T>(&problem))
    }

    /// Returns the body as text, with what is no UTF-8 replaced.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.value)
    }

    /// Reads the body of an operation.
    pub(crate) fn decoded<T: DeserializeOwned>(self) -> Result<Response<T>, Error> {
        let value = self.json()?;
        Ok(self.map(|_| value))
    }

    /// Returns the error of a success whose body is not what was asked for.
    fn undecodable<T: DeserializeOwned>(&self, plain: &serde_json::Error) -> Error {
        let body = match &self.meta.redactor {
            Some(redactor) => redactor.removed(self.value.clone()),
            None => self.value.clone(),
        };
        let error = located::<T>(self.meta.status, &body, plain);
        error.with_operation(self.meta.operation.clone()).with_stats(self.meta.stats)
    }
}

/// Finds out where in a body decoding fails. Only now is the path tracked: it costs time.
fn located<T: DeserializeOwned>(
    status: StatusCode,
    body: &[u8],
    plain: &serde_json::Error,
) -> Error {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let (path, said, is_data) = match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Err(error) => {
            let path = printable(&error.path().to_string(), 200);
            (path, printable(&error.inner().to_string(), 300), error.inner().is_data())
        }
        // What follows the value is wrong.
        Ok(_) => (".".to_owned(), printable(&plain.to_string(), 300), plain.is_data()),
    };
    let problem = if body.iter().all(u8::is_ascii_whitespace) {
        "its body is empty where JSON was expected; check the base URL".to_owned()
    } else if is_data {
        format!("at `{path}`: {said}")
    } else {
        format!("its body is not JSON ({said}): `{}`; check the base URL", excerpt(body, 60))
    };
    let (body, source) = (excerpt(body, 2_000), JsonProblem(said));
    Error::new(Failure::Decode { status, path, problem, body, source })
}

fn excerpt(body: &[u8], max: usize) -> String {
    printable(&String::from_utf8_lossy(&body[..body.len().min(max * 4)]), max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Pet;

    fn problem(body: &str) -> (String, String) {
        let plain = serde_json::from_str::<Vec<Pet>>(body).unwrap_err();
        let error = located::<Vec<Pet>>(StatusCode::OK, body.as_bytes(), &plain);
        (error.decode_path().unwrap().to_owned(), error.to_string())
    }

    #[test]
    fn says_where_in_the_json_decoding_failed() {
        let pets = r#"[{"id":1,"name":"a","categoryId":1},{"id":2,"name":"b","categoryId":"x"}]"#;
        let (path, message) = problem(pets);
        assert_eq!(path, "[1].categoryId");
        assert!(message.contains("expected i64"), "{message}");
    }

    #[test]
    fn shows_the_head_of_a_body_that_is_not_json() {
        let (_, message) = problem("<html>\u{1b}[0m</html>");
        assert!(message.contains("`<html>\\u{1b}[0m</html>`"), "{message}");
        assert!(problem("[] []").1.contains("not JSON (trailing characters"));
        assert!(problem("").1.contains("its body is empty"));
    }
}
