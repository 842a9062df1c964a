//! Each kind of failure, with its exit code and its hints, and TLS with a private certificate authority.

use std::time::Duration;

use insta::assert_snapshot;
use petstore_mock::{Clock, Effect, MockServer, Operation, Plan, RetryAfter, Seed, SeedPet};
use serde_json::json;

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

#[tokio::test(start_paused = true)]
async fn a_refused_connection_exits_with_6() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let petstore = Petstore::bare().var("PETSTORE_API_KEY", "k");
    let ran = petstore
        .run(&format!("--base-url {base_url} pets list"))
        .await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: no connection to http://127.0.0.1:PORT: connection refused (after 4 attempts)
    hint: check that the service runs, or correct the base URL
    --- exit 6
    ");
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
    for (url, expected) in [
        (&nowhere, "the host name cannot be resolved"),
        (&secure, "the other side closed the connection"),
    ] {
        let line = "pets list --retries 0 --allow-insecure-http";
        let ran = Petstore::with(url, "k").run(line).await;
        let origin = url.trim_end_matches("/v1");
        let hint =
            "hint: check that the service runs, or correct the base URL (from PETSTORE_BASE_URL)";
        let said = format!("error: no connection to {origin}: {expected}\n{hint}\n");
        assert_eq!((ran.stderr, ran.code), (said, 6));
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
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: the service answered 503 Service Unavailable (service_unavailable): injected by petstore-mock
    hint: try again in a few minutes
    --- exit 5
    ");
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
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: the service answered 410 Gone (operation_removed): GET /v1/pets/{petId} was removed on 5 December 2030: use GET /v1/pets with its `status` filter
    hint: `petstore pets list --id 1` searches for the pet
    --- exit 9
    ");
    let ran = Petstore::at(&server, "good-key")
        .run("pets list --id 1 --fields id")
        .await;
    assert_eq!((ran.stdout.as_str(), ran.code), ("1\n", 0));
}

#[tokio::test]
async fn a_json_error_has_the_status_the_code_and_the_attempts() {
    let server = with_plan(Plan::Free).await;
    let get = async || {
        let run = Petstore::at(&server, "good-key").run("pets get 999 --error-format json");
        let stderr = run.await.stderr;
        let last = stderr.lines().last().unwrap();
        let error: serde_json::Value = serde_json::from_str(last).unwrap();
        ["status", "code", "attempts"].map(|field| error[field].clone())
    };
    assert_eq!(get().await, [json!(404), json!("pet_not_found"), json!(1)]);
    server
        .clock()
        .advance(Duration::from_secs(5 * 366 * 86_400));
    assert_eq!(
        get().await,
        [json!(410), json!("operation_removed"), json!(1)]
    );
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
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: interrupted
    hint: a request in flight may still be processed
    --- exit 130
    ");
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
    assert_eq!(ran.code, 0, "{}", ran.stderr);
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
    let ran = petstore()
        .var("PETSTORE_CA_FILE", path)
        .run("pets list --limit 1 --fields id")
        .await;
    assert_eq!(
        (ran.stdout.as_str(), ran.code),
        ("1\n", 0),
        "{}",
        ran.stderr
    );
    let line = format!("pets list --limit 1 --fields id --ca-file {path}");
    assert_eq!(petstore().run(&line).await.code, 0);

    let home = folder.path().to_str().unwrap();
    let petstore_at_home = petstore()
        .var("HOME", home)
        .var("PETSTORE_CA_FILE", "~/ca.pem");
    assert_eq!(
        petstore_at_home
            .run("pets list --limit 1 --fields id")
            .await
            .code,
        0
    );

    let ran = petstore().run("pets list --ca-file /nowhere/ca.pem").await;
    assert!(
        ran.stderr
            .contains("cannot read /nowhere/ca.pem: no such file"),
        "{}",
        ran.stderr
    );
    let ran = petstore()
        .var("PETSTORE_CA_FILE", "/nowhere/ca.pem")
        .run("--mock pets list")
        .await;
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
    error: no secure connection to https://127.0.0.1:PORT: the certificate is from an unknown authority
    hint: trust the authority with `--ca-file FILE`, or correct the base URL (from PETSTORE_BASE_URL)
    --- exit 6
    ");
    assert_snapshot!(run(&origin).await, @"
    --- stderr
    error: no secure connection to https://127.0.0.1:PORT: the server does not speak TLS
    hint: trust the authority with `--ca-file FILE`, or correct the base URL (from PETSTORE_BASE_URL)
    --- exit 6
    ");
}
