//! Tests of client and mock together: every operation, status and header of the specification, over
//! real sockets. Client and mock share no types, so that neither can hide a mistake of the other.

mod both_ways;
mod compliance;
mod limits;
mod operations;
mod tls;

use petstore_client::Client;
use petstore_mock::{Builder, Clock, MockServer, Plan};

use crate::client::{START, at, mock};
use crate::openapi::Watched;

/// A server with a clock frozen at [`START`], and the key `key`.
fn frozen(plan: Plan) -> Builder {
    mock("key", plan).clock(Clock::frozen(at(START)))
}

/// Starts a server whose responses are all checked against the contract.
async fn watched(builder: Builder) -> Watched {
    Watched::start(builder).await
}

fn client(server: &MockServer) -> Client {
    Client::builder(server.url())
        .api_key("key")
        .isolated_limits()
        .build()
        .unwrap()
}
