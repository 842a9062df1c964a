//! A call that only needs to be awaited.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::call::{CallFuture, Core, Decode, Request};
use crate::error::Error;
use crate::options::{RequestOptions, option_setters};
use crate::response::Response;

/// One call, ready to go: await it, or change its limits first. It may be moved and spawned.
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
#[must_use = "a call does nothing until it is awaited"]
pub struct Call<T> {
    core: Arc<Core>,
    request: Result<Request, Error>,
    options: RequestOptions,
    decode: Decode<T>,
}

impl<T: DeserializeOwned> Call<T> {
    pub(super) fn new(
        (core, options): (Arc<Core>, RequestOptions),
        request: Result<Request, Error>,
    ) -> Self {
        Self { core, request, options, decode: Response::decoded }
    }

    option_setters!(options);

    /// Sends the request; the same as awaiting the call.
    ///
    /// # Errors
    ///
    /// The future returns whatever ends the call without the operation's result; see [`Error`].
    pub fn send(self) -> CallFuture<T> {
        CallFuture::new(self.core, self.request, self.options, self.decode)
    }
}

impl<T> Call<T> {
    /// Returns the request as it would be sent, without `Authorization`.
    ///
    /// # Errors
    ///
    /// Where it cannot be sent as it is.
    pub fn build(self) -> Result<http::Request<Bytes>, Error> {
        self.core.built(&self.request?)
    }
}

impl<T: DeserializeOwned> IntoFuture for Call<T> {
    type Output = Result<Response<T>, Error>;
    type IntoFuture = CallFuture<T>;

    fn into_future(self) -> CallFuture<T> {
        self.send()
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("request", &self.request).finish_non_exhaustive()
    }
}
