//! Tests of imports and exports: each row is created once, whatever happens.

use insta::assert_snapshot;
use petstore_mock::{MockServer, Operation, Seed, SeedPet};

use super::harness::Petstore;
use super::scene::{Scene, rows};

/// Returns the names after these rows were imported.
fn all(count: usize) -> Vec<String> {
    let mut names: Vec<_> = (1..=count).map(|row| format!("pet {row}")).collect();
    names.sort();
    names
}

#[tokio::test]
async fn what_was_exported_can_be_imported_in_every_format() {
    let names = [
        "Rex",
        "",
        " a,\"b\"\n;c\t",
        "=1+1",
        "yes",
        "\u{1b}[2J\u{202e}",
        "犬 🐕",
        "null",
        "007",
    ];
    let seed = names
        .iter()
        .enumerate()
        .fold(Seed::new(), |seed, (row, name)| {
            let pet = SeedPet::new(*name, i64::try_from(row).unwrap() - 3);
            seed.pet(if row % 2 == 0 {
                pet.with_status(petstore_mock::PetStatus::Sold)
            } else {
                pet
            })
        });
    let source = MockServer::builder().seed(seed).start().await.unwrap();
    for format in ["ndjson", "json", "csv"] {
        let line = format!("pets export -o {format}");
        let exported = Petstore::at(&source, "enterprise-key").run(&line).await;
        let scene = Scene::new().await;
        let ran = scene.pipe(&exported.stdout, "pets import").await;
        assert_eq!(ran.summary(), [9, 9, 0, 0, 0], "{format}: {}", ran.stderr);
        let line = format!("pets export -o {format} --fields name,categoryId,status");
        let there = Petstore::at(&source, "enterprise-key").run(&line).await;
        let mut back: Vec<_> = scene
            .run(&line)
            .await
            .stdout
            .lines()
            .map(sortable)
            .collect();
        let mut there: Vec<_> = there.stdout.lines().map(sortable).collect();
        back.sort();
        there.sort();
        assert_eq!(back, there, "{format}");
    }
}

/// A line of JSON without its trailing comma.
fn sortable(line: &str) -> String {
    line.trim_end_matches(',').to_owned()
}

