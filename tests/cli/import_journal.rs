//! Tests of the journal: rows of unknown fate, and journals that cannot be used.

use std::time::Duration;

use insta::assert_snapshot;
use petstore_mock::{Effect, MockServer, Operation, Plan, Seed};

use super::harness::Petstore;
use super::scene::{Scene, Service, rows};

const JOURNAL: &str = "pets.ndjson.petstore-journal";
const IMPORT: &str = "pets import DIR/pets.ndjson --concurrency 1";

#[tokio::test]
async fn an_unknown_row_is_sent_again_only_on_request() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(5));
    let faults = || scene.server.faults().on(Operation::CreatePet);
    let lost = faults().nth(2).apply(Effect::EmptyReply {});
    let failed = faults().nth(4).status(500);
    let import = "pets import DIR/pets.ndjson --journal DIR/j";
    let ran = scene.run(&format!("{import} --concurrency 1")).await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    note: 3 of 5 rows created, 2 unknown
    error: the import is not complete: 2 unknown
      line 2: connection lost
      line 4: 500 internal_server_error: injected by petstore-mock
    hint: `petstore pets import HOME/pets.ndjson --journal HOME/j --concurrency 1 --unknown check` finds out which of them were created
    --- exit 8
    ");
    drop((lost, failed));
    let hint = "HOME/pets.ndjson --journal HOME/j --unknown check` ";
    let after_dashes = "--journal HOME/j --unknown check -- HOME/pets.ndjson` ";
    for (words, hint) in [
        ("DIR/pets.ndjson --journal DIR/j", hint),
        (
            "--unknown skip DIR/pets.ndjson --retry-rejected --journal DIR/j",
            hint,
        ),
        (
            "--unknown=skip --journal DIR/j -- DIR/pets.ndjson",
            after_dashes,
        ),
    ] {
        let line = format!("pets import {words}");
        let ran = scene.expect(&line, [5, 3, 0, 2, 0], 8).await;
        ran.says(&format!("hint: `petstore pets import {hint}"));
        assert_eq!(scene.sent(), 5);
    }
    // The hint does not repeat `retry`.
    let refused = faults().status(403);
    let ran = scene.run(&format!("{import} --unknown retry")).await;
    ran.says("warning: sending 2 unknown rows again; up to 2 pets may exist twice\n");
    ran.says("hint: `petstore pets import HOME/pets.ndjson --journal HOME/j` continues\n");
    ran.ended(4);
    drop(refused);
    scene.expect(import, [5, 5, 0, 0, 0], 0).await;
    assert_eq!(scene.sent(), 8);
    // The second pet exists twice now.
    scene.write("twice.ndjson", &rows(2));
    scene.follow_hints().await;
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_check_counts_no_unknown_row_as_done() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(4));
    let faults = scene.server.faults().on(Operation::CreatePet);
    let lost = faults.nth(2).apply(Effect::EmptyReply {});
    scene.expect(IMPORT, [4, 3, 0, 1, 0], 8).await;
    drop(lost);
    // The service may still process the row whose response was lost.
    let interrupted = |petstore: Petstore| petstore.interrupted_after(Duration::from_secs(1));
    let check = format!("{IMPORT} --unknown check");
    let ran = scene.run_with(interrupted, &check).await;
    ran.says("note: waiting 30 s before the check, until nothing can still arrive\n");
    ran.says("error: interrupted after 3 of 4 rows\nhint: `petstore pets import ");
    ran.ended(130);
    // A run that ends before that time does not say that nothing can arrive any more.
    scene.expect(IMPORT, [4, 3, 0, 1, 0], 8).await;
    let began = tokio::time::Instant::now();
    scene.expect(&check, [4, 4, 0, 0, 0], 0).await;
    assert!(began.elapsed().as_secs() >= 30, "{:?}", began.elapsed());
    scene.follow_hints().await;
}

