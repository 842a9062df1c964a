//! The typed client and the mock over TLS.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::auth::{CachingProvider, provider_fn};
use petstore_client::bytes::Bytes;
use petstore_client::limits::Limits;
use petstore_client::transport::{Connection, Tls, TransportError, transport_fn};
use petstore_client::{ApiKey, Client, ClientBuilder, ErrorKind};
use petstore_mock::{MockServer, Plan};

use crate::client::sources;

async fn start() -> MockServer {
    MockServer::builder().tls().start().await.unwrap()
}

fn client(server: &MockServer) -> ClientBuilder {
    Client::builder(server.url()).api_key("business-key")
}

#[tokio::test]
async fn a_client_that_trusts_the_mock_is_served_over_both_protocols() {
    let server = start().await;
    let authority = server.ca_certificate().unwrap();
    let built_in = client(&server)
        .connection(Connection::new().roots(authority))
        .build()
        .unwrap();
    assert_eq!(built_in.pets().list().await.unwrap().len(), 20);
    let roots = [reqwest::Certificate::from_pem(authority.as_bytes()).unwrap()];
    let http = reqwest::Client::builder()
        .http1_only()
        .tls_certs_only(roots)
        .build()
        .unwrap();
    let own = client(&server).transport(transport_fn(move |request| send(http.clone(), request)));
    assert_eq!(own.build().unwrap().pets().list().await.unwrap().len(), 20);
}

/// An HTTP client of the program's own, as a transport.
async fn send(
    http: reqwest::Client,
    request: http::Request<Bytes>,
) -> Result<http::Response<Bytes>, TransportError> {
    let request = reqwest::Request::try_from(request).map_err(TransportError::connect)?;
    let response = http
        .execute(request)
        .await
        .map_err(|error| match error.is_connect() {
            true => TransportError::connect(error),
            false => TransportError::interrupted(error),
        })?;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = response
        .bytes()
        .await
        .map_err(TransportError::interrupted)?;
    let mut whole = http::Response::new(body);
    (*whole.status_mut(), *whole.headers_mut()) = (status, headers);
    Ok(whole)
}

#[tokio::test]
async fn only_named_authorities_are_trusted_where_asked() {
    let server = start().await;
    let only = || Tls::new().only_root_certificates(true);
    let trusts = client(&server).connection(
        Connection::new().tls(only().root_certificates(server.ca_certificate().unwrap())),
    );
    assert_eq!(
        trusts.build().unwrap().pets().list().await.unwrap().len(),
        20
    );
    let none = client(&server)
        .connection(Connection::new().tls(only()))
        .build()
        .unwrap_err();
    assert!(
        none.to_string().contains("no PEM certificate was found"),
        "{none}"
    );
    let other = start().await;
    let trusts = client(&server).connection(
        Connection::new().tls(only().root_certificates(other.ca_certificate().unwrap())),
    );
    let error = trusts.build().unwrap().pets().list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls);
}

#[tokio::test]
async fn a_client_that_does_not_trust_the_mock_says_why() {
    let server = start().await;
    let error = client(&server)
        .build()
        .unwrap()
        .pets()
        .list()
        .await
        .unwrap_err();
    let text = sources(&error)
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ");
    assert!(
        error.is_connect() && error.kind() == ErrorKind::Tls && text.contains("UnknownIssuer"),
        "{text}"
    );
    assert_eq!(
        (error.attempts(), server.requests(..).len()),
        (1, 0),
        "a retry would fail too, so there is none"
    );
}

#[tokio::test]
async fn an_invalid_certificate_is_refused_when_the_client_is_built() {
    let server = start().await;
    for text in [
        "",
        "-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n",
    ] {
        let error = client(&server)
            .connection(Connection::new().roots(text))
            .build()
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("root certificates") && !error.contains("builder"),
            "{error}"
        );
    }
    let nonsense = client(&server)
        .connection(Connection::new().tls(Tls::new().client_certificate("nonsense")));
    let error = nonsense.build().unwrap_err().to_string();
    assert!(
        error.contains("client certificate") && !error.contains("builder"),
        "{error}"
    );
}

