//! The typed client and the mock over TLS.

use std::collections::HashSet;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::auth::{CachingProvider, provider_fn};
use petstore_client::limits::Limits;
use petstore_client::transport::{Connection, Tls};
use petstore_client::{ApiKey, Client, ClientBuilder, ErrorKind};
use petstore_mock::{MockServer, Plan};

use crate::client::sources;

async fn start() -> MockServer {
    MockServer::builder().tls().start().await.unwrap()
}

fn client(server: &MockServer) -> ClientBuilder {
    Client::builder(server.url()).api_key("business-key")
}

/// Lists pets with this connection.
async fn list(
    server: &MockServer,
    connection: Connection,
) -> Result<usize, petstore_client::Error> {
    let client = client(server).connection(connection).build().unwrap();
    Ok(client.pets().list().await?.len())
}

#[tokio::test]
async fn named_authorities_are_trusted_besides_others_or_alone() {
    let (server, other) = (start().await, start().await);
    let authority = server.ca_certificate().unwrap();
    let beside = Connection::new().roots(authority);
    assert_eq!(list(&server, beside).await.unwrap(), 20);
    let only = |server: &MockServer| {
        let tls = Tls::new().only_root_certificates(true);
        let tls = tls.root_certificates(server.ca_certificate().unwrap());
        Connection::new().tls(tls)
    };
    assert_eq!(list(&server, only(&server)).await.unwrap(), 20);
    let error = list(&server, only(&other)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls);
}

#[tokio::test]
async fn a_client_that_does_not_trust_the_mock_says_why() {
    let server = start().await;
    let error = list(&server, Connection::new()).await.unwrap_err();
    let sources = sources(&error).map(ToString::to_string);
    let text = sources.collect::<Vec<_>>().join(": ");
    assert!(
        error.is_connect() && text.contains("UnknownIssuer"),
        "{text}"
    );
    assert_eq!(error.kind(), ErrorKind::Tls);
    // A retry would fail too, so there is none.
    assert_eq!((error.attempts(), server.requests(..).len()), (1, 0));
}

#[tokio::test]
async fn an_invalid_certificate_is_refused_when_the_client_is_built() {
    let server = start().await;
    let broken = "-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n";
    for (tls, says) in [
        (Tls::new().root_certificates(broken), "root certificates"),
        (
            Tls::new().only_root_certificates(true),
            "no PEM certificate was found",
        ),
        (
            Tls::new().client_certificate("nonsense"),
            "client certificate",
        ),
    ] {
        let client = client(&server).connection(Connection::new().tls(tls));
        let error = client.build().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[tokio::test]
async fn the_error_of_a_server_without_tls_says_so() {
    let server = MockServer::start().await;
    let url = server.url().replace("http:", "https:");
    let client = Client::builder(url).api_key("business-key");
    let client = client.build().unwrap();
    let error = client.pets().list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls);
    let says = "the server does not speak TLS";
    assert!(error.to_string().contains(says), "{error}");
}

/// The number of calls that share a connection.
const STREAMS: usize = 64;

#[tokio::test]
async fn a_key_refused_to_many_streams_of_http2_is_refreshed_once() {
    let builder = MockServer::builder().tls().key("old", Plan::Business);
    let server = builder.key("new", Plan::Business).start().await.unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let vault = provider_fn(move |_: Option<ApiKey>| {
        let key = match count.fetch_add(1, Ordering::Relaxed) {
            0 => "old",
            _ => "new",
        };
        async move { Ok::<_, Box<dyn Error + Send + Sync>>(ApiKey::new(key)) }
    });
    let client = Client::builder(server.url())
        .api_key_provider(CachingProvider::new(vault, Duration::from_secs(300)))
        .isolated_limits()
        .limits(Limits::new().max_in_flight(64))
        .connection(Connection::new().roots(server.ca_certificate().unwrap()))
        .build()
        .unwrap();
    client.pets().list().await.unwrap();
    server.keys().get("old").unwrap().remove();
    let calls = (0..STREAMS).map(|_| client.pets().list().with_meta());
    for page in join_all(calls).await {
        assert!(page.unwrap().meta.attempts() <= 2);
    }
    let requests = server.requests(..);
    let refused = requests.iter().filter(|one| one.status == Some(401));
    assert!(refused.count() > STREAMS / 2, "few streams had the old key");
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    let connections: HashSet<_> = requests.iter().map(|one| one.connection).collect();
    assert_eq!(connections.len(), 1, "HTTP/2 needs one connection");
}