#[tokio::test]
async fn a_journal_that_cannot_be_used_ends_the_import() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(9));
    scene.expect(IMPORT, [9, 9, 0, 0, 0], 0).await;
    let whole = scene.read(JOURNAL);
    let damaged = whole.replacen("{\"created\":[2,", "{\"creat", 1);
    let endless = whole.replacen("{\"created\":[2,", "{\"created\":[99999999999,", 1);
    let newer = whole.replacen("\"version\":7", "\"version\":8", 1);
    let older =
        "{\"petstoreJournal\":6,\"baseUrl\":\"http://x/v1\",\"timeout\":30,\"started\":\"\"}\n";
    let foreign = "exists, and is not a journal of an import\n";
    for (text, problem) in [
        ("", "is empty: what it recorded is lost"),
        ("Dear Ada,\nthe second line", foreign),
        (&newer, "has version 8, not 7"),
        (older, "has version 6, not 7"),
        (&damaged, "is damaged: line 7 cannot be read"),
        (&endless, "is damaged: line 7 cannot be read"),
    ] {
        std::fs::write(scene.path(JOURNAL), text).unwrap();
        let ran = scene.run(IMPORT).await;
        ran.says(&format!("error: the journal HOME/{JOURNAL} {problem}"));
        ran.never_says("--journal");
        assert_eq!((ran.code, scene.sent()), (2, 9));
        assert_eq!(scene.read(JOURNAL), text);
        scene.follow_hints().await;
    }
    let beyond = format!("{whole}{{\"sent\":[[18446744073709551615,\"x\"]]}}\n");
    std::fs::write(scene.path(JOURNAL), beyond).unwrap();
    let ran = scene.run(IMPORT).await;
    ran.says(" of HOME/pets.ndjson is missing since it was sent\n");
    let ran = scene.run(&format!("{IMPORT} --journal DIR")).await;
    ran.says(foreign);
    assert_eq!((ran.code, scene.sent()), (2, 9));
}

#[tokio::test]
async fn a_url_that_only_a_journal_names_is_quoted_and_known_as_another_service() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(2));
    scene.expect(IMPORT, [2, 2, 0, 0, 0], 0).await;
    let other = "http://127.0.0.1:1/v1;echo pwned";
    let text = scene.read(JOURNAL).replace(scene.server.url(), other);
    std::fs::write(scene.path(JOURNAL), text).unwrap();
    let ran = scene.run(IMPORT).await;
    let url = scene.server.url();
    ran.says(&format!("was imported to {other}, not to {url}\n"));
    ran.says(&format!(
        " --base-url '{other}'` sends the rest, and your key, to that other service\n"
    ));
    assert_eq!((ran.code, scene.sent()), (2, 2));
    scene.follow_hints().await;
}

#[tokio::test]
async fn an_import_to_the_built_in_server_has_no_journal() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(2));
    scene.expect(IMPORT, [2, 2, 0, 0, 0], 0).await;
    let whole = scene.read(JOURNAL);
    let mock = "--mock pets import DIR/pets.ndjson";
    for (journal, options) in [("j", ""), (JOURNAL, "--dry-run")] {
        let line = format!("{mock} --journal DIR/{journal} {options}");
        let petstore = Petstore::bare();
        let ran = petstore.run(&line.replace("DIR", &scene.path(""))).await;
        ran.said(
            "error: `--journal` does not apply to `--mock`, whose pets end with the command\n",
            2,
        );
    }
    let line = mock.replace("DIR", &scene.path(""));
    let ran = Petstore::bare().run(&line).await;
    ran.said("note: 2 of 2 rows created\n", 0);
    assert_eq!(scene.read(JOURNAL), whole);
    assert!(!std::fs::exists(scene.path("j")).unwrap());
}

