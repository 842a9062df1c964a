//! Tests of what an import prints: plans, options of the output, and results that cannot be written.

use petstore_mock::{Effect, Operation};

use super::harness::Petstore;
use super::scene::{Scene, rows};

#[tokio::test]
async fn a_dry_run_plans_and_refuses_what_the_import_does() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\na,1\nb,2\nc,3\n");
    let faults = || scene.server.faults().on(Operation::CreatePet);
    let refused = faults().nth(2).status(400);
    let lost = faults().nth(3).apply(Effect::EmptyReply {});
    let import = "pets import DIR/pets.csv --concurrency 1";
    scene.expect(import, [3, 1, 1, 1, 0], 8).await;
    drop((refused, lost));
    scene.write("pets.csv", "name,categoryId\na,1\nB,2\nc,3\nd,4\n");
    let retry = format!("{import} --unknown retry");
    let ran = scene.run(&format!("{retry} --dry-run")).await;
    ran.printed("HOME/pets.csv has 3 rows to send, within the known quotas\n");
    let ran = scene.run(&format!("{retry} --dry-run -o json")).await;
    let plan: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(plan["total"]["left"], 3);
    let line = format!("{import} --base-url http://127.0.0.1:9/v1");
    let real = scene.run(&line).await;
    let dry = scene.run(&format!("{line} --dry-run")).await;
    let said = dry.stderr.replace(" --dry-run", "");
    assert_eq!((said, dry.code), (real.stderr, 2));
    scene.expect(&retry, [4, 4, 0, 0, 0], 0).await;
    assert_eq!(scene.sent(), 6);
    // A retry creates the third pet twice, as it says.
    scene.write("twice.csv", "name,categoryId\nc,3\n");
    scene.follow_hints().await;
}

#[tokio::test]
async fn a_dry_run_needs_neither_a_key_nor_a_network() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(7));
    let line = format!("pets import {} --dry-run", scene.path("pets.ndjson"));
    let ran = Petstore::bare().run(&line).await;
    ran.shows("pets.ndjson has 7 rows to send; `petstore limits --refresh` asks for the quotas\n");
    ran.said("", 0);
    assert!(!std::path::Path::new(&scene.path("pets.ndjson.petstore-journal")).exists());
}

#[tokio::test]
async fn options_of_the_output_are_checked_before_anything_is_sent() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\na,1\n");
    for line in [
        "pets import DIR/pets.csv -o nope",
        "pets import DIR/pets.csv --fields nope",
        "pets import DIR/pets.csv --jq .[",
        "pets create Rex --category-id 7 --fields nope",
        "pets create Rex --category-id 7 --jq .[",
        r#"api /pets -d {"name":"Rex","categoryId":7} --jq .["#,
    ] {
        scene.run(line).await.ended(2);
        assert_eq!(scene.sent(), 0, "{line}");
    }
    scene.follow_hints().await;
}

#[tokio::test]
async fn a_result_that_cannot_be_written_does_not_hide_what_was_done() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\na,1\n");
    let raw = r#"api /pets -d {"name":"Rex","categoryId":7}"#;
    let summed_up = "note: 1 of 1 row created\nerror: `--jq`: ";
    for (command, said) in [
        ("pets import DIR/pets.csv", summed_up),
        ("pets create Rex --category-id 7", "; pet 2 was created\n"),
        (raw, "; the request was processed\n"),
    ] {
        let ran = scene.run(&format!("{command} --jq error(\"no\")")).await;
        ran.says(said);
        ran.ended(8);
    }
    assert_eq!(scene.server.pets().len(), 3);
    scene.follow_hints().await;
}
