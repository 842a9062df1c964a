//! Any request, for what the specification does not show, through the same pipeline.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, header};
use serde::Serialize;

use crate::base_url::BaseUrl;
use crate::error::Error;
use crate::options::CallOptions;
use crate::pipeline::Pipeline;
use crate::request::Request;
use crate::response::Response;
use crate::text::printable;

/// Headers that the client sets itself: a second `Authorization` or `Host` would misdirect the key,
/// and a wrong length would break the connection for the request after this one.
const OWN: [HeaderName; 5] = [
    header::AUTHORIZATION,
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
];

/// A request of one's own, from [`Client::request`](crate::Client::request).
///
/// It is signed, held back, retried and judged like every other: an answer that is not a success
/// is an [`Error`]. Retries follow the method: those that RFC 9110, section 9.2.2, calls
/// idempotent may be sent again.
///
/// ```
/// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
/// use petstore_client::Method;
///
/// let answer = client.request(Method::GET, "/pets").query("limit", "5").send().await?;
/// let pets: Vec<petstore_client::Pet> = answer.json()?;
/// # let _ = pets;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a request does nothing until it is sent"]
pub struct RawRequest<'c> {
    pipeline: &'c Pipeline,
    request: Result<Request, Error>,
}

impl<'c> RawRequest<'c> {
    pub(crate) fn new(pipeline: &'c Pipeline, base: &BaseUrl, method: Method, path: &str) -> Self {
        // Without the query: the name is shown and logged, and a query may hold anything.
        let bare = path.split('?').next().unwrap_or_default();
        let operation = format!("{method} {}", printable(bare, 100));
        let request = match base.relative(path) {
            Ok(url) => Ok(Request::new(operation, method, url)),
            Err(error) => Err(error.of(operation)),
        };
        Self { pipeline, request }
    }

    fn try_map(mut self, change: impl FnOnce(&mut Request) -> Result<(), Error>) -> Self {
        if let Ok(request) = &mut self.request
            && let Err(error) = change(request)
        {
            self.request = Err(error.of(request.operation.clone()));
        }
        self
    }

    /// Adds a query parameter.
    pub fn query(self, name: &str, value: &str) -> Self {
        self.try_map(|request| {
            request.url.query_pairs_mut().append_pair(name, value);
            Ok(())
        })
    }

    /// Adds a header. `Authorization`, `Host` and those that frame the message on its connection
    /// are the client's own.
    pub fn header(self, name: &str, value: &str) -> Self {
        self.try_map(|request| {
            let shown = printable(name, 60);
            let name = HeaderName::try_from(name)
                .map_err(|_| Error::invalid(format!("`{shown}` is no name of a header")))?;
            if OWN.contains(&name) {
                return Err(Error::invalid(format!("the client sets the header `{name}` itself")));
            }
            let value = HeaderValue::try_from(value).map_err(|_| {
                Error::invalid(format!("the header `{name}` cannot hold its value"))
            })?;
            request.headers.append(name, value);
            Ok(())
        })
    }

    /// Sets the body, and its content type where no header sets it.
    pub fn body(self, content_type: &str, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        self.try_map(|request| {
            let kind = HeaderValue::try_from(content_type)
                .map_err(|_| Error::invalid("the content type cannot be written into a header"))?;
            request.headers.entry(header::CONTENT_TYPE).or_insert(kind);
            request.body = Some(body);
            Ok(())
        })
    }

    /// Sets a JSON body.
    pub fn json<T: Serialize + ?Sized>(self, value: &T) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => self.body("application/json", body),
            Err(problem) => self.try_map(|_| Err(Error::invalid(problem.to_string()))),
        }
    }

    /// Sets the limits of this call.
    pub fn with(self, options: CallOptions) -> Self {
        self.try_map(|request| {
            request.options = options;
            Ok(())
        })
    }

    /// Sends the request.
    ///
    /// # Errors
    ///
    /// Where the path or a header cannot be sent, and whatever else ends a call.
    pub async fn send(self) -> Result<Response<Bytes>, Error> {
        self.pipeline.call(&self.request?).await
    }
}
