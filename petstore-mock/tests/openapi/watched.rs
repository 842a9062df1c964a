//! A server whose responses are all checked against the contract when the test ends, except for
//! those that a fault has changed.

use std::ops::Deref;

use petstore_mock::{Builder, Exchange, MockServer};

use super::{Answer, offence};

/// The server; `None` after it was stopped.
#[derive(Debug)]
pub(crate) struct Watched(Option<MockServer>);

impl Watched {
    pub(crate) async fn start(builder: Builder) -> Self {
        Self(Some(builder.start().await.unwrap()))
    }

    /// Stops the server as [`MockServer::stop`] does.
    #[allow(
        dead_code,
        reason = "the tests that span the crates include this file, and drop theirs"
    )]
    pub(crate) async fn stop(mut self) {
        self.check();
        self.0.take().unwrap().stop().await;
    }

    fn check(&self) {
        let exchanges = self.0.iter().flat_map(|server| server.requests(..));
        let offences: Vec<_> = exchanges.filter_map(|exchange| of(&exchange)).collect();
        assert!(
            offences.is_empty(),
            "responses that openapi.yaml does not allow: {offences:#?}"
        );
    }
}

impl Deref for Watched {
    type Target = MockServer;

    fn deref(&self) -> &MockServer {
        self.0.as_ref().unwrap()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check();
        }
    }
}

/// Returns what is wrong with the response of an exchange.
fn of(exchange: &Exchange) -> Option<String> {
    let path = exchange.path();
    // The document does not describe percent-encoded paths, which the mock accepts.
    if !exchange.faults.is_empty() || path.contains('%') {
        return None;
    }
    // The document does not describe CORS preflights.
    if exchange.method == http::Method::OPTIONS && exchange.status == Some(204) {
        return None;
    }
    let body = &*exchange.reply_body;
    let is_whole = body.len() as u64 == exchange.reply_body_length;
    offence(&Answer {
        method: exchange.method.as_str(),
        path,
        status: exchange.status?,
        headers: exchange.reply_headers.clone(),
        body: is_whole.then_some(body),
    })
}
