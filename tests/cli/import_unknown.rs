//! Tests of rows whose response was lost: skipped, found in the list of pets, or sent again.

use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use insta::assert_snapshot;
use petstore_mock::{Effect, Operation};
use tokio::time::Instant;

use super::harness::Petstore;
use super::import::{Scene, rows};
use super::shop::{Fate, Shop};
use crate::client::{Wire, answer};

#[tokio::test]
async fn an_unknown_row_is_sent_again_only_on_request() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(4));
    let losing = scene
        .server
        .faults()
        .on(Operation::CreatePet)
        .nth(2)
        .apply(Effect::EmptyReply);
    let ran = scene
        .run("pets import DIR/pets.ndjson --journal DIR/j --concurrency 1")
        .await;
    assert_eq!(losing.hits(), 1);
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    4	3	0	1	0	3	0	0	1	false	0
    --- stderr
    note: 3 of 4 rows created, 1 unknown
    error: 1 row is unknown
    hint: `petstore pets import HOME/pets.ndjson --journal HOME/j --concurrency 1 --unknown check` checks the unknown rows
    --- exit 8
    ");
    drop(losing);
    let check = "--journal HOME/j --unknown check";
    for (words, hint) in [
        (
            "DIR/pets.ndjson --journal DIR/j",
            format!("HOME/pets.ndjson {check}"),
        ),
        (
            "--unknown skip DIR/pets.ndjson --journal DIR/j",
            format!("HOME/pets.ndjson {check}"),
        ),
        (
            "--unknown=skip --journal DIR/j -- DIR/pets.ndjson",
            format!("{check} -- HOME/pets.ndjson"),
        ),
    ] {
        let ran = scene
            .expect(&format!("pets import {words}"), [4, 3, 0, 1, 0], 8)
            .await;
        let hint = format!("hint: `petstore pets import {hint}` checks the unknown rows\n");
        assert!(ran.stderr.ends_with(&hint), "{}", ran.stderr);
        assert_eq!(scene.sent(), 4);
    }
    let retry = "pets import DIR/pets.ndjson --journal DIR/j --unknown retry";
    scene.expect(retry, [4, 4, 0, 0, 0], 0).await;
    assert_eq!(scene.sent(), 5);
}

#[tokio::test]
async fn finds_out_which_rows_without_a_response_were_created() {
    let scene = Scene::new().await;
    // Two equal rows: one is created, and one is lost before it arrives.
    let twins = "{\"name\":\"twin\",\"categoryId\":1}\n";
    scene.write("pets.ndjson", &(rows(2) + twins + twins + &rows(6)));
    let import = |petstore: Petstore| petstore.var("PETSTORE_TIMEOUT", "1");
    let one = "pets import DIR/pets.ndjson --concurrency 1";
    let faults = || scene.server.faults().on(Operation::CreatePet);
    let created = faults().nth(3).apply(Effect::Cut {
        after_body_bytes: 5,
    });
    let lost = faults().nth(6).status(500);
    let ran = scene.run_with(import, one).await;
    assert_eq!((created.hits(), lost.hits()), (1, 1));
    assert_eq!((ran.summary()[3], ran.code), (2, 8), "{}", ran.stderr);
    let before = scene.server.pets().len();
    let ran = scene
        .run_with(import, "pets import DIR/pets.ndjson --unknown check")
        .await;
    assert_eq!(
        (ran.summary(), ran.code),
        ([10, 10, 0, 0, 0], 0),
        "{}",
        ran.stderr
    );
    assert_snapshot!(ran.stderr.replace(&scene.path(""), ""), @"
    note: checking 2 unknown rows: listing all pets, about 1 request
    note: of 2 unknown rows, 1 was created; 1 was not, and will be sent
    note: 10 of 10 rows created, 1 found
    ");
    assert_eq!(scene.server.pets().len(), 10, "{before} before");
    let names = scene.names().await;
    assert_eq!(names.iter().filter(|name| *name == "twin").count(), 2);
}

#[tokio::test]
async fn an_interrupted_check_counts_no_unknown_row_as_done() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(4));
    let faults = scene.server.faults().on(Operation::CreatePet);
    let lost = faults.nth(2).apply(Effect::Cut {
        after_body_bytes: 5,
    });
    let import = "pets import DIR/pets.ndjson --concurrency 1";
    let ran = scene.run_with(|petstore| petstore, import).await;
    assert_eq!((lost.hits(), ran.code), (1, 8), "{}", ran.stderr);
    // The check first waits until no request can arrive any more.
    let interrupted = |petstore: Petstore| petstore.interrupted_after(1);
    let check = "pets import DIR/pets.ndjson --unknown check";
    let ran = scene.run_with(interrupted, check).await;
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    let error = "error: interrupted after 3 of 4 rows\nhint: `petstore pets import ";
    assert!(ran.stderr.contains(error), "{}", ran.stderr);
}

