//! What is checked before a call starts: its options, its URL and its runtime.

use tokio::runtime::Handle;

use crate::client::Client;
use crate::error::Error;
use crate::request::Request;
use crate::wire::base_url::same_origin;

/// Checks the request before anything is sent. Returns the current runtime.
pub(super) fn check(client: &Client, request: &Request) -> Result<Handle, Error> {
    if client.options.max_attempts == Some(0) {
        return Err(Error::invalid(
            "the number of attempts cannot be used: it must be at least 1",
        ));
    }
    // The last check before the key is sent: the request must go to the base URL's origin.
    if !same_origin(&request.url, client.base_url()) {
        return Err(Error::invalid("its URL is not on the base URL's origin"));
    }
    Handle::try_current().map_err(|_| Error::cannot_run("there is no Tokio runtime"))
}
