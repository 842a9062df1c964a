//! Tests of the messages of failed TLS connections, with each TLS library that the program is built with:
//! `cargo test -p petstore-cli --no-default-features --features native-tls --test process tls`.

use petstore_mock::MockServer;

use super::support::petstore;

/// Lists pets at an address, and returns what was said, and the exit code.
fn list(url: &str, more: &[&str]) -> (String, Option<i32>) {
    let mut command = petstore();
    let output = command
        .env("PETSTORE_BASE_URL", url)
        .args(["pets", "list", "--retries", "0"])
        .args(more)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (said, output.status.code())
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

#[test]
#[cfg(feature = "system-proxy")]
fn a_proxy_that_refuses_is_what_to_check() {
    use super::support::KEY;
    use std::io::{Read as _, Write as _};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("http://me:{KEY}@{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4_096]);
            let _ = stream.write_all(b"HTTP/1.1 407 Expired\r\ncontent-length: 0\r\n\r\n");
        }
    });
    let line = [
        "--base-url",
        "https://petstore.example/v1",
        "pets",
        "list",
        "--retries",
        "0",
    ];
    let output = petstore()
        .env("https_proxy", proxy)
        .args(line)
        .output()
        .unwrap();
    let expected = "error: no connection to https://petstore.example\n\
        hint: check the proxy in https_proxy, or the base URL\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
    assert_eq!(output.status.code(), Some(6));
}
