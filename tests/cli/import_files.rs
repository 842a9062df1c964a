//! Tests of what an import reads and writes: separators, several files, links, rejected and created rows.

use serde_json::{Value, json};

use super::scene::Scene;

#[tokio::test]
async fn separators_are_found_or_set_and_ids_are_written() {
    let scene = Scene::new().await;
    scene.write(
        "pets.csv",
        "name;categoryId;Owner\nRex;7;Ada\n\"a;b\";8;Bob\n",
    );
    let line = "pets import DIR/pets.csv --created DIR/created.csv";
    for (delimiter, problem) in [
        (";;", ": give one ASCII character, or `tab`"),
        (",", "its header, line 1, is wrong"),
    ] {
        let ran = scene.run(&format!("{line} --delimiter {delimiter}")).await;
        ran.says(problem);
        assert_eq!((ran.code, scene.sent()), (2, 0));
    }
    let ran = scene.expect(line, [2, 2, 0, 0, 0], 0).await;
    ran.says("`Owner`");
    assert_eq!(scene.names(), ["Rex", "a;b"]);
    let expected = "name;categoryId;Owner;petId\nRex;7;Ada;1\n\"a;b\";8;Bob;2\n";
    assert_eq!(scene.read("created.csv"), expected);
    // A second run sends nothing, and the file still lists all created rows.
    scene.expect(line, [2, 2, 0, 0, 0], 0).await;
    assert_eq!(scene.read("created.csv"), expected);
    assert_eq!(scene.sent(), 2);
}

#[tokio::test]
async fn several_files_are_imported_in_turn_each_with_its_journal() {
    let scene = Scene::new().await;
    scene.write("a.csv", "name,categoryId\nA,1\n");
    scene.write("b.csv", "name,categoryId\nB,2\nC,3\n");
    let line = "pets import DIR/a.csv DIR/b.csv";
    for _ in 0..2 {
        scene.run(line).await.ended(0);
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
    scene.write("g.csv", "name,categoryId\n,7\n");
    let ran = scene.run("pets import DIR/d.csv DIR/g.csv").await;
    ran.says("error: 1 row of HOME/d.csv is invalid; nothing was sent\n");
    ran.says("error: 1 row of HOME/g.csv is invalid; nothing was sent\n");
    assert_eq!((ran.code, scene.sent()), (2, 3));
    // With one file for two inputs, the rows of the last input would replace the others.
    for option in ["--created", "--rejects", "--journal"] {
        let ran = scene.run(&format!("{line} {option} DIR/out.csv")).await;
        ran.says(&format!(
            "`{option}` names one file, but there are several inputs"
        ));
        ran.ended(2);
    }
    scene.follow_hints().await;
}

#[tokio::test]
async fn programs_get_the_line_and_all_problems_of_each_invalid_row() {
    let scene = Scene::new().await;
    let text = "name,categoryId,status\n,7,sold\nTom,x,gone\nAda\n";
    scene.write("pets.csv", text);
    let import = "pets import DIR/pets.csv --error-format json";
    let ran = scene.run(import).await;
    let error: Value = serde_json::from_str(ran.stderr.lines().last().unwrap()).unwrap();
    let expected = json!([
        { "line": 2, "problem": "name: missing" },
        {
            "line": 3,
            "problem": "categoryId: `x` is not a whole number; \
                        status: `gone` is not available, pending or sold",
        },
        { "line": 4, "problem": "1 value; the header has 3" },
    ]);
    assert_eq!(error["rows"], expected);
    assert_eq!((ran.code, scene.sent()), (2, 0));
}

#[tokio::test]
async fn files_that_replace_each_other_or_cannot_be_written_are_refused() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\na,1\n");
    let import = "pets import DIR/pets.csv";
    for options in [
        "--rejects DIR/pets.csv.petstore-journal",
        "--journal DIR/j --created DIR/./j",
        "--rejects DIR/r --created DIR/./r",
        "--rejects DIR/pets.csv",
        "--journal DIR/pets.csv",
    ] {
        let ran = scene.run(&format!("{import} {options}")).await;
        ran.says(" is used twice\n");
        assert_eq!((ran.code, scene.sent()), (2, 0));
    }
    assert_eq!(scene.read("pets.csv"), "name,categoryId\na,1\n");
    for (file, why) in [
        ("DIR", "it is a folder"),
        ("DIR/nowhere/c", "there is no folder HOME/nowhere"),
        ("DIR/pets.csv/c", "there is no folder HOME/pets.csv"),
    ] {
        for option in ["--rejects", "--created"] {
            let ran = scene.run(&format!("{import} {option} {file}")).await;
            ran.says(&format!(": {why}\n"));
            assert_eq!((ran.code, scene.sent()), (2, 0));
        }
    }
    let devices = format!("{import} --rejects /dev/null --created /dev/null");
    scene.expect(&devices, [1, 1, 0, 0, 0], 0).await;
    scene.follow_hints().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_summary_appears_if_rejected_rows_cannot_be_written() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\na,1\n");
    let faults = scene
        .server
        .faults()
        .on(petstore_mock::Operation::CreatePet);
    let _refusing = faults.status(400);
    let line = "pets import DIR/pets.csv --rejects /dev/full";
    let ran = scene.expect(line, [1, 0, 1, 0, 0], 8).await;
    ran.says("\nerror: cannot write ");
}

#[tokio::test]
#[cfg(unix)]
async fn a_link_shares_the_journal_and_a_hard_link_has_its_own() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\nRex,7\n");
    std::os::unix::fs::symlink(scene.path("pets.csv"), scene.path("link.csv")).unwrap();
    scene.run("pets import DIR/pets.csv").await.ended(0);
    scene.run("pets import DIR/link.csv").await.ended(0);
    assert_eq!(scene.sent(), 1);
    let ran = scene.run("pets import DIR/pets.csv DIR/link.csv").await;
    ran.said("error: HOME/link.csv is used twice\n", 2);
    std::fs::hard_link(scene.path("pets.csv"), scene.path("hard.csv")).unwrap();
    scene.run("pets import DIR/hard.csv").await.ended(0);
    assert_eq!(scene.sent(), 2);
}
