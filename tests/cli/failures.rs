//! Each kind of failure, with its exit code and its hints, and TLS with a private certificate authority.

use std::time::Duration;

use petstore_mock::{Effect, MockServer, Operation, Plan, RetryAfter};

use super::harness::{Petstore, serve, serve_over_time};
use crate::client::{Act, Wire};

#[tokio::test]
async fn each_broken_response_says_what_happened() {
    let cut = |text: &str| Act::Cut(text.into());
    let ok = |rest: &str| cut(&format!("HTTP/1.1 200 OK\r\n{rest}"));
    let chunked = |body: &str| ok(&format!("Transfer-Encoding: chunked\r\n\r\n{body}"));
    let closed = "the service closed the connection before the response";
    let cut_off = "the response is cut off: the service closed the connection";
    let no_size = "malformed response: Invalid chunk size line: missing size digit";
    let bad_header = "malformed response: invalid HTTP header parsed";
    let no_http = "malformed response: invalid HTTP version parsed";
    for (act, expected) in [
        (cut(""), closed),
        (Act::Reset(Vec::new()), "the service reset the connection"),
        (chunked("9\r\n["), cut_off),
        (ok("Content-Length: 9\r\n\r\n["), cut_off),
        (chunked("zz\r\n[]"), no_size),
        (ok("bad header\r\n\r\n[]"), bad_header),
        (cut("SSH-2.0-OpenSSH_9.6\r\n"), no_http),
    ] {
        let server = Wire::of(vec![act]);
        let petstore = Petstore::with(&server.base(), "k");
        let ran = petstore.run("pets list --retries 0").await;
        ran.says(&format!("error: {expected}\nhint: check that the base URL"));
        ran.ended(6);
    }
}

#[tokio::test]
async fn each_failed_connection_says_what_happened() {
    // The system refuses a label of 64 characters without asking a server of names.
    let nowhere = format!("http://{}.example/v1", "a".repeat(64));
    let closing = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let secure = format!("https://{}/v1", closing.local_addr().unwrap());
    std::thread::spawn(move || closing.incoming().for_each(drop));
    for (url, expected) in [
        ("http://127.0.0.1:1/v1", "connection refused"),
        (&*nowhere, "the host name cannot be resolved"),
        (&*secure, "the other side closed the connection"),
    ] {
        let line = "pets list --retries 0 --allow-insecure-http";
        let ran = Petstore::with(url, "k").run(line).await;
        let origin = url.trim_end_matches("/v1");
        ran.says(&format!("error: no connection to {origin}: {expected}\n"));
        ran.ended(6);
    }
}

/// Answers 503, and asks for 30 seconds.
fn busy() -> Effect {
    Effect::All(vec![
        Effect::status(503),
        Effect::RetryAfter(RetryAfter::Seconds(30)),
    ])
}

#[tokio::test]
async fn a_retry_after_that_is_too_long_ends_the_command() {
    let server = serve("good-key", Plan::Free).await;
    let busy = server.faults().on(Operation::ListPets).apply(busy());
    let ran = Petstore::at(&server, "good-key")
        .run("--max-wait 5 pets list")
        .await;
    assert_eq!(busy.hits(), 1);
    let said = "error: the service answered 503 Service Unavailable (service_unavailable): injected by petstore-mock\n\
                hint: try again in a few minutes\n";
    ran.said(said, 5);
}

#[tokio::test(start_paused = true)]
async fn a_terminal_shows_the_pause_of_a_failing_service() {
    let server = serve_over_time(Plan::Free).await;
    let run = async |petstore: Petstore| {
        let lists = server.faults().on(Operation::ListPets);
        let busy = lists.first(1).apply(busy());
        let ran = petstore.run("pets list --all").await;
        assert_eq!((ran.code, busy.hits()), (0, 1), "{}", ran.stderr);
        ran
    };
    run(Petstore::at(&server, "k")).await.said("", 0);
    let shown = run(Petstore::at(&server, "k").stderr_terminal()).await;
    shown.says(" 503; attempt 2 of 4 in 30 s");
}

#[tokio::test]
async fn a_removed_operation_exits_with_9() {
    let server = serve("good-key", Plan::Free).await;
    let five_years = Duration::from_secs(5 * 366 * 86_400);
    server.clock().advance(five_years);
    let ran = Petstore::at(&server, "good-key").run("pets get 1").await;
    let said = "error: the service answered 410 Gone (operation_removed): GET /v1/pets/{petId} was removed on 5 December 2030: use GET /v1/pets with its `status` filter\n\
                hint: `petstore pets list --id 1` searches for the pet\n";
    ran.said(said, 9);
    let ran = Petstore::at(&server, "good-key")
        .run("pets list --id 1 --fields id")
        .await;
    ran.printed("1\n");
}

#[tokio::test(start_paused = true)]
async fn ctrl_c_exits_with_130_and_says_what_may_have_happened() {
    let server = serve("good-key", Plan::Free).await;
    let creates = server.faults().on(Operation::CreatePet);
    let _slow = creates.delay(Duration::from_secs(10));
    let petstore = Petstore::at(&server, "good-key").interrupted_after(Duration::from_secs(1));
    let ran = petstore.run("pets create Rex --category-id 7").await;
    let said = "error: interrupted\n\
                hint: a request in flight may still be processed\n";
    ran.said(said, 130);
}

#[tokio::test]
async fn trusts_the_authority_that_a_file_holds() {
    let server = MockServer::builder().tls().start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, server.ca_certificate().unwrap()).unwrap();
    let petstore = || Petstore::at(&server, "business-key");
    let at_home = petstore().var("HOME", folder.path());
    let at_home = at_home.var("PETSTORE_CA_FILE", "~/ca.pem");
    at_home.run("pets list").await.ended(0);
    let missing = petstore().var("PETSTORE_CA_FILE", "/nowhere/ca.pem");
    missing.run("--mock pets list").await.ended(0);
    let missing = petstore().run("pets list --ca-file /nowhere/ca.pem").await;
    missing.says("cannot read /nowhere/ca.pem: no such file");
}
