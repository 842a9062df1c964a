//! Caches responses: wraps the built-in transport, and answers repeated GETs without a request.
//!
//! `cargo run -p petstore-client --example cache`
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use petstore_client::Client;
use petstore_client::bytes::Bytes;
use petstore_client::http::{self, Method};
use petstore_client::transport::{Builtin, SendMark, Transport, TransportError};
use petstore_mock::{MockServer, Plan};
use tokio::time::Instant;

/// How long a response is used again.
const FRESH: Duration = Duration::from_secs(30);

struct Cache {
    builtin: Builtin,
    /// The time and the response of each URL.
    stored: Mutex<HashMap<String, (Instant, http::Response<Bytes>)>>,
}

impl Cache {
    fn new(builtin: Builtin) -> Self {
        Self {
            builtin,
            stored: Mutex::default(),
        }
    }

    fn find(&self, url: &str) -> Option<http::Response<Bytes>> {
        let stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, response) = stored.get(url)?;
        (since.elapsed() < FRESH).then(|| response.clone())
    }

    fn store(&self, url: String, response: http::Response<Bytes>) {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        stored.retain(|_, (since, _)| since.elapsed() < FRESH);
        stored.insert(url, (Instant::now(), response));
    }
}

impl Transport for Cache {
    async fn send(
        &self,
        mut request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, TransportError> {
        if request.method() != Method::GET {
            return self.builtin.send(request).await;
        }
        let url = request.uri().to_string();
        if let Some(response) = self.find(&url) {
            // The mark is not set, because nothing is sent. So the call uses no quota.
            let _ = SendMark::take(&mut request);
            return Ok(response);
        }
        let response = self.builtin.send(request).await?;
        if response.status().is_success() {
            self.store(url, response.clone());
        }
        Ok(response)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = MockServer::builder().key("key", Plan::Free).start().await?;
    let client = Client::builder(server.url())
        .api_key("key")
        .wrap_transport(Cache::new)
        .build()?;
    for _ in 0..100 {
        client.pets().list().limit(5).await?;
    }
    let requests = server.requests(..).len();
    println!("100 lists, {requests} request");
    assert_eq!(requests, 1);
    Ok(())
}