#[tokio::test(start_paused = true)]
async fn a_second_check_does_not_wait_again_for_the_same_rows() {
    let shop = Shop::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pets.csv");
    std::fs::write(&file, "name,categoryId\nA,7\nB,7\n").unwrap();
    let run = async |interrupted_after: u64, options: &str| {
        let line = format!("pets import {} --concurrency 1 {options}", file.display());
        let petstore = Petstore::with(&shop.url(), "key-of-an-import");
        let petstore = petstore.interrupted_after(interrupted_after);
        let start = Instant::now();
        let ran = petstore.run(&line).await;
        (ran, start.elapsed())
    };
    shop.state().fates = [Fate::Created, Fate::Lost].into();
    let (ran, _) = run(3_600, "").await;
    assert_eq!(
        (ran.summary(), ran.code),
        ([2, 1, 0, 1, 0], 8),
        "{}",
        ran.stderr
    );
    // The row was sent 25 of the 30 s ago.
    let journal = folder.path().join("pets.csv.petstore-journal");
    let journal = std::fs::File::options().append(true).open(journal).unwrap();
    let sent = journal.metadata().unwrap().modified().unwrap() - Duration::from_secs(25);
    journal.set_modified(sent).unwrap();
    for _ in 0..2 {
        let (ran, _) = run(2, "--unknown check").await;
        assert_eq!(ran.code, 130, "{}", ran.stderr);
    }
    assert_eq!(journal.metadata().unwrap().modified().unwrap(), sent);
    let (ran, took) = run(3_600, "--unknown check").await;
    assert_eq!(
        (ran.summary(), ran.code),
        ([2, 2, 0, 0, 0], 0),
        "{}",
        ran.stderr
    );
    assert!(took <= Duration::from_secs(5), "{took:?}");
    assert!(journal.metadata().unwrap().modified().unwrap() > sent);
}

#[tokio::test]
async fn a_journal_has_the_time_at_which_a_waiting_row_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pets.csv");
    let journal = folder.path().join("pets.csv.petstore-journal");
    std::fs::write(&file, "name,categoryId\nRex,7\n").unwrap();
    let changes = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&changes);
    let server = Wire::reading(move |_| {
        let mut seen = seen.lock().unwrap();
        seen.push(std::fs::metadata(&journal).unwrap().modified().unwrap());
        match seen.len() {
            1 => answer(429, &[("Retry-After", "1")], "{}"),
            _ => answer(201, &[], r#"{"id":1,"name":"Rex","categoryId":7}"#),
        }
    });
    let line = format!("pets import {}", file.display());
    let ran = Petstore::with(&server.base(), "k").run(&line).await;
    assert_eq!(
        (ran.summary(), ran.code),
        ([1, 1, 0, 0, 0], 0),
        "{}",
        ran.stderr
    );
    // A check after a kill waits from the last change until the row must have arrived.
    let changes = changes.lock().unwrap();
    let waited = changes[1].duration_since(changes[0]).unwrap();
    assert!(waited >= Duration::from_secs(1), "{waited:?}");
}

#[tokio::test]
async fn a_journal_with_its_end_cut_off_stops_the_import() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(9));
    scene
        .expect("pets import DIR/pets.ndjson", [9, 9, 0, 0, 0], 0)
        .await;
    let journal = scene.path("pets.ndjson.petstore-journal");
    let whole = std::fs::read(&journal).unwrap();
    let lines = whole
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(at, _)| at + 1);
    let ends: Vec<_> = lines.collect();
    // The journal is cut in its first line, after the second one, and in the third one.
    for length in [5, ends[1], ends[1] + 7] {
        std::fs::write(&journal, &whole[..length]).unwrap();
        // The journal is old, so no request of that run can still arrive.
        let file = std::fs::File::options().write(true).open(&journal).unwrap();
        file.set_modified(UNIX_EPOCH).unwrap();
        // The rows stay unknown until the user chooses what to do.
        for _ in 0..2 {
            let ran = scene.run("pets import DIR/pets.ndjson").await;
            let problem = "; 9 rows may have been created\n";
            assert!(ran.stderr.contains(problem), "{length}: {}", ran.stderr);
            assert_eq!((ran.code, scene.sent()), (8, 9), "{length}");
        }
        let ran = scene
            .run("pets import DIR/pets.ndjson --unknown check")
            .await;
        assert!(
            ran.stderr.contains("all 9 unknown rows were created\n"),
            "{length}: {}",
            ran.stderr
        );
        assert_eq!((ran.code, scene.sent()), (0, 9), "{length}");
    }
}

#[tokio::test]
async fn a_journal_that_a_power_failure_cut_off_is_explained() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(3));
    let import = "pets import DIR/pets.ndjson --concurrency 1";
    scene.expect(import, [3, 3, 0, 0, 0], 0).await;
    let journal = scene.path("pets.ndjson.petstore-journal");
    let mut bytes = std::fs::read(&journal).unwrap();
    let end = bytes.iter().rposition(|byte| *byte == b'\n').unwrap();
    let last_row = bytes[..end]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap();
    // The disk has neither the end of the run, nor all of the last row's line.
    bytes[last_row - 3..].fill(0);
    std::fs::write(&journal, bytes).unwrap();
    let ran = scene.expect(import, [3, 2, 0, 1, 0], 8).await;
    let note = "note: the journal ended in an incomplete line; 1 row is unknown\n";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    let ran = scene.expect(import, [3, 2, 0, 1, 0], 8).await;
    assert!(!ran.stderr.contains("incomplete"), "{}", ran.stderr);
}
