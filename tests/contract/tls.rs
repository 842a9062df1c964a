//! The typed client and the mock over TLS.

use petstore_client::{Client, ClientBuilder, ErrorKind};
use petstore_mock::MockServer;

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
    let http = reqwest::Client::builder;
    for http in [http().http1_only(), http().http2_prior_knowledge()] {
        let client = client(&server).http_client(http).root_certificates(authority);
        let pets = client.build().unwrap().pets().list().send().await.unwrap();
        assert_eq!(pets.len(), 20);
    }
}

#[tokio::test]
async fn a_client_that_does_not_is_told_why() {
    let server = start().await;
    let error = client(&server).build().unwrap().pets().list().send().await.unwrap_err();
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |e| e.source());
    let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    assert!(
        error.is_connect() && error.kind() == ErrorKind::Tls && text.contains("UnknownIssuer"),
        "{text}"
    );
    assert_eq!((error.attempts(), server.requests(..).len()), (0, 0), "it would be no better");
}

#[tokio::test]
async fn what_is_no_certificate_is_refused_when_the_client_is_built() {
    let server = start().await;
    for text in ["", "-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n"] {
        let error = client(&server).root_certificates(text).build().unwrap_err();
        assert!(error.to_string().contains("root certificates"), "{error}");
    }
}

#[tokio::test]
async fn what_does_not_speak_tls_is_told_of_as_that() {
    let server = MockServer::start().await;
    let url = server.url().replace("http:", "https:");
    let client = Client::builder(url).api_key("business-key").build().unwrap();
    let error = client.pets().list().send().await.unwrap_err();
    assert!(
        error.kind() == ErrorKind::Tls && error.to_string().contains("not a TLS server"),
        "{error}"
    );
}
