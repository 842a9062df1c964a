//! Tests of imports and exports: each row is created once, whatever happens.

use std::collections::HashSet;

use insta::assert_snapshot;
use petstore_mock::Operation;
use serde_json::{Value, json};

use super::harness::Petstore;
use super::scene::{Scene, Service, rows};
use super::shop::Shop;

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
    // The service may have a status that this version does not know.
    let statuses = [json!("sold"), json!("adopted"), Value::Null];
    let pet = |(row, name): (usize, &&str)| {
        let status = &statuses[row % 3];
        json!({ "id": row, "name": name, "categoryId": -7, "status": status })
    };
    let source = Shop::start();
    source.state().pets = names.iter().enumerate().map(pet).collect();
    for format in ["ndjson", "json", "csv"] {
        let export = format!("pets export -o {format}");
        let exported = source.petstore().run(&export).await;
        let scene = Scene::of([]);
        let input = |petstore: Petstore| petstore.stdin(&exported.stdout);
        let ran = scene.run_with(input, "pets import").await;
        ran.sums_up([9, 9, 0, 0, 0], 0);
        assert_eq!(contents(&scene.server), contents(&source), "{format}");
    }
}

/// Returns what a service knows of its pets besides their ids.
fn contents(shop: &Shop) -> Vec<String> {
    let state = shop.state();
    let content = |pet: &Value| format!("{} {} {}", pet["name"], pet["categoryId"], pet["status"]);
    let mut contents: Vec<_> = state.pets.iter().map(content).collect();
    contents.sort();
    contents
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
      line 3: categoryId: `x` is not a whole number
      line 5: 1 value; the header has 2
    --- exit 8
    ");
    assert_eq!(scene.names(), ["A", "C"]);
    let ran = scene.run(&format!("{import} --dry-run")).await;
    ran.shows("HOME/pets.csv has nothing to send\n");
    ran.says("error: 2 rows are invalid in HOME/pets.csv\n");
    assert_eq!((ran.code, scene.sent()), (8, 2));
    scene.write("more.csv", "name,categoryId\nE,y\n");
    let both = "pets import DIR/pets.csv DIR/more.csv --skip-invalid --dry-run";
    let ran = scene.run(both).await;
    ran.says("error: 2 rows are invalid in HOME/pets.csv\n");
    ran.says("error: 1 row is invalid in HOME/more.csv\n");
    ran.ended(8);
    let rejects = format!("{import} --rejects DIR/no.csv -q");
    scene.run(&rejects).await.ended(8);
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
    let import = "pets import DIR/pets.ndjson";
    scene.expect(import, [40, 40, 0, 0, 0], 0).await;
    let names: HashSet<_> = scene.names().into_iter().collect();
    assert_eq!((names.len(), scene.sent()), (40, 40));
    let ran = scene.run(&format!("{import} -o json")).await;
    ran.said("note: 40 of 40 rows created (0 in this run)\n", 0);
    let summary: Value = serde_json::from_str(&ran.stdout).unwrap();
    let expected = json!({
        "file": "HOME/pets.ndjson", "rows": 40, "complete": true,
        "run": { "created": 0, "found": 0, "rejected": 0, "unknown": 0 },
        "total": {
            "created": 40, "found": 0, "rejected": 0, "unknown": 0, "left": 0, "invalid": 0,
        },
        "found": [], "rejected": [], "unknown": [],
        "journal": "HOME/pets.ndjson.petstore-journal", "rejects": null, "createdFile": null,
    });
    assert_eq!(summary, expected);
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
    let faults = || scene.server.faults().on(Operation::CreatePet);
    let refusing = faults().nth(2).status(400);
    let ran = scene
        .run("pets import DIR/pets.csv --rejects DIR/no.csv --concurrency 1")
        .await;
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
    let refusing = faults().status(400);
    let again = "pets import DIR/no.csv --rejects DIR/again.csv";
    scene.expect(again, [1, 0, 1, 0, 0], 8).await;
    assert_eq!(scene.read("again.csv"), scene.read("no.csv"));
    drop(refusing);
    let corrected = "pets import DIR/no.csv --retry-rejected";
    scene.expect(corrected, [1, 1, 0, 0, 0], 0).await;
    scene.write("pets.csv", "name,categoryId\na,1\nB,2\nc,3\n");
    let import = "pets import DIR/pets.csv";
    scene.expect(import, [3, 3, 0, 0, 0], 0).await;
    assert_eq!(scene.names(), ["B", "a", "b\nb", "c"]);
    assert_eq!(scene.sent(), 6);
    scene.follow_hints().await;
}