#[tokio::test]
async fn a_journal_in_use_or_without_a_folder_ends_the_import() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(2));
    scene.expect(IMPORT, [2, 2, 0, 0, 0], 0).await;
    let journal = std::fs::File::open(scene.path(JOURNAL)).unwrap();
    journal.lock().unwrap();
    let ran = scene.run(IMPORT).await;
    ran.says("error: another import is using the journal HOME/pets.ndjson.petstore-journal\n");
    ran.ended(2);
    drop(journal);
    scene.write("other.csv", "name,categoryId\nRex,7\n");
    // Its folder may be away, with a journal in it. No hint leads to a second one.
    let elsewhere = "pets import DIR/other.csv --journal DIR/nowhere/j";
    let said = "error: cannot create the journal HOME/nowhere/j: no such file\n";
    scene.run(elsewhere).await.said(said, 2);
    let long = format!("{}.csv", "x".repeat(240));
    scene.write(&long, "name,categoryId\nTom,7\n");
    let ran = scene.run(&format!("pets import DIR/{long}")).await;
    ran.says("\nhint: `--journal FILE` keeps the journal in another folder\n");
    assert_eq!((ran.code, scene.sent()), (2, 2));
    scene.follow_hints().await;
    assert_eq!(scene.names(), ["Tom", "pet 1", "pet 2"]);
}

/// A service that only a profile or an option names.
struct Staging(MockServer);

impl Service for Staging {
    fn petstore(&self) -> Petstore {
        Petstore::bare().var("PETSTORE_API_KEY", "import-key")
    }

    fn names(&self) -> Vec<String> {
        self.0.names()
    }
}

#[tokio::test(start_paused = true)]
async fn hints_keep_the_service_the_journal_and_empty_words() {
    let other = MockServer::builder().key("import-key", Plan::Business);
    let other = other.seed(Seed::none()).start().await.unwrap();
    for options in [
        "--journal DIR/j --profile staging",
        "--profile=staging --jq '' --journal DIR/j",
        "--base-url STAGING --unknown skip --journal=DIR/j",
    ] {
        let staging = MockServer::builder().key("import-key", Plan::Business);
        let staging = staging.seed(Seed::none()).start().await.unwrap();
        let scene = Scene::with(Staging(staging));
        let staging = &scene.server.0;
        let config = format!(
            "[profiles.default]\nbase_url = \"{}\"\n[profiles.staging]\nbase_url = \"{}\"\n",
            other.url(),
            staging.url()
        );
        std::fs::create_dir(scene.path("config")).unwrap();
        std::fs::write(scene.path("config/config.toml"), config).unwrap();
        scene.write("pets.ndjson", &rows(5));
        let faults = || staging.faults().on(Operation::CreatePet);
        let lost = faults().nth(2).apply(Effect::EmptyReply {});
        let away = faults().nth(4).status(403);
        let options = options.replace("STAGING", staging.url());
        let ran = scene.run(&format!("{IMPORT} {options}")).await;
        ran.says("` continues\n");
        ran.ended(4);
        drop((lost, away));
        scene.follow_hints().await;
        assert_eq!((scene.names().len(), other.pets().len()), (5, 0));
    }
}

#[tokio::test]
async fn what_a_crash_leaves_at_the_end_of_a_journal_is_cut() {
    let zeros = "\0".repeat(100);
    for end in ["{\"created\":[2,", "{\"sent\":[[2,\"00", &zeros] {
        let scene = Scene::new().await;
        scene.write("pets.ndjson", &rows(3));
        scene.expect(IMPORT, [3, 3, 0, 0, 0], 0).await;
        // The outcome of the last row, and the end of the run, are lost.
        let text = scene.read(JOURNAL);
        let at = text.find("{\"created\":[2,").unwrap();
        std::fs::write(scene.path(JOURNAL), format!("{}{end}", &text[..at])).unwrap();
        scene.expect(IMPORT, [3, 2, 0, 1, 0], 8).await;
        let check = |petstore: Petstore| petstore.var("PETSTORE_TIMEOUT", "1");
        let text = scene
            .read(JOURNAL)
            .replace("\"timeout\":30", "\"timeout\":1");
        std::fs::write(scene.path(JOURNAL), text).unwrap();
        let line = format!("{IMPORT} --unknown check");
        scene
            .run_with(check, &line)
            .await
            .sums_up([3, 3, 0, 0, 0], 0);
        assert_eq!(scene.sent(), 3, "{end}");
        scene.follow_hints().await;
    }
}
