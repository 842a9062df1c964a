//! The rate limits of a client's key.

use std::time::Duration;

use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::rate_limit::RateLimits;

/// How long a refresh waits for the response to another first request, after which it is sent.
const REFRESH_MAX_WAIT: Duration = Duration::from_secs(5);

/// The rate limits of a client's key, from [`Client::limits`].
///
/// All clients of a process with the same key, origin and store share them. With a key provider, they
/// are those of the key that was used last.
///
/// ```
/// # async fn show(client: petstore_client::Client) -> petstore_client::Result<()> {
/// let limits = client.limits();
/// let known = limits.snapshot();
/// let asked = limits.refresh().await?;
/// println!("{:?}, and now {:?}", known.windows, asked.windows);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct KeyLimits(Client);

impl Client {
    /// Returns the rate limits of the key.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) {
    /// let limits = client.limits().snapshot();
    /// for window in &limits.windows {
    ///     println!("{}: {} of {} left", window.quota, window.remaining, window.limit);
    /// }
    /// if let Some(blocked) = limits.blocked {
    ///     println!("{} calls wait: {blocked}", limits.waiting);
    /// } else if let Some(reason) = limits.wait_reason {
    ///     println!("{} calls wait for {reason}", limits.waiting);
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn limits(&self) -> KeyLimits {
        KeyLimits(self.clone())
    }
}

impl KeyLimits {
    /// Returns what is known, without asking anybody.
    #[must_use]
    pub fn snapshot(&self) -> RateLimits {
        let limiter = self.0.limiter();
        limiter.map(|limiter| limiter.view()).unwrap_or_default()
    }

    /// Exchanges what is known with the store of shared limits, and returns the result. Sends no request
    /// to the service. Without a store, it equals [`snapshot`](Self::snapshot).
    pub fn exchange(&self) -> impl Future<Output = RateLimits> + Send + use<> {
        let limits = self.clone();
        async move {
            if let Some(limiter) = limits.0.limiter() {
                limiter.synchronize().await;
            }
            limits.snapshot()
        }
    }

    /// Asks the service: sends one `GET /pets?limit=1`, even if the quotas are known to be exhausted. It
    /// uses one request of the quotas. During a block, only one of several such calls sends a request.
    ///
    /// # Errors
    ///
    /// Fails if the call fails. After a 429, [`snapshot`](Self::snapshot) contains its block.
    pub fn refresh(&self) -> impl Future<Output = Result<RateLimits, Error>> + Send + use<> {
        let limits = self.clone();
        async move {
            let list = limits.0.pets().list().limit(1).max_wait(REFRESH_MAX_WAIT);
            list.once_regardless_of_limits().await?;
            Ok(limits.snapshot())
        }
    }

    /// Forgets the windows, the block and lost requests, for this process and all others that share
    /// them. A blocked key can be used again: the next call sends a request.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::Store`](crate::ErrorKind::Store) if the store cannot be used.
    pub fn forget(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let limiter = self.0.limiter();
        async move {
            let Some(limiter) = limiter else {
                return Ok(());
            };
            let forgotten = limiter.forget().await;
            forgotten.map_err(|problem| {
                let message = format!("the store of shared limits cannot be used: {problem}");
                Error::new(ErrorKind::Store, message).with_source(problem)
            })
        }
    }
}
