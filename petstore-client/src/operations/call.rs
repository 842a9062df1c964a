//! A call of an operation.

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::future::{CallFuture, Decode};
use crate::client::Client;
use crate::error::Error;
use crate::options::{RequestOptions, option_setters};
use crate::request::Request;
use crate::response::Response;

/// One call: await it, or change its limits first. It may be moved and spawned.
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
#[derive(Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct Call<T> {
    client: Client,
    request: Result<Request, Error>,
    decode: Decode<T>,
}

impl<T: DeserializeOwned> Call<T> {
    pub(super) fn new(client: Client, request: Result<Request, Error>) -> Self {
        Self { client, request, decode: Response::decoded }
    }

    option_setters!();

    fn options_mut(&mut self) -> &mut RequestOptions {
        &mut self.client.options
    }

    /// Sends the request; the same as awaiting the call.
    ///
    /// # Errors
    ///
    /// The future returns whatever ends the call without the operation's result; see [`Error`].
    pub fn send(self) -> CallFuture<T> {
        CallFuture::new(self.client, self.request, self.decode)
    }

    /// Returns the request as it would be sent, without `Authorization`.
    ///
    /// # Errors
    ///
    /// Where the request cannot be sent.
    pub fn build(self) -> Result<http::Request<Bytes>, Error> {
        self.client.build(&self.request?)
    }
}

impl<T: DeserializeOwned> IntoFuture for Call<T> {
    type Output = Result<Response<T>, Error>;
    type IntoFuture = CallFuture<T>;

    fn into_future(self) -> CallFuture<T> {
        self.send()
    }
}
