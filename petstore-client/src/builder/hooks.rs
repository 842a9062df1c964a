//! What a program hears of: waits, refusals, deprecated operations, and all that goes over the wire.

use std::sync::Arc;

use super::ClientBuilder;
use crate::deprecation::Deprecation;
use crate::notices::{Exchange, Refusal, Wait};

impl ClientBuilder {
    /// Sets a function that hears of each deprecated operation, once for this client and its
    /// clones, with the operation's name.
    pub fn on_deprecation(
        mut self,
        hook: impl Fn(&str, &Deprecation) + Send + Sync + 'static,
    ) -> Self {
        self.hooks.on_deprecation = Some(Arc::new(hook));
        self
    }

    /// Sets a function that hears of each wait that a rate limit asks for, before it begins, so
    /// that a program can show why nothing happens. Of calls that stand in line already the first
    /// is told for all.
    pub fn on_wait(mut self, hook: impl Fn(&Wait<'_>) + Send + Sync + 'static) -> Self {
        self.hooks.on_wait = Some(Arc::new(hook));
        self
    }

    /// Sets a function that hears of each refusal (429, or 503 with `Retry-After`) when it comes,
    /// whether the call is then sent again or fails. A client that keeps within the limits hardly
    /// ever calls it: where it does, others use the key, or the limits are not shown.
    ///
    /// ```
    /// use petstore_client::Client;
    ///
    /// let client = Client::builder("https://petstore.example/v1")
    ///     .api_key("s3cret")
    ///     .on_refusal(|refusal| {
    ///         eprintln!("{} was refused for {}", refusal.operation, refusal.quota);
    ///     })
    ///     .build()?;
    /// # let _ = client;
    /// # Ok::<(), petstore_client::Error>(())
    /// ```
    pub fn on_refusal(mut self, hook: impl Fn(&Refusal<'_>) + Send + Sync + 'static) -> Self {
        self.hooks.on_refusal = Some(Arc::new(hook));
        self
    }

    /// Sets a function that hears of each attempt when it has ended: what was sent, and what came.
    /// For logs and for people who look for a fault; the key is not in it, what else is secret may
    /// be.
    ///
    /// ```
    /// use petstore_client::Client;
    ///
    /// let client = Client::builder("https://petstore.example/v1")
    ///     .api_key("s3cret")
    ///     .on_exchange(|exchange| match &exchange.answer {
    ///         Ok(answer) => eprintln!("{} {}: {}", exchange.method, exchange.url, answer.status),
    ///         Err(error) => eprintln!("{} {}: {error}", exchange.method, exchange.url),
    ///     })
    ///     .build()?;
    /// # let _ = client;
    /// # Ok::<(), petstore_client::Error>(())
    /// ```
    pub fn on_exchange(mut self, hook: impl Fn(&Exchange<'_>) + Send + Sync + 'static) -> Self {
        self.hooks.on_exchange = Some(Arc::new(hook));
        self
    }
}
