//! Tests of TLS: trust, protocols, faults, and the ends of connections.

use std::{io::ErrorKind, sync::Arc};

use petstore_mock::{Builder, Effect, Operation};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

use super::support::{Mock, client, start_with};

const GET: &str =
    "GET /v1/pets?limit=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer enterprise-key\r\n\r\n";

async fn start() -> Mock {
    start_with(Builder::tls).await
}

/// Connects as a client that trusts the mock and offers a protocol.
async fn connect(mock: &Mock, name: &'static str, protocol: &str) -> TlsStream<TcpStream> {
    let authority = mock.server.ca_certificate().unwrap();
    let authority = CertificateDer::from_pem_slice(authority.as_bytes()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(authority).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.into()];
    let stream = TcpStream::connect(mock.server.addr()).await.unwrap();
    let name = ServerName::try_from(name).unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.unwrap()
}

/// Sends a request, and reads to the end of the connection. Returns the text and how it ended.
async fn rest(mock: &Mock, request: &str) -> (String, Result<(), ErrorKind>) {
    let mut stream = connect(mock, "localhost", "http/1.1").await;
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let end = stream.read_to_end(&mut bytes).await;
    let end = end.map(drop).map_err(|error| error.kind());
    (String::from_utf8(bytes).unwrap(), end)
}

#[tokio::test]
async fn each_server_has_its_own_authority_which_can_be_fetched() {
    let (mock, other) = (start().await, start().await);
    let authority = mock.server.ca_certificate().unwrap();
    assert!(!authority.contains("KEY"));
    assert_ne!(authority, other.server.ca_certificate().unwrap());
    let request = "GET /_mock/ca.pem HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let (answer, _) = rest(&mock, request).await;
    assert!(answer.ends_with(authority), "{answer}");
    let error = client().get(mock.server.url()).send().await.unwrap_err();
    let is_untrusted = format!("{error:?}").contains("UnknownIssuer");
    assert!(is_untrusted, "{error:?}");
    let plain = start_with(|builder| builder).await;
    assert_eq!(plain.server.ca_certificate(), None);
    let none = plain.get("/_mock/ca.pem").await;
    none.expect_error(404, "route_not_found");
}

#[tokio::test]
async fn the_certificate_is_for_every_name_of_this_machine() {
    let mock = start().await;
    let url = mock.server.url();
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    for name in ["localhost", "127.0.0.1", "::1"] {
        connect(&mock, name, "http/1.1").await;
    }
    let other = start_with(|builder| builder.tls().addr([127, 0, 0, 2].into())).await;
    connect(&other, "127.0.0.2", "http/1.1").await;
}

#[tokio::test]
async fn the_client_chooses_http_2() {
    let mock = start().await;
    let stream = connect(&mock, "localhost", "h2").await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut requests, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::get("https://localhost/v1/pets/1");
    let request = request.header("authorization", "Bearer enterprise-key");
    let request = request.body(()).unwrap();
    let (answer, _) = requests.send_request(request, true).unwrap();
    assert_eq!(answer.await.unwrap().status(), 200);
}

#[tokio::test]
async fn faults_act_on_the_socket_below() {
    let mock = start().await;
    let reset = Effect::Reset {
        after_body_bytes: None,
    };
    let cut = Effect::Cut {
        after_body_bytes: 9,
    };
    for (effect, comes, end) in [
        (reset, "", ErrorKind::ConnectionReset),
        (Effect::EmptyReply {}, "", ErrorKind::UnexpectedEof),
        (cut, "[{\"id\":1,", ErrorKind::UnexpectedEof),
    ] {
        let _fault = mock.on(Operation::ListPets).apply(effect);
        let (text, ended) = rest(&mock, GET).await;
        assert!(
            text.ends_with(comes) && text.is_empty() == comes.is_empty(),
            "{text}"
        );
        assert_eq!(ended, Err(end));
    }
}

#[tokio::test]
async fn stopping_it_does_not_wait_for_a_handshake() {
    let mock = start().await;
    let stream = TcpStream::connect(mock.server.addr()).await.unwrap();
    // An answer proves that the connection before it was accepted.
    let mut answered = connect(&mock, "localhost", "http/1.1").await;
    answered.write_all(GET.as_bytes()).await.unwrap();
    answered.read_exact(&mut [0; 12]).await.unwrap();
    mock.stop().await;
    drop(stream);
}

#[tokio::test]
async fn plain_http_gets_a_hint_about_tls() {
    let mock = start().await;
    let long = format!("POST / HTTP/1.1\r\n\r\n{}", "x".repeat(3_000_000));
    for request in [GET, &long] {
        let reply = mock.raw(request.as_bytes()).await;
        reply.expect_error(400, "bad_request");
        assert!(reply.message().contains("https"), "{}", reply.message());
    }
}
