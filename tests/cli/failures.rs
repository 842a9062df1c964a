//! Each kind of failure, with its exit code and its hints, and TLS with a private certificate authority.

use std::time::Duration;

use insta::assert_snapshot;
use petstore_mock::{Clock, Effect, MockServer, Operation, Plan, RetryAfter, Seed, SeedPet};

use super::harness::{Petstore, noon};
use super::shop::{Paging, Shop};
use crate::client::{Act, Wire};

async fn with_plan(plan: Plan) -> MockServer {
    let clock = Clock::frozen(noon());
    MockServer::builder()
        .key("good-key", plan)
        .clock(clock)
        .start()
        .await
        .unwrap()
}

#[tokio::test]
async fn each_broken_response_says_what_happened() {
    let cut = |text: &str| Act::Cut(text.into());
    let chunked = |body: &str| {
        cut(&format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
        ))
    };
    let closed = "the service closed the connection before the response";
    let cut_off = "the response is cut off: the service closed the connection";
    let no_size = "malformed response: Invalid chunk size line: missing size digit";
    let bad_header = "malformed response: invalid HTTP header parsed";
    let no_http = "malformed response: invalid HTTP version parsed";
    for (act, expected) in [
        (cut(""), closed),
        (Act::Reset(Vec::new()), "the service reset the connection"),
        (chunked("9\r\n["), cut_off),
        (
            cut("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n["),
            cut_off,
        ),
        (chunked("zz\r\n[]"), no_size),
        (cut("HTTP/1.1 200 OK\r\nbad header\r\n\r\n[]"), bad_header),
        (cut("SSH-2.0-OpenSSH_9.6\r\n"), no_http),
    ] {
        let server = Wire::of(vec![act]);
        let ran = Petstore::with(&server.base(), "k")
            .run("pets list --retries 0")
            .await;
        let hint = "hint: check that the base URL is the service's (from PETSTORE_BASE_URL)";
        assert_eq!(ran.stderr, format!("error: {expected}\n{hint}\n"));
        assert_eq!(ran.code, 6);
        let create = "pets create Rex --category-id 7";
        let ran = Petstore::with(&server.base(), "k").run(create).await;
        let hint = "hint: the pet may have been created: look in `petstore pets list --all` before you try again";
        assert_eq!(ran.stderr, format!("error: {expected}\n{hint}\n"));
    }
}

#[tokio::test]
async fn each_failed_connection_says_what_happened() {
    // The system refuses a label of 64 characters without asking a server of names.
    let nowhere = format!("http://{}.example/v1", "a".repeat(64));
    let closing = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let secure = format!("https://{}/v1", closing.local_addr().unwrap());
    std::thread::spawn(move || closing.incoming().for_each(drop));
    let refusing = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let refused = format!("http://{}/v1", refusing.local_addr().unwrap());
    drop(refusing);
    for (url, expected) in [
        (&refused, "connection refused"),
        (&nowhere, "the host name cannot be resolved"),
        (&secure, "the other side closed the connection"),
    ] {
        let line = "pets list --retries 0 --allow-insecure-http";
        let ran = Petstore::with(url, "k").run(line).await;
        let origin = url.trim_end_matches("/v1");
        let hint =
            "hint: check that the service runs, or correct the base URL (from PETSTORE_BASE_URL)";
        let said = format!("error: no connection to {origin}: {expected}\n{hint}\n");
        ran.said(&said, 6);
    }
}

