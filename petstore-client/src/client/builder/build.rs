//! Checks the settings of a client, and builds it.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, header};

use super::ClientBuilder;
use crate::client::closing::Closing;
use crate::client::{Client, Core};
use crate::error::Error;
use crate::rate_limit::ClientLimiters;
use crate::retry::Retries;
use crate::transport::{Network, Route};
use crate::wire::base_url::BaseUrl;

const USER_AGENT: &str = concat!("petstore-client/", env!("CARGO_PKG_VERSION"));

impl ClientBuilder {
    /// Builds the client.
    ///
    /// # Errors
    ///
    /// Fails if the base URL, the key or another setting is invalid. The message says which
    /// setting, and why.
    pub fn build(mut self) -> Result<Client, Error> {
        let base = BaseUrl::parse(&self.base_url, self.connection.allows_insecure_http())
            .map_err(|problem| Error::config("base URL", problem))?;
        let credentials = self.credentials.take().unwrap_or_else(|| {
            Err(Error::config(
                "API key",
                "none was given; set `api_key` or `api_key_provider`",
            ))
        })?;
        self.check()?;
        let headers = self.headers()?;
        let route = match (self.transport, self.wrapper) {
            (Some(transport), _) => Route::Custom(transport),
            (None, Some(wrap)) => Route::Custom(wrap(self.connection.build(&base)?)),
            (None, None) => Route::Builtin(self.connection.build(&base)?),
        };
        let limiters = ClientLimiters::new(base.as_url().clone(), self.limits);
        #[cfg(feature = "test-util")]
        let limiters = if self.isolated {
            limiters.isolated(self.test_clock)
        } else {
            limiters
        };
        let core = Core {
            network: Arc::new(Network::new(base.as_url(), route)),
            base,
            credentials,
            limiters,
            headers,
            retries: Arc::new(Retries::new(self.retry)),
            events: self.events,
            closing: Closing::default(),
        };
        Ok(Client {
            core: Arc::new(core),
            options: self.options,
        })
    }

    fn check(&self) -> Result<(), Error> {
        let fail = |setting, problem: &str| Err(Error::config(setting, problem));
        if self.options.max_attempts == Some(0) {
            return fail("number of attempts", "it must be at least 1");
        }
        if let Some(problem) = self.options.header_problem() {
            return fail("header", problem);
        }
        let problem = self.limits.problem().or_else(|| self.retry.problem());
        if let Some((setting, problem)) = problem {
            return fail(setting, &problem);
        }
        #[cfg(feature = "test-util")]
        if self.test_clock.is_some() && self.limits.has_store() {
            return fail("service clock", "shared limits do not work with it");
        }
        if self.transport.is_some() && self.wrapper.is_some() {
            return fail(
                "transport",
                "`transport` replaces the built-in one that `wrap_transport` wraps; use one of them",
            );
        }
        match self.connection.of_builtin() {
            Some(setting) if self.transport.is_some() => fail(
                setting,
                "it is for the built-in transport, which `transport` replaces",
            ),
            _ => Ok(()),
        }
    }

    /// Returns the headers of every request.
    fn headers(&self) -> Result<HeaderMap, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let agent = match &self.user_agent {
            Some(product) => format!("{product} {USER_AGENT}"),
            None => USER_AGENT.to_owned(),
        };
        let agent = HeaderValue::try_from(agent)
            .map_err(|_| Error::config("user agent", "it cannot be written into a header"))?;
        headers.insert(header::USER_AGENT, agent);
        Ok(headers)
    }
}
