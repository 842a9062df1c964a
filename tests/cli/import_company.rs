//! Tests of `--unknown check` while other programs use the service too: it never creates a row
//! twice, and never takes another program's pet for its own.

use insta::assert_snapshot;

use super::harness::{Petstore, Ran};
use super::scene::{Scene, Service};
use super::shop::{Fate, Paging, Shop};

impl Service for Shop {
    fn petstore(&self) -> Petstore {
        let petstore = Petstore::with(&self.url(), "key-of-an-import");
        petstore.var("PETSTORE_TIMEOUT", "1")
    }

    fn names(&self) -> Vec<String> {
        let state = self.state();
        let names = state.pets.iter().map(|pet| pet["name"].as_str().unwrap());
        names.map(str::to_owned).collect()
    }
}

impl Scene<Shop> {
    /// An import that meets these fates.
    pub(super) fn of(fates: impl IntoIterator<Item = Fate>) -> Self {
        let scene = Self::with(Shop::start());
        scene.server.state().fates = fates.into_iter().collect();
        scene
    }

    /// Writes rows with these names, and imports them one at a time.
    pub(super) async fn import(&self, file: &str, names: &[impl AsRef<str>], options: &str) -> Ran {
        self.write(file, &csv(names));
        self.run(&format!("pets import DIR/{file} --concurrency 1 {options}"))
            .await
    }

    /// Creates pets for other programs.
    fn add(&self, names: &[impl AsRef<str>]) {
        self.server.add(names);
        self.note_input("others", &csv(names));
    }

    pub(super) fn count(&self, name: &str) -> usize {
        self.names().iter().filter(|other| *other == name).count()
    }
}

/// Returns rows with these names.
fn csv(names: &[impl AsRef<str>]) -> String {
    let mut text = "name,categoryId\n".to_owned();
    for name in names {
        text += &format!("{},7\n", name.as_ref());
    }
    text
}

