//! Tests of what an import reads and writes: columns of other names, several files, created rows.

use serde_json::{Value, json};

use super::harness::Petstore;
use super::import::Scene;
use crate::client::{Wire, answer};

#[tokio::test]
async fn separators_can_be_set_and_ids_are_written() {
    let scene = Scene::new().await;
    scene.write(
        "pets.csv",
        "name;categoryId;Owner\nRex;7;Ada\n\"a;b\";8;Bob\n",
    );
    let line = "pets import DIR/pets.csv --delimiter ; --created DIR/created.csv";
    let ran = scene.expect(line, [2, 2, 0, 0, 0], 0).await;
    assert!(ran.stderr.contains("`Owner`"), "{}", ran.stderr);
    assert_eq!(scene.names(), ["Rex", "a;b"]);
    let expected = "name;categoryId;Owner;petId\nRex;7;Ada;1\n\"a;b\";8;Bob;2\n";
    assert_eq!(scene.read("created.csv"), expected);
    // A second run sends nothing, and the file still lists all created rows.
    scene.expect(line, [2, 2, 0, 0, 0], 0).await;
    assert_eq!(scene.read("created.csv"), expected);
    assert_eq!(scene.sent(), 2);
}

#[tokio::test]
async fn mistakes_in_columns_are_named_before_anything_is_sent() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "Nme;Category;Owner\nRex;7;Ada\n");
    for (options, expected) in [
        ("DIR/pets.csv", "is separated by `;`"),
        (
            "DIR/pets.csv --delimiter ;",
            "its header, line 1, is wrong\n  unknown column `Nme`; did you mean `name`?\n  \
             unknown column `Category`; did you mean `categoryId`?\n",
        ),
        (
            "DIR/pets.csv --delimiter ;;",
            "is not one ASCII character, or `tab`",
        ),
    ] {
        let ran = scene.run(&format!("pets import {options}")).await;
        assert_eq!(ran.code, 2, "{options}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{options}: {}", ran.stderr);
    }
    scene.follow_hints().await;
    assert_eq!(scene.sent(), 0);
}

#[tokio::test]
async fn several_files_are_imported_in_turn_each_with_its_journal() {
    let scene = Scene::new().await;
    scene.write("a.csv", "name,categoryId\nA,1\n");
    scene.write("b.csv", "name,categoryId\nB,2\nC,3\n");
    let line = "pets import DIR/a.csv DIR/b.csv";
    for run in 0..2 {
        let ran = scene.run(line).await;
        assert_eq!((ran.code, scene.sent()), (0, 3), "{run}: {}", ran.stderr);
        assert_eq!(scene.names(), ["A", "B", "C"]);
    }
    for journal in ["a.csv.petstore-journal", "b.csv.petstore-journal"] {
        assert!(std::fs::exists(scene.path(journal)).unwrap(), "{journal}");
    }
    // A journal of the second file that cannot be used keeps the first from being sent, too.
    scene.write("e.csv", "name,categoryId\nF,6\n");
    scene.write("b.csv.petstore-journal", "");
    let ran = scene.run("pets import DIR/e.csv DIR/b.csv").await;
    assert_eq!((ran.code, scene.sent()), (2, 3), "{}", ran.stderr);
    // So does an invalid row.
    scene.write("c.csv", "name,categoryId\nD,4\n");
    scene.write("d.csv", "name,categoryId\nE,x\n");
    let ran = scene.run("pets import DIR/c.csv DIR/d.csv").await;
    assert_eq!((ran.code, scene.sent()), (2, 3), "{}", ran.stderr);
    // With one file for two inputs, the rows of the last input would replace the others.
    for option in ["--created", "--rejects", "--journal"] {
        let ran = scene.run(&format!("{line} {option} DIR/out.csv")).await;
        let expected = format!("`{option}` names one file, but there are several inputs");
        assert!(
            ran.code == 2 && ran.stderr.contains(&expected),
            "{}",
            ran.stderr
        );
    }
    scene.follow_hints().await;
}

#[tokio::test]
async fn programs_get_the_line_field_and_problem_of_each_invalid_row() {
    let scene = Scene::new().await;
    scene.write(
        "pets.csv",
        "name,categoryId,status\n,7,sold\nTom,x,gone\nAda\n",
    );
    let ran = scene
        .run("pets import DIR/pets.csv --error-format json")
        .await;
    let error: Value = serde_json::from_str(ran.stderr.lines().last().unwrap()).unwrap();
    let rows = error.pointer("/error/rows").or(error.get("rows"));
    let expected = json!([
        { "line": 2, "field": "name", "problem": "missing" },
        { "line": 3, "field": "categoryId", "problem": "`x` is not a whole number" },
        { "line": 3, "field": "status", "problem": "`gone` is not available, pending or sold" },
        { "line": 4, "problem": "1 value; the header has 3" },
    ]);
    assert_eq!((rows, ran.code), (Some(&expected), 2), "{}", ran.stderr);
    assert_eq!(scene.sent(), 0);
}

#[tokio::test]
async fn an_exported_status_that_is_unknown_is_sent_with_a_warning() {
    let pets = r#"[{"id":1,"name":"Rex","categoryId":7,"status":"adopted"}]"#;
    let server = Wire::reading(move |request| match request.line.starts_with("POST") {
        true => answer(201, &[], &pets[1..pets.len() - 1]),
        false => answer(200, &[], pets),
    });
    for format in ["csv", "ndjson", "json"] {
        let export = format!("pets export -o {format}");
        let exported = Petstore::with(&server.base(), "k").run(&export).await;
        let ran = Petstore::with(&server.base(), "k")
            .stdin(&exported.stdout)
            .run("pets import")
            .await;
        let text = "warning: the specification does not list the status `adopted`\n";
        assert!(ran.stderr.contains(text), "{format}: {}", ran.stderr);
        assert_eq!((ran.summary(), ran.code), ([1, 1, 0, 0, 0], 0), "{format}");
    }
}

#[tokio::test]
async fn two_imports_at_once_do_not_share_a_file_of_rows() {
    let scene = Scene::new().await;
    for (sent, option) in ["--created", "--rejects"].iter().enumerate() {
        scene.write(&format!("a{sent}.csv"), "name,categoryId\nA,1\n");
        scene.write(&format!("b{sent}.csv"), "name,categoryId\nB,2\n");
        let import = |file: &str| format!("pets import DIR/{file}{sent}.csv {option} DIR/{option}");
        let (a, b) = (import("a"), import("b"));
        let (a, b) = tokio::join!(scene.run(&a), scene.run(&b));
        let (winner, refused) = if a.code == 0 { ("a", b) } else { ("b", a) };
        assert_eq!(
            (refused.code, scene.sent()),
            (2, sent + 1),
            "{}",
            refused.stderr
        );
        let expected = format!(
            "error: HOME/{option} is already being written by an import\n\
             hint: name another file with `{option}`\n"
        );
        assert_eq!(refused.stderr, expected);
        // After a run, its file is free again for the same import.
        scene.expect(&import(winner), [1, 1, 0, 0, 0], 0).await;
    }
    assert_eq!(scene.read("--created").lines().count(), 2);
    scene.follow_hints().await;
}
