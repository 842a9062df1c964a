//! HTTPS, as the flags have it. What is spoken is tested in process.

use std::fs;

use super::support::{Running, run, scratch};

#[test]
fn writes_the_authoritys_certificate_before_it_says_that_it_is_ready() {
    let file = scratch("ca.pem");
    let path = file.to_str().unwrap();
    let server = Running::start(&["--port", "0", "--tls", "--tls-ca-file", path]);
    assert!(server.ready.starts_with("listening on https://127.0.0.1:"), "{}", server.ready);
    let pem = fs::read_to_string(&file).unwrap();
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"), "{pem}");
    fs::remove_file(file).unwrap();
}

#[test]
fn a_certificate_that_can_not_be_written_or_is_not_there_is_an_error() {
    let flags = ["--port", "0", "--tls", "--tls-ca-file", "/nowhere/ca.pem"];
    let (status, out, err) = run(&flags);
    assert_eq!((status, &*out), (1, ""));
    assert!(
        err.starts_with("petstore-mock: can't write the CA certificate /nowhere/ca.pem: "),
        "{err}"
    );
    assert_eq!(
        run(&["--port", "0", "--tls-ca-file", "ca.pem"]).0,
        2,
        "there is none without --tls"
    );
}