/// Returns different names.
pub(super) fn names(first: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("{first} {number}"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_pet_like_the_row_counts_as_its_own_with_a_warning() {
    let scene = Scene::of([Fate::Created, Fate::Lost]);
    let names = ["A1", "Same", "A3"];
    scene.import("a.csv", &names, "").await;
    scene.import("b.csv", &["B1", "Same", "B3"], "").await;
    let ran = scene
        .import("a.csv", &names, "--unknown check -o json")
        .await;
    assert_snapshot!(ran.stderr, @"
    note: waiting 1 s before the check, until nothing can still arrive
    note: checking 1 unknown row: listing all pets
    warning: 1 unknown row was found as pet 4; another program may have created it
    note: 2 of 3 rows created (0 in this run), 1 found
    ");
    ran.ended(0);
    let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let found = serde_json::json!([{ "line": 3, "pet": 4 }]);
    assert_eq!(
        (&summary["found"], &summary["complete"]),
        (&found, &true.into())
    );
    assert_eq!(scene.count("Same"), 1);
    // Each pet is taken once.
    let ran = scene
        .import("a.csv", &["A1", "Same", "A3", "Same"], "")
        .await;
    ran.sums_up([4, 4, 0, 0, 0], 0);
    assert_eq!(scene.count("Same"), 2);
    scene.follow_hints().await;
}

#[tokio::test(start_paused = true)]
async fn inputs_of_one_command_take_each_pet_once() {
    let scene = Scene::of([Fate::Unanswered, Fate::Lost]);
    for file in ["a.csv", "b.csv"] {
        scene.write(file, "name,categoryId\nSame,1\n");
    }
    let line = "pets import DIR/a.csv DIR/b.csv";
    let ran = scene.run(line).await;
    ran.says("error: HOME/b.csv: the import is not complete: 1 unknown\n");
    let ran = scene.run(&format!("{line} --unknown check")).await;
    ran.says("note: HOME/a.csv: 0 of 1 row created, 1 found\n");
    ran.says("note: HOME/b.csv: 1 of 1 row created\n");
    ran.ended(0);
    assert_eq!(scene.count("Same"), 2);
    scene.follow_hints().await;
}

const FIVE: [&str; 5] = ["One", "Two", "Three", "Four", "Five"];

/// Loses responses of an import, and then checks it with this kind of list, after `others` pets of
/// other programs.
async fn checked(paging: Paging, others: usize) -> (Scene<Shop>, Ran) {
    let scene = Scene::of([Fate::Created, Fate::Unanswered, Fate::Lost]);
    scene.add(&names("other", others));
    let ran = scene.import("a.csv", &FIVE, "").await;
    ran.sums_up([5, 3, 0, 2, 0], 8);
    scene.server.state().paging = paging;
    let ran = scene.import("a.csv", &FIVE, "--unknown check").await;
    for name in FIVE {
        let what = format!("{name} {paging:?}: {}", ran.stderr);
        assert!(scene.count(name) <= 1, "{what}");
    }
    (scene, ran)
}

#[tokio::test(start_paused = true)]
async fn a_list_in_any_order_finds_out_all() {
    for paging in [Paging::Linked, Paging::Reversed] {
        let (scene, ran) = checked(paging, 230).await;
        ran.sums_up([5, 5, 0, 0, 0], 0);
        assert_eq!(scene.names().len(), 235, "{paging:?}");
        scene.follow_hints().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_not_certainly_complete_proves_nothing() {
    let repeated = "the service sends the same page again under another URL";
    let empty = "the service sends empty pages without end";
    let short = "page 2 has 99 pets, earlier pages 100";
    for (paging, others, why) in [
        (Paging::Repeated, 230, repeated),
        (Paging::Empty, 230, empty),
        (Paging::Cut(232), 230, "it lacks pet 233 of this import"),
        (Paging::Overlapping, 230, "it has pet 51 twice"),
        // The second row's pet is the last one of the second page.
        (Paging::Incomplete, 198, short),
    ] {
        let (scene, ran) = checked(paging, others).await;
        ran.says(why);
        // A hint to check again would lead here again.
        ran.never_says("hint: ");
        ran.says("  `--unknown retry` sends unknown rows again, and may create pets twice\n");
        let what = format!("{paging:?}: {}", ran.stderr);
        assert_eq!((ran.code, scene.count("Three")), (8, 0), "{what}");
        // Once the list is complete, the same command settles every row.
        scene.server.state().paging = Paging::Linked;
        let ran = scene.import("a.csv", &FIVE, "--unknown check").await;
        ran.sums_up([5, 5, 0, 0, 0], 0);
        scene.follow_hints().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_last_page_proves_nothing_unless_a_list_of_other_pages_ends() {
    for (paging, others, code) in [
        (Paging::Linked, 198, 0),
        (Paging::Pages(2), 199, 8),
        (Paging::Unlinked, 99, 8),
    ] {
        let scene = Scene::of([Fate::Created, Fate::Unanswered]);
        scene.add(&names("other", others));
        let rows = ["One", "Two"];
        scene.import("a.csv", &rows, "").await;
        scene.server.state().paging = paging;
        let ran = scene.import("a.csv", &rows, "--unknown check").await;
        let what = format!("{paging:?}: {}", ran.stderr);
        assert_eq!((ran.code, scene.count("Two")), (code, 1), "{what}");
        let is_doubted = ran.stderr.contains("pets, and has no link");
        assert_eq!(is_doubted, code == 8, "{what}");
        scene.follow_hints().await;
    }
}

#[tokio::test(start_paused = true)]
async fn equal_rows_of_two_imports_are_never_created_too_often() {
    for lost in [Fate::Lost, Fate::Unanswered, Fate::Late(2)] {
        for ids in [
            vec![],
            vec![90, 80, 70, 60, 50, 40],
            vec![5, 900, 7, 30, 2, 61],
        ] {
            let scene = Scene::of([]);
            scene.server.state().ids = ids.clone().into();
            let names = ["Same", "Same", "Same"];
            for file in ["a.csv", "b.csv"] {
                scene.server.state().fates = [Fate::Created, lost].into();
                scene.import(file, &names, "").await;
            }
            for file in ["a.csv", "b.csv"] {
                let ran = scene.import(file, &names, "--unknown check").await;
                let pets = scene.count("Same");
                let what = format!("{lost:?}, {ids:?}, {pets}: {}", ran.stderr);
                assert!(pets <= 6 && matches!(ran.code, 0 | 8), "{what}");
                scene.follow_hints().await;
            }
        }
    }
}