#[tokio::test]
async fn rejected_rows_are_sent_again_on_request() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\na,1\nb,2\nc,3\nd,4\ne,5\n");
    let faults = scene.server.faults().on(Operation::CreatePet);
    let refusing = faults.after(1).status(422);
    let import = "pets import DIR/pets.csv";
    assert_snapshot!(scene.run(import).await.transcript(), @"
    --- stderr
    note: 1 of 5 rows created, 4 rejected
    error: the import is not complete: 4 rejected
      line 3: 422 unprocessable_entity: injected by petstore-mock
      line 4: 422 unprocessable_entity: injected by petstore-mock
      line 5: 422 unprocessable_entity: injected by petstore-mock
      line 6: 422 unprocessable_entity: injected by petstore-mock
    hint: `petstore pets import HOME/pets.csv --rejects FILE` writes them to a file
    --- exit 8
    ");
    drop(refusing);
    let ran = scene.run(&format!("{import} --error-format json")).await;
    let error: Value = serde_json::from_str(ran.stderr.lines().last().unwrap()).unwrap();
    let why = "422 unprocessable_entity: injected by petstore-mock";
    let rows = json!([3, 4, 5, 6].map(|line| json!({ "line": line, "problem": why })));
    assert_eq!(error["rows"], rows);
    scene.expect(import, [5, 1, 4, 0, 0], 8).await;
    assert_eq!(scene.sent(), 5);
    let retry = format!("{import} --retry-rejected");
    scene.expect(&retry, [5, 5, 0, 0, 0], 0).await;
    assert_eq!(scene.sent(), 9);
    scene.follow_hints().await;
}

#[tokio::test]
async fn stops_when_the_service_is_down_and_continues_when_it_is_back() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(30));
    let import = "pets import DIR/pets.ndjson --journal DIR/j --concurrency 2";
    let elsewhere = format!("{import} --retry-for 0 --base-url http://127.0.0.1:1/v1");
    scene.expect(&elsewhere, [30, 0, 0, 0, 30], 6).await;
    // Nothing was sent to that service, so the rows may go to another one.
    scene.expect(import, [30, 30, 0, 0, 0], 0).await;
    let ran = scene.run(&elsewhere).await;
    ran.says(&format!("was imported to {}", scene.server.url()));
    assert_eq!((ran.code, scene.sent()), (2, 30));
    scene.follow_hints().await;
}

#[tokio::test]
async fn appended_rows_go_on_and_a_changed_row_is_named() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(2));
    let import = "pets import DIR/pets.ndjson";
    scene.expect(import, [2, 2, 0, 0, 0], 0).await;
    scene.write("pets.ndjson", &rows(5));
    scene
        .run(import)
        .await
        .said("note: 5 of 5 rows created (3 in this run)\n", 0);
    assert_eq!(scene.sent(), 5);
    let imported = rows(5);
    let (_, without_first) = imported.split_once('\n').unwrap();
    let first = "HOME/pets.ndjson line 1 has changed since it became pet 1";
    let second = "HOME/pets.ndjson line 2 has changed since it became pet 2";
    let missing = "row 2 of HOME/pets.ndjson is missing since it became pet 2";
    for (text, problem) in [
        (rows(1), missing),
        (without_first.to_owned(), first),
        (rows(6).replace("pet 2", "Rex"), second),
    ] {
        scene.write("pets.ndjson", &text);
        let ran = scene.run(import).await;
        ran.says(&format!("error: {problem}\nhint: undo the change; "));
        assert_eq!((ran.code, scene.sent()), (2, 5));
    }
    scene.follow_hints().await;
}

#[tokio::test]
async fn an_input_without_a_path_counts_each_run_separately() {
    let scene = Scene::new().await;
    for sent in [3, 6] {
        let ran = scene.pipe(&rows(3), "pets import").await;
        ran.sums_up([3, 3, 0, 0, 0], 0);
        ran.says("note: standard input has no journal: an interrupted run cannot continue\n");
        assert_eq!((&*ran.stdout, scene.sent()), ("", sent));
    }
    for _ in 0..2 {
        let ran = scene.pipe(&rows(3), "pets import --journal DIR/j").await;
        ran.sums_up([3, 3, 0, 0, 0], 0);
        assert_eq!(scene.sent(), 9);
    }
    // Without a journal, no hint suggests another run: it would create all pets again.
    let faults = || scene.server.faults().on(Operation::CreatePet);
    let lost = faults().nth(2).status(500);
    let ran = scene.pipe(&rows(3), "pets import").await;
    ran.sums_up([3, 2, 0, 1, 0], 8);
    ran.never_says("hint: ");
    drop(lost);
    for (status, code) in [(503, 5), (403, 4)] {
        let _failing = faults().after(1).status(status);
        let ran = scene.pipe(&rows(9), "pets import --retry-for 0").await;
        ran.never_says("hint: ");
        ran.ended(code);
    }
}

#[tokio::test]
async fn a_refused_key_a_wrong_url_or_an_input_without_rows_ends_it_at_once() {
    let scene = Scene::new().await;
    let ran = scene.expect("pets import", [0, 0, 0, 0, 0], 0).await;
    ran.says("note: standard input has no rows\n");
    scene.write("pets.ndjson", &rows(30));
    let line = format!("pets import {} --concurrency 1", scene.path("pets.ndjson"));
    let ran = Petstore::at(&scene.server, "wrong-key").run(&line).await;
    ran.sums_up([30, 0, 0, 0, 30], 3);
    assert_eq!(scene.sent(), 1);
    let origin = scene.server.url().trim_end_matches("/v1");
    let ran = scene.run(&format!("{line} --base-url {origin}")).await;
    ran.says("\nhint: check the base URL: it ends with /v1, and a path follows it\n");
    ran.sums_up([30, 0, 0, 0, 30], 9);
}
