//! A call of an operation, before and while it runs.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderValue, header};
use serde::de::DeserializeOwned;

use crate::call::{RunningCall, report_unstarted};
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::options::{RequestOptions, option_setters};
use crate::request::Request;
use crate::response::Response;
use crate::wire::extra_headers::additional_header;

/// A call that has not started: await it, or change its limits first. It can be moved and spawned.
///
/// ```
/// # use std::time::Duration;
/// # use petstore_client::NewPet;
/// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
/// let rex = client.pets().create(&NewPet::new("Rex", 7)).timeout(Duration::from_secs(2)).await?;
/// # let _ = rex;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a call does nothing until it is awaited"]
pub struct Call<T> {
    pub(super) client: Client,
    pub(super) request: Result<Request, Error>,
    pub(super) decode: Decode<T>,
}

impl<T: DeserializeOwned> Call<T> {
    /// Creates a call that decodes its response from JSON.
    pub(super) fn new(client: Client, request: Result<Request, Error>) -> Self {
        Self {
            client,
            request,
            decode: Response::decoded,
        }
    }
}

impl<T> Call<T> {
    option_setters!();

    pub(super) fn options_mut(&mut self) -> &mut RequestOptions {
        &mut self.client.options
    }

    /// Changes the request, unless an earlier change failed.
    pub(super) fn try_map(
        mut self,
        change: impl FnOnce(&mut Request) -> Result<(), Error>,
    ) -> Self {
        if let Ok(request) = &mut self.request
            && let Err(error) = change(request)
        {
            self.request = Err(error.with_operation(request.operation.clone()));
        }
        self
    }

    /// Adds a header to all attempts. `Content-Type` replaces that of the body. The client sets
    /// `Authorization`, `Host`, `Connection` and the headers for the body's length, and refuses them
    /// here.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// let orders = client.store().orders().header("Accept-Language", "de").await?;
    /// # let _ = orders;
    /// # Ok(())
    /// # }
    /// ```
    pub fn header<V: TryInto<HeaderValue>>(self, name: impl AsRef<str>, value: V) -> Self {
        self.try_map(|request| {
            let (name, value) = additional_header(name.as_ref(), value).map_err(Error::invalid)?;
            if name == header::CONTENT_TYPE {
                request.headers.insert(name, value);
            } else {
                request.headers.append(name, value);
            }
            Ok(())
        })
    }

    /// Sends the request. Awaiting the call does the same. For functions that take a future, such as
    /// `tokio::spawn`.
    ///
    /// # Errors
    ///
    /// The future fails if the call fails; see [`Error`].
    pub fn send(self) -> CallFuture<T> {
        CallFuture(self.with_meta())
    }

    /// Sends the request, and returns the metadata of the response with its value.
    ///
    /// # Errors
    ///
    /// The future fails if the call fails; see [`Error`].
    pub fn with_meta(self) -> ResponseFuture<T> {
        ResponseFuture::new(self.client, self.request, self.decode)
    }

    /// Returns the request that would be sent, without `Authorization`.
    ///
    /// # Errors
    ///
    /// Fails if the request is invalid.
    pub fn build(self) -> Result<http::Request<Bytes>, Error> {
        self.client.build(self.request?)
    }
}

impl<T> IntoFuture for Call<T> {
    type Output = Result<T, Error>;
    type IntoFuture = CallFuture<T>;

    fn into_future(self) -> CallFuture<T> {
        self.send()
    }
}

/// A running call: await it for its value.
///
/// It starts when it is first polled, and continues even if it is not polled again: then it moves
/// to a separate task within 10 ms. It can be spawned, stored, shared or used in `select!`.
/// Dropping it cancels the call, but a sent request may still arrive. Key providers and event hooks may
/// run in that task, so they must not rely on task-locals.
///
/// It needs a Tokio runtime with timers and I/O (`enable_all`); without these, Tokio panics.
#[must_use = "a call does nothing until it is polled"]
pub struct CallFuture<T>(ResponseFuture<T>);

/// A running call, like [`CallFuture`]: await it for its value with the metadata of the response.
#[must_use = "a call does nothing until it is polled"]
pub struct ResponseFuture<T> {
    state: Box<FutureState>,
    decode: Decode<T>,
}

#[expect(
    clippy::large_enum_variant,
    reason = "the future allocates it once, and most futures are polled"
)]
enum FutureState {
    New(NewCall),
    Running(RunningCall),
    Ended,
}

struct NewCall {
    client: Client,
    request: Result<Request, Error>,
}

pub(super) type Decode<T> = fn(Response<Bytes>) -> Result<Response<T>, Error>;

impl<T> ResponseFuture<T> {
    pub(super) fn new(client: Client, request: Result<Request, Error>, decode: Decode<T>) -> Self {
        Self {
            state: Box::new(FutureState::New(NewCall { client, request })),
            decode,
        }
    }
}

impl NewCall {
    /// Starts the call in a span.
    fn start(self) -> Result<RunningCall, Error> {
        let Self { client, request } = self;
        let core = Arc::clone(&client.core);
        let started = request
            .and_then(|request| client.prepare(request))
            .and_then(|request| RunningCall::start(client, request));
        started.inspect_err(|error| report_unstarted(&core, error))
    }
}

impl FutureState {
    /// Starts a new call. Returns the running one.
    fn start(&mut self) -> Result<&mut RunningCall, Error> {
        if let Self::New(_) = self
            && let Self::New(new) = std::mem::replace(self, Self::Ended)
        {
            *self = Self::Running(new.start()?);
        }
        match self {
            Self::Running(running) => Ok(running),
            Self::New(_) | Self::Ended => Err(Error::new(
                ErrorKind::Runtime,
                "the call was polled after its end",
            )),
        }
    }
}

impl<T> Future for CallFuture<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let response = ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(response.map(|response| response.value))
    }
}

impl<T> Future for ResponseFuture<T> {
    type Output = Result<Response<T>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let decode = self.decode;
        let running = match self.state.start() {
            Ok(running) => running,
            Err(error) => return Poll::Ready(Err(error)),
        };
        let response = ready!(running.poll(context));
        let result = response.and_then(decode);
        running.end(result.as_ref().map(|response| response.meta.status()));
        *self.state = FutureState::Ended;
        Poll::Ready(result)
    }
}

impl<T> fmt::Debug for CallFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallFuture").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for ResponseFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
