//! Tests of the messages of failed TLS connections, with each TLS library that the program is built with:
//! `cargo test -p petstore-cli --no-default-features --features native-tls --test process tls`.

use petstore_mock::MockServer;

use super::support::{petstore, said};

/// Lists pets at an address, and returns what was said, and the exit code.
fn list(url: &str, more: &[&str]) -> (String, Option<i32>) {
    let mut list = petstore();
    list.args(["pets", "list", "--retries", "0"]).args(more);
    let output = list.env("PETSTORE_BASE_URL", url).output().unwrap();
    (said(&output).into_owned(), output.status.code())
}

#[test]
fn an_unknown_authority_is_named_and_can_be_trusted() {
    let server = MockServer::builder().tls().start_blocking().unwrap();
    let (said, code) = list(server.url(), &[]);
    let start = "error: no secure connection to https://127.0.0.1:";
    assert!(said.starts_with(start), "{said}");
    if cfg!(any(feature = "rustls", feature = "aws-lc-rs")) {
        let problem = ": the certificate is from an unknown authority\n";
        assert!(said.contains(problem), "{said}");
    }
    let hint = "\nhint: trust the authority with `--ca-file FILE`, ";
    assert!(said.contains(hint), "{said}");
    assert_eq!(code, Some(6));

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, server.ca_certificate().unwrap()).unwrap();
    let (said, code) = list(server.url(), &["--ca-file", file.to_str().unwrap()]);
    // The server refuses the key.
    assert!(said.contains("answered 401 Unauthorized"), "{said}");
    assert_eq!(code, Some(3));
}

#[test]
fn a_server_without_tls_is_no_secure_connection() {
    let server = MockServer::builder().start_blocking().unwrap();
    let (said, code) = list(&server.url().replace("http:", "https:"), &[]);
    let start = "error: no secure connection to https://127.0.0.1:";
    assert!(said.starts_with(start), "{said}");
    if cfg!(any(feature = "rustls", feature = "aws-lc-rs")) {
        let problem = ": the server does not speak TLS\n";
        assert!(said.contains(problem), "{said}");
    }
    assert_eq!(code, Some(6));
}
