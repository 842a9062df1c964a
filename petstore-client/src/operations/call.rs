//! A call that only needs to be awaited.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::call::{CallFuture, Core, Decode, Request};
use crate::error::Error;
use crate::options::RequestOptions;
use crate::response::Response;

/// One call, ready to go: await it, or change its limits first. It may be moved and spawned.
///
/// ```
/// # use std::time::Duration;
/// # use petstore_client::{NewPet, RequestOptions};
/// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
/// let hurried = RequestOptions::new().timeout(Duration::from_secs(2));
/// let rex = client.pets().create(&NewPet::new("Rex", 7)).options(&hurried).await?;
/// # let _ = rex;
/// # Ok(())
/// # }
/// ```
#[must_use = "a call does nothing until it is awaited"]
pub struct Call<T> {
    core: Arc<Core>,
    request: Result<Request, Error>,
    decode: Decode<T>,
}

impl<T: DeserializeOwned> Call<T> {
    pub(super) fn new(core: Arc<Core>, request: Result<Request, Error>) -> Self {
        Self { core, request, decode: Response::decoded }
    }

    /// Sets limits of this call; what `options` leaves unset stays.
    pub fn options(mut self, options: &RequestOptions) -> Self {
        if let Ok(request) = &mut self.request {
            request.options.merge(options);
        }
        self
    }

    /// Sends the request; the same as awaiting the call.
    ///
    /// # Errors
    ///
    /// The future returns whatever ends the call without the operation's result; see [`Error`].
    pub fn send(self) -> CallFuture<T> {
        CallFuture::new(self.core, self.request, self.decode)
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
