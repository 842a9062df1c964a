//! A call that only needs to be awaited.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;

use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::options::CallOptions;
use crate::pipeline::Pipeline;
use crate::request::Request;
use crate::response::Response;

/// One call, ready to go: await it, or change its limits first.
///
/// ```
/// # use std::time::Duration;
/// # use petstore_client::{CallOptions, NewPet};
/// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
/// let hurried = CallOptions::new().timeout(Duration::from_secs(2));
/// let rex = client.pets().create(&NewPet::new("Rex", 7)).with(hurried).await?;
/// # let _ = rex;
/// # Ok(())
/// # }
/// ```
#[must_use = "a call does nothing until it is awaited"]
pub struct Call<'c, T> {
    pipeline: &'c Pipeline,
    request: Result<Request, Error>,
    result: PhantomData<fn() -> T>,
}

impl<'c, T: DeserializeOwned> Call<'c, T> {
    pub(crate) fn new(pipeline: &'c Pipeline, request: Result<Request, Error>) -> Self {
        Self { pipeline, request, result: PhantomData }
    }

    /// Sets the limits of this call.
    pub fn with(mut self, options: CallOptions) -> Self {
        if let Ok(request) = &mut self.request {
            request.options = options;
        }
        self
    }

    /// Sends the request; the same as awaiting the call.
    ///
    /// # Errors
    ///
    /// Whatever ends the call without the operation's result; see [`Error`].
    pub async fn send(self) -> Result<Response<T>, Error> {
        fetch(self.pipeline, &self.request?).await
    }
}

/// Carries a request out and decodes what comes.
pub(super) async fn fetch<T: DeserializeOwned>(
    pipeline: &Pipeline,
    request: &Request,
) -> Result<Response<T>, Error> {
    pipeline.call(request).await?.decoded()
}

impl<'c, T: DeserializeOwned + 'c> IntoFuture for Call<'c, T> {
    type Output = Result<Response<T>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'c>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

impl<T> fmt::Debug for Call<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("request", &self.request).finish_non_exhaustive()
    }
}
