//! Checks the settings of a client, and builds it.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, header};

use super::ClientBuilder;
use crate::client::{Client, Core};
use crate::error::Error;
use crate::http::base_url::BaseUrl;
use crate::http::extra_headers::additional_header;
use crate::rate_limit::ClientLimiters;
use crate::retry::Retries;
use crate::transport::{Network, Route};

const USER_AGENT: &str = concat!("petstore-client/", env!("CARGO_PKG_VERSION"));

impl ClientBuilder {
    /// Builds the client.
    ///
    /// # Errors
    ///
    /// Fails if the base URL, the key or another setting is invalid. The message says which
    /// setting, and why.
    pub fn build(mut self) -> Result<Client, Error> {
        let base = BaseUrl::parse(&self.base_url, self.insecure)
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
            (None, Some(wrap)) => Route::Wrapped(wrap(self.connection.build(&base)?)),
            (None, None) => Route::Builtin(self.connection.build(&base)?),
        };
        let limiters = ClientLimiters::new(base.as_url().clone(), self.store, self.policy);
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
            retries: Arc::new(Retries::new(self.backoff, self.classifier, self.budget)),
            events: self.events,
        };
        Ok(Client {
            core: Arc::new(core),
            options: self.options,
        })
    }

    fn check(&self) -> Result<(), Error> {
        let fail = |setting, problem: &str| Err(Error::config(setting, problem));
        let (share, plan) = (self.policy.terms().share(), self.policy.terms().plan());
        if self.options.max_attempts == Some(0) {
            return fail("number of attempts", "it must be at least 1");
        }
        if !(share > 0.0 && share <= 1.0) {
            let problem = format!("it is {share}, and must be above 0 and at most 1");
            return fail("quota share", &problem);
        }
        if self.policy.max_in_flight() == Some(0) {
            return fail("number of requests in flight", "it must be at least 1");
        }
        if plan.is_some_and(|plan| plan.minute_limit() == Some(0) || plan.day_limit() == Some(0)) {
            return fail("plan", "a quota of 0 would block every call");
        }
        if let Some(problem) = self.budget.problem() {
            return fail("retry budget", &problem);
        }
        #[cfg(feature = "test-util")]
        if self.test_clock.is_some() && self.store.is_some() {
            return fail("service clock", "shared limits do not work with it");
        }
        if self.transport.is_some() && self.wrapper.is_some() {
            return fail(
                "transport",
                "`transport` replaces the built-in one that `wrap_transport` wraps; use one of them",
            );
        }
        match self.connection.any() {
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
        for (name, value) in &self.headers {
            let (name, value) = additional_header(name, value.as_str())
                .map_err(|problem| Error::config("default header", problem))?;
            headers.insert(name, value);
        }
        Ok(headers)
    }
}