#[tokio::test]
async fn a_retry_after_that_is_too_long_ends_the_command() {
    let server = with_plan(Plan::Free).await;
    let effects = [
        Effect::status(503),
        Effect::RetryAfter(RetryAfter::Seconds(30)),
    ];
    let busy = server
        .faults()
        .on(Operation::ListPets)
        .apply(Effect::All(effects.into()));
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
    let clock = Clock::runtime(noon());
    let server = MockServer::builder()
        .key("good-key", Plan::Free)
        .clock(clock)
        .start()
        .await
        .unwrap();
    let effects = Effect::All(vec![
        Effect::status(503),
        Effect::RetryAfter(RetryAfter::Seconds(30)),
    ]);
    let run = async |petstore: Petstore| {
        let busy = server
            .faults()
            .on(Operation::ListPets)
            .first(1)
            .apply(effects.clone());
        let ran = petstore.run("pets list --all").await;
        assert_eq!((ran.code, busy.hits()), (0, 1), "{}", ran.stderr);
        ran.stderr
    };
    assert_eq!(run(Petstore::at(&server, "good-key")).await, "");
    let shown = run(Petstore::at(&server, "good-key").stderr_terminal()).await;
    assert!(
        shown.contains(" 503 from the service; attempt 2 of 4 in 30 s"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_removed_operation_exits_with_9() {
    let server = with_plan(Plan::Free).await;
    server
        .clock()
        .advance(Duration::from_secs(5 * 366 * 86_400));
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
    let server = with_plan(Plan::Free).await;
    let _slow = server
        .faults()
        .on(Operation::CreatePet)
        .delay(Duration::from_secs(10));
    let petstore = Petstore::at(&server, "good-key").interrupted_after(1);
    let ran = petstore.run("pets create Rex --category-id 7").await;
    let said = "error: interrupted\n\
                hint: a request in flight may still be processed\n";
    ran.said(said, 130);
}

#[tokio::test(start_paused = true)]
async fn an_export_of_pages_without_end_advises_no_continuation() {
    let (shop, folder) = (Shop::start(), tempfile::tempdir().unwrap());
    shop.add(&["Rex"; 230]);
    let export = async |file: &str| {
        let petstore = Petstore::with(&shop.url(), "k").home(folder.path());
        petstore.run(&format!("pets export {file}")).await
    };
    let path = folder.path().join("pets.ndjson");
    let path = path.to_str().unwrap();
    shop.state().paging = Paging::Repeated;
    let (streamed, written) = (export("").await, export(path).await);
    assert_eq!((streamed.code, written.code), (5, 5), "{}", written.stderr);
    assert!(!streamed.stderr.contains("continue"), "{}", streamed.stderr);
    assert_snapshot!(written.stderr, @"
    error: stopped after 100 pets: stopped before the last page: the service sends the same page again under another URL
    hint: `rm HOME/pets.ndjson.petstore-part` lets the same command start over
    ");
    shop.state().paging = Paging::Linked;
    std::fs::remove_file(folder.path().join("pets.ndjson.petstore-part")).unwrap();
    let ran = export(path).await;
    ran.ended(0);
    assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 230);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_export_says_what_can_continue() {
    let pets = (0..150).fold(Seed::new(), |seed, row| seed.pet(SeedPet::new("x", row)));
    let server = MockServer::builder().seed(pets).start().await.unwrap();
    let lists = server.faults().on(Operation::ListPets);
    let _slow = lists
        .nth(2)
        .apply(Effect::Delay(Duration::from_secs(10).into()));
    let petstore = Petstore::at(&server, "pro-key").interrupted_after(1);
    let ran = petstore.run("pets export --fields id -o csv").await;
    assert_eq!((ran.stdout.lines().count(), ran.code), (101, 130));
    assert_snapshot!(ran.stderr, @"
    error: interrupted after 100 pets
    hint: an export into a file can continue: `petstore pets export FILE`
    ");
}

#[tokio::test]
async fn trusts_the_authority_that_a_file_holds() {
    let server = MockServer::builder().tls().start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let path = file.to_str().unwrap();
    std::fs::write(&file, server.ca_certificate().unwrap()).unwrap();
    let petstore = || Petstore::at(&server, "business-key");
    let line = "pets list --limit 1 --fields id -q";
    let ran = petstore().run(&format!("{line} --ca-file {path}")).await;
    ran.printed("1\n");
    let home = folder.path().to_str().unwrap();
    let at_home = petstore()
        .var("HOME", home)
        .var("PETSTORE_CA_FILE", "~/ca.pem");
    at_home.run(line).await.printed("1\n");

    let missing = petstore().run("pets list --ca-file /nowhere/ca.pem").await;
    missing.says("cannot read /nowhere/ca.pem: no such file");
    let mock = petstore().var("PETSTORE_CA_FILE", "/nowhere/ca.pem");
    mock.run("--mock pets list").await.ended(0);
}
