//! `petstore` and a service whose certificate authority is not the system's.

use insta::assert_snapshot;
use petstore_mock::MockServer;

use super::harness::Petstore;

#[tokio::test]
async fn trusts_the_authority_that_a_file_holds() {
    let server = MockServer::builder().tls().start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let path = file.to_str().unwrap();
    std::fs::write(&file, server.ca_certificate().unwrap()).unwrap();
    let petstore = || Petstore::at(&server, "business-key");
    let ran = petstore().var("PETSTORE_CA_FILE", path).run("pets list --limit 1 -o id").await;
    assert_eq!((ran.stdout.as_str(), ran.code), ("1\n", 0), "{}", ran.stderr);
    let line = format!("pets list --limit 1 -o id --ca-file {path}");
    assert_eq!(petstore().run(&line).await.code, 0);

    let ran = petstore().run("pets list --ca-file /nowhere/ca.pem").await;
    assert!(ran.stderr.contains("cannot read /nowhere/ca.pem: no such file"), "{}", ran.stderr);
    let ran = petstore().var("PETSTORE_CA_FILE", "/nowhere/ca.pem").run("--mock pets list").await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[tokio::test]
async fn says_why_there_is_no_secure_connection() {
    let secure = MockServer::builder().tls().start().await.unwrap();
    let plain = MockServer::start().await;
    let origin = plain.url().replace("http:", "https:");
    let run = async |url: &str| Petstore::with(url, "k").run("pets list").await.transcript();
    assert_snapshot!(run(secure.url()).await, @"
    --- stderr
    error: 127.0.0.1:PORT: certificate from an unknown authority
    hint: `--ca-file FILE` trusts an authority
    --- exit 6
    ");
    assert_snapshot!(run(&origin).await, @"
    --- stderr
    error: 127.0.0.1:PORT does not speak TLS
    hint: for a local service use http://127.0.0.1:PORT/v1
    --- exit 6
    ");
}