#[tokio::test]
async fn the_error_of_a_server_without_tls_says_so() {
    let server = MockServer::start().await;
    let url = server.url().replace("http:", "https:");
    let client = Client::builder(url)
        .api_key("business-key")
        .build()
        .unwrap();
    let error = client.pets().list().await.unwrap_err();
    assert!(
        error.kind() == ErrorKind::Tls
            && error.to_string().contains("the server does not speak TLS"),
        "{error}"
    );
}

/// The number of calls that share a connection.
const STREAMS: usize = 64;

#[tokio::test]
async fn a_key_refused_to_many_streams_of_http2_is_refreshed_once() {
    let old = format!("old-{}", std::process::id());
    let server = MockServer::builder()
        .tls()
        .key(&old, Plan::Business)
        .key("new", Plan::Business)
        .start()
        .await
        .unwrap();
    let (current, refreshes) = (Arc::new(Mutex::new(old.clone())), Arc::default());
    let (keys, count) = (Arc::clone(&current), Arc::<AtomicUsize>::clone(&refreshes));
    let vault = provider_fn(move |rejected: Option<ApiKey>| {
        count.fetch_add(usize::from(rejected.is_some()), Ordering::Relaxed);
        let key = ApiKey::new(keys.lock().unwrap().as_str());
        async move { Ok(key) }
    });
    let client = Client::builder(server.url())
        .api_key_provider(CachingProvider::new(vault, Duration::from_secs(300)))
        .isolated_limits()
        .connection(Connection::new().roots(server.ca_certificate().unwrap()))
        .build()
        .unwrap();
    client.pets().list().await.unwrap();
    "new".clone_into(&mut current.lock().unwrap());
    server.keys().get(&old).unwrap().remove();
    let calls = (0..STREAMS).map(|_| client.pets().list().with_meta());
    let pages = join_all(calls).await;
    let attempts: Vec<u32> = pages
        .into_iter()
        .map(|page| page.unwrap().meta.attempts())
        .collect();
    let refused = server
        .requests(..)
        .iter()
        .filter(|request| request.status == Some(401))
        .count();
    assert!(refused > STREAMS / 2, "{refused} streams had the old key");
    assert!(attempts.iter().all(|attempts| *attempts <= 2));
    assert_eq!(refreshes.load(Ordering::Relaxed), 1);
    let connections: HashSet<_> = server
        .requests(..)
        .iter()
        .map(|request| request.connection)
        .collect();
    assert_eq!(connections.len(), 1, "HTTP/2 needs one connection");
}

#[tokio::test]
async fn streams_of_http2_with_a_refused_key_share_the_vaults_failure() {
    let old = format!("refused-{}", std::process::id());
    let server = MockServer::builder()
        .tls()
        .key(&old, Plan::Business)
        .start()
        .await
        .unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let (count, key) = (Arc::clone(&asked), ApiKey::new(&*old));
    let vault = provider_fn(move |_| {
        let is_first = count.fetch_add(1, Ordering::Relaxed) == 0;
        let key = key.clone();
        async move {
            if is_first {
                return Ok(key);
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            Err("the vault is sealed".into())
        }
    });
    let client = Client::builder(server.url())
        .api_key_provider(CachingProvider::new(vault, Duration::from_secs(300)))
        .isolated_limits()
        .limits(Limits::new().max_in_flight(64))
        .connection(Connection::new().roots(server.ca_certificate().unwrap()))
        .build()
        .unwrap();
    client.pets().list().await.unwrap();
    server.keys().get(&old).unwrap().remove();
    let calls = (0..STREAMS).map(|_| tokio::spawn(client.pets().list().send()));
    for call in join_all(calls).await {
        let error = call.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Credentials);
    }
    let refusals = asked.load(Ordering::Relaxed) - 1;
    // A stream that is sent after the failure may ask again.
    assert!((1..8).contains(&refusals), "{refusals}");
}