#[tokio::test]
async fn valid_rows_are_sent_although_others_are_invalid_on_request() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\nA,1\nB,x\nC,3\nD\n");
    let import = "pets import DIR/pets.csv --skip-invalid";
    assert_snapshot!(scene.run(import).await.transcript(), @"
    --- stderr
    note: 2 of 4 rows created, 2 invalid
    error: the import is not complete: 2 invalid
      line 3, categoryId: `x` is not a whole number
      line 5: 1 value; the header has 2
    --- exit 8
    ");
    assert_eq!(scene.names(), ["A", "C"]);
    let ran = scene.run(&format!("{import} --dry-run")).await;
    assert_eq!(ran.stdout, "HOME/pets.csv has nothing to send\n");
    assert!(
        ran.stderr
            .starts_with("error: 2 rows are invalid in HOME/pets.csv\n")
    );
    assert_eq!((ran.code, scene.sent()), (8, 2), "{}", ran.stderr);
    let ran = scene
        .run(&format!("{import} --rejects DIR/no.csv -q"))
        .await;
    assert_eq!(ran.code, 8, "{}", ran.stderr);
    assert_snapshot!(scene.read("no.csv"), @"
    name,categoryId,reason
    B,x,categoryId: `x` is not a whole number
    D,,1 value; the header has 2
    ");
    // Rows keep their places: the corrected row and the appended one are sent.
    scene.write("pets.csv", "name,categoryId\nA,1\nB,2\nC,3\nD,4\nE,5\n");
    scene
        .expect("pets import DIR/pets.csv", [5, 5, 0, 0, 0], 0)
        .await;
    assert_eq!(scene.names(), ["A", "B", "C", "D", "E"]);
    scene.follow_hints().await;
}

#[tokio::test]
async fn a_second_run_sends_nothing() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(40));
    assert_eq!(
        scene.run("pets import DIR/pets.ndjson").await.summary(),
        [40, 40, 0, 0, 0]
    );
    assert_eq!(scene.names(), all(40));
    assert_snapshot!(scene.run("pets import DIR/pets.ndjson -o json").await.transcript(), @r#"
    --- stdout
    {
      "file": "HOME/pets.ndjson",
      "rows": 40,
      "complete": true,
      "run": {
        "created": 0,
        "found": 0,
        "rejected": 0,
        "unknown": 0
      },
      "total": {
        "created": 40,
        "found": 0,
        "rejected": 0,
        "unknown": 0,
        "left": 0,
        "invalid": 0
      },
      "found": [],
      "rejected": [],
      "unknown": [],
      "journal": "HOME/pets.ndjson.petstore-journal",
      "rejects": null,
      "createdFile": null
    }
    --- stderr
    note: 40 of 40 rows created (0 in this run)
    --- exit 0
    "#);
    assert_eq!(scene.sent(), 40);
    let journal = scene.read("pets.ndjson.petstore-journal");
    assert!(!journal.contains("import-key"), "{journal}");
    // The first row goes alone, and then at least half of eight are announced together.
    assert!(journal.matches("\"sent\"").count() <= 11, "{journal}");
    #[cfg(unix)]
    {
        let file = std::fs::metadata(scene.path("pets.ndjson.petstore-journal")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn rejected_rows_are_written_with_reasons_to_correct() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\na,1\n\"b\nb\",2\nc,3\n");
    let refusing = scene
        .server
        .faults()
        .on(Operation::CreatePet)
        .nth(2)
        .status(400);
    let ran = scene
        .run("pets import DIR/pets.csv --rejects DIR/no.csv --concurrency 1")
        .await;
    assert_eq!(refusing.hits(), 1);
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    note: 2 of 3 rows created, 1 rejected
    error: the import is not complete: 1 rejected
      the rejected rows are in HOME/no.csv
    --- exit 8
    ");
    assert_snapshot!(scene.read("no.csv"), @r#"
    name,categoryId,reason
    "b
    b",2,400 bad_request: injected by petstore-mock
    "#);
    drop(refusing);
    scene
        .expect("pets import DIR/no.csv", [1, 1, 0, 0, 0], 0)
        .await;
    scene.write("pets.csv", "name,categoryId\na,1\nB,2\nc,3\n");
    scene
        .expect("pets import DIR/pets.csv", [3, 3, 0, 0, 0], 0)
        .await;
    let pets = scene.server.pets().all();
    assert_eq!(
        pets.iter().map(|pet| &*pet.name).collect::<Vec<_>>(),
        ["a", "c", "b\nb", "B"]
    );
    assert_eq!(scene.sent(), 5);
    scene.follow_hints().await;
}

#[tokio::test]
async fn rejected_rows_are_sent_again_on_request() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\na,1\nb,2\nc,3\nd,4\ne,5\n");
    let refusing = scene
        .server
        .faults()
        .on(Operation::CreatePet)
        .after(1)
        .status(422);
    let ran = scene
        .expect("pets import DIR/pets.csv", [5, 1, 4, 0, 0], 8)
        .await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    note: 1 of 5 rows created, 4 rejected
    error: the import is not complete: 4 rejected
      line 3: 422 unprocessable_entity: injected by petstore-mock
      line 4: 422 unprocessable_entity: injected by petstore-mock
      line 5: 422 unprocessable_entity: injected by petstore-mock
      1 more
    hint: `petstore pets import HOME/pets.csv --rejects FILE` writes them to a file
    --- exit 8
    ");
    drop(refusing);
    scene
        .expect("pets import DIR/pets.csv", [5, 1, 4, 0, 0], 8)
        .await;
    assert_eq!(scene.sent(), 5);
    scene
        .expect(
            "pets import DIR/pets.csv --retry-rejected",
            [5, 5, 0, 0, 0],
            0,
        )
        .await;
    assert_eq!(scene.sent(), 9);
    scene.follow_hints().await;
}

#[tokio::test]
async fn stops_when_the_service_is_down_and_continues_when_it_is_back() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(30));
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let down = format!("http://{nobody}/v1");
    let journal = "--journal DIR/j --concurrency 2";
    let line = format!("pets import DIR/pets.ndjson {journal} --retry-for 0 --base-url {down}");
    scene.expect(&line, [30, 0, 0, 0, 30], 6).await;
    // Nothing was sent to that service, so the rows may go to another one.
    let import = format!("pets import DIR/pets.ndjson {journal}");
    scene.expect(&import, [30, 30, 0, 0, 0], 0).await;
    let ran = scene.run(&line).await;
    let problem = format!("was imported to {}", scene.server.url());
    assert!(ran.stderr.contains(&problem), "{}", ran.stderr);
    assert_eq!((ran.code, scene.sent()), (2, 30));
    scene.follow_hints().await;
}

#[tokio::test]
async fn appended_rows_go_on_and_a_changed_row_is_named() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(2));
    let import = "pets import DIR/pets.ndjson";
    assert_eq!(scene.run(import).await.code, 0);
    scene.write("pets.ndjson", &rows(5));
    assert_snapshot!(scene.run(import).await.transcript(), @"
    --- stderr
    note: 5 of 5 rows created (3 in this run)
    --- exit 0
    ");
    assert_eq!(scene.sent(), 5);
    let changed = rows(6).replace("\"pet 2\"", "\"Rex\"");
    scene.write("pets.ndjson", &changed);
    assert_snapshot!(scene.run(import).await.transcript(), @"
    --- stderr
    error: HOME/pets.ndjson line 2 has changed since it became pet 2
    hint: undo the change; add other pets at the end, or in a file of their own
    --- exit 2
    ");
    let imported = rows(5);
    let (_, without_first) = imported.split_once('\n').unwrap();
    for (text, problem) in [
        (
            rows(1),
            "row 2 of HOME/pets.ndjson is missing since it became pet 2",
        ),
        (
            without_first.to_owned(),
            "HOME/pets.ndjson line 1 has changed since it became pet 1",
        ),
        (
            "{\"name\":\"Rex\",\"categoryId\":9}".to_owned(),
            "HOME/pets.ndjson line 1 has changed since it became pet 1",
        ),
    ] {
        scene.write("pets.ndjson", &text);
        let ran = scene.run(import).await;
        let hint = "undo the change; add other pets at the end, or in a file of their own";
        assert_eq!(ran.stderr, format!("error: {problem}\nhint: {hint}\n"));
        assert_eq!((ran.code, scene.sent()), (2, 5));
    }
    scene.follow_hints().await;
}

#[tokio::test]
async fn an_input_without_a_path_counts_each_run_separately() {
    let scene = Scene::new().await;
    for _ in 0..2 {
        let ran = scene.pipe(&rows(3), "pets import").await;
        assert_eq!((ran.summary(), ran.code), ([3, 3, 0, 0, 0], 0));
        let note = "note: standard input has no journal: an interrupted run cannot continue\n";
        assert!(ran.stderr.starts_with(note), "{}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
    assert_eq!(scene.sent(), 6);
    for sent in [9, 9] {
        let ran = scene.pipe(&rows(3), "pets import --journal DIR/j").await;
        assert_eq!((ran.summary(), ran.code), ([3, 3, 0, 0, 0], 0));
        assert_eq!(scene.sent(), sent);
    }
    // Without a journal, no hint suggests another run: it would create all pets again.
    let lost = scene
        .server
        .faults()
        .on(Operation::CreatePet)
        .nth(2)
        .status(500);
    let ran = scene.pipe(&rows(3), "pets import").await;
    assert_eq!((ran.summary(), ran.code), ([3, 2, 0, 1, 0], 8));
    assert!(!ran.stderr.contains("hint: "), "{}", ran.stderr);
    drop(lost);
    for (status, code) in [(503, 5), (403, 4)] {
        let faults = scene.server.faults().on(Operation::CreatePet);
        let _failing = faults.after(1).status(status);
        let ran = scene.pipe(&rows(9), "pets import --retry-for 0").await;
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert!(!ran.stderr.contains("hint: "), "{}", ran.stderr);
    }
}

#[tokio::test]
async fn a_refused_key_or_an_input_without_rows_ends_it_at_once() {
    let scene = Scene::new().await;
    let ran = scene.expect("pets import", [0, 0, 0, 0, 0], 0).await;
    assert!(
        ran.stderr.contains("note: standard input has no rows\n"),
        "{}",
        ran.stderr
    );
    scene.write("pets.ndjson", &rows(30));
    let line = format!("pets import {} --concurrency 1", scene.path("pets.ndjson"));
    let ran = Petstore::at(&scene.server, "wrong-key").run(&line).await;
    assert_eq!(
        (ran.summary(), ran.code),
        ([30, 0, 0, 0, 30], 3),
        "{}",
        ran.stderr
    );
    assert_eq!(scene.sent(), 1);
}

#[tokio::test]
async fn an_export_that_may_not_be_complete_does_not_end_with_0() {
    let server = MockServer::builder()
        .paging(false)
        .seed(Seed::default())
        .start()
        .await
        .unwrap();
    let whole = Petstore::at(&server, "pro-key").run("pets export").await;
    assert_eq!((whole.stdout.lines().count(), whole.code), (25, 0));
    let many = (0..100).fold(Seed::new(), |seed, row| seed.pet(SeedPet::new("x", row)));
    let server = MockServer::builder()
        .paging(false)
        .seed(many)
        .start()
        .await
        .unwrap();
    let cut = Petstore::at(&server, "pro-key").run("pets export").await;
    assert_eq!(
        (cut.stdout.lines().count(), cut.code),
        (100, 8),
        "{}",
        cut.stderr
    );
}
