//! Tests of `--unknown check` while other programs use the service too: it never creates a row
//! twice, and never takes another program's pet for its own.

use insta::assert_snapshot;
use tempfile::TempDir;
use tokio::time::{Duration, Instant};

use super::harness::{Petstore, Ran};
use super::hints::Hints;
use super::shop::{Fate, Paging, Shop};

/// A service, and a folder with files to import.
struct Scene {
    shop: Shop,
    folder: TempDir,
    hints: Hints,
}

impl Scene {
    fn new() -> Self {
        Self {
            shop: Shop::start(),
            folder: TempDir::new().unwrap(),
            hints: Hints::default(),
        }
    }

    fn petstore(&self) -> Petstore {
        let petstore = Petstore::with(&self.shop.url(), "key-of-an-import");
        let petstore = petstore.var("PETSTORE_TIMEOUT", "1");
        petstore.home(self.folder.path())
    }

    /// Follows all hints that were printed, and counts the pets.
    async fn follow_hints(&self) {
        let home = self.folder.path().to_str().unwrap();
        while let Some(words) = self.hints.next() {
            let ran = self.petstore().run_words(&words).await;
            self.hints.take(&words.join(" "), &ran, home);
            let state = self.shop.state();
            let names = state.pets.iter().filter_map(|pet| pet["name"].as_str());
            self.hints.check(names);
        }
    }

    /// Writes rows with these names, and imports them one at a time.
    async fn import(&self, file: &str, names: &[impl AsRef<str>], options: &str) -> Ran {
        let path = self.folder.path().join(file);
        let text = csv(names);
        std::fs::write(&path, &text).unwrap();
        self.hints.input(file, &text);
        let line = format!("pets import {} --concurrency 1 {options}", path.display());
        let ran = self.petstore().run(&line).await;
        self.hints
            .take(&line, &ran, self.folder.path().to_str().unwrap());
        ran
    }

    /// Creates pets for other programs.
    fn add(&self, names: &[impl AsRef<str>]) {
        self.shop.add(names);
        self.hints.input("others", &csv(names));
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
fn names(first: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("{first} {number}"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_pet_like_the_row_counts_as_its_own_with_a_warning() {
    let scene = Scene::new();
    scene.shop.state().fates = [Fate::Created, Fate::Lost].into();
    let names = ["A1", "Same", "A3"];
    scene.import("a.csv", &names, "").await;
    scene.import("b.csv", &["B1", "Same", "B3"], "").await;
    let ran = scene
        .import("a.csv", &names, "--unknown check -o json")
        .await;
    assert_snapshot!(ran.stderr, @"
    note: checking 1 unknown row: listing all pets
    warning: 1 unknown row was found as pet 4; another program may have created it
    note: 2 of 3 rows created (0 in this run), 1 found
    ");
    let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let found = serde_json::json!([{ "line": 3, "pet": 4 }]);
    assert_eq!((&summary["found"], ran.code), (&found, 0), "{summary}");
    assert_eq!(
        (&summary["complete"], &summary["total"]["found"]),
        (&true.into(), &1.into())
    );
    assert_eq!(scene.shop.count("Same"), 1);
    // Each pet is taken once.
    let ran = scene
        .import("a.csv", &["A1", "Same", "A3", "Same"], "")
        .await;
    assert_eq!((ran.summary(), ran.code), ([4, 4, 0, 0, 0], 0));
    assert_eq!(scene.shop.count("Same"), 2);
    scene.follow_hints().await;
}

/// Loses responses of an import, and then checks it with this kind of list, after `others` pets of
/// other programs.
async fn checked(paging: Paging, others: usize) -> (Scene, Ran) {
    let scene = Scene::new();
    scene.add(&names("other", others));
    scene.shop.state().fates = [Fate::Created, Fate::Unanswered, Fate::Lost].into();
    let names = ["One", "Two", "Three", "Four", "Five"];
    let first = scene.import("a.csv", &names, "").await;
    assert_eq!((first.summary(), first.code), ([5, 3, 0, 2, 0], 8));
    scene.shop.state().paging = paging;
    let ran = scene.import("a.csv", &names, "--unknown check").await;
    for name in names {
        assert!(
            scene.shop.count(name) <= 1,
            "{name} {paging:?}: {}",
            ran.stderr
        );
    }
    (scene, ran)
}

#[tokio::test(start_paused = true)]
async fn a_list_in_any_order_finds_out_all() {
    for paging in [Paging::Linked, Paging::Reversed] {
        let (scene, ran) = checked(paging, 230).await;
        let what = format!("{paging:?}: {}", ran.stderr);
        assert_eq!((ran.summary(), ran.code), ([5, 5, 0, 0, 0], 0), "{what}");
        assert_eq!(scene.shop.state().pets.len(), 235, "{what}");
        scene.follow_hints().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_not_certainly_complete_proves_nothing() {
    for (paging, others, why) in [
        (
            Paging::Repeated,
            230,
            "the service sends the same page again under another URL",
        ),
        (
            Paging::Empty,
            230,
            "the service sends empty pages without end",
        ),
        (Paging::Cut(232), 230, "it lacks pet 233 of this import"),
        (Paging::Overlapping, 230, "it has pet 51 twice"),
        // The second row's pet is the last one of the second page.
        (
            Paging::Incomplete,
            198,
            "page 2 has 99 pets, earlier pages 100",
        ),
    ] {
        let (scene, ran) = checked(paging, others).await;
        let what = format!("{paging:?}: {}", ran.stderr);
        assert_eq!((ran.code, scene.shop.count("Three")), (8, 0), "{what}");
        assert!(ran.stderr.contains(why), "{what}");
        // Once the list is complete, the same command settles every row.
        scene.shop.state().paging = Paging::Linked;
        let names = ["One", "Two", "Three", "Four", "Five"];
        let ran = scene.import("a.csv", &names, "--unknown check").await;
        assert_eq!((ran.summary(), ran.code), ([5, 5, 0, 0, 0], 0), "{what}");
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
        let scene = Scene::new();
        scene.add(&names("other", others));
        scene.shop.state().fates = [Fate::Created, Fate::Unanswered].into();
        let rows = ["One", "Two"];
        scene.import("a.csv", &rows, "").await;
        scene.shop.state().paging = paging;
        let ran = scene.import("a.csv", &rows, "--unknown check").await;
        let what = format!("{paging:?}: {}", ran.stderr);
        assert_eq!((ran.code, scene.shop.count("Two")), (code, 1), "{what}");
        let why = "pets, and has no link";
        assert_eq!(ran.stderr.contains(why), code == 8, "{what}");
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
            let scene = Scene::new();
            scene.shop.state().ids = ids.clone().into();
            let names = ["Same", "Same", "Same"];
            for file in ["a.csv", "b.csv"] {
                scene.shop.state().fates = [Fate::Created, lost].into();
                scene.import(file, &names, "").await;
            }
            for file in ["a.csv", "b.csv"] {
                let ran = scene.import(file, &names, "--unknown check").await;
                let pets = scene.shop.count("Same");
                let what = format!("{lost:?}, {ids:?}, {pets}: {}", ran.stderr);
                assert!(pets <= 6 && matches!(ran.code, 0 | 8), "{what}");
                scene.follow_hints().await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_pauses_the_import_and_obeys_retry_after() {
    let scene = Scene::new();
    let mut fates = vec![Fate::Created];
    fates.extend([Fate::Failed; 5]);
    fates.push(Fate::FailedFor("40"));
    scene.shop.state().fates = fates.into();
    let names = names("pet", 20);
    let began = Instant::now();
    let ran = scene.import("a.csv", &names, "").await;
    assert_eq!(
        (ran.summary(), ran.code),
        ([20, 14, 0, 6, 0], 8),
        "{}",
        ran.stderr
    );
    assert!(
        began.elapsed() >= Duration::from_secs(41),
        "{:?}",
        began.elapsed()
    );
    let note = "of 20 rows done; paused (503); continues in 40 s";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    let ran = scene.import("a.csv", &names, "--unknown check").await;
    assert_eq!(
        (ran.summary(), ran.code),
        ([20, 20, 0, 0, 0], 0),
        "{}",
        ran.stderr
    );
    assert_eq!(scene.shop.state().pets.len(), 20);
    scene.follow_hints().await;
}

#[tokio::test(start_paused = true)]
async fn a_terminal_shows_each_pause_with_its_reason_and_its_end() {
    let scene = Scene::new();
    let mut fates = vec![Fate::Created];
    fates.extend([Fate::Failed; 8]);
    scene.shop.state().fates = fates.into();
    let file = scene.folder.path().join("a.csv");
    let rows = "x,7\n".repeat(20);
    std::fs::write(&file, format!("name,categoryId\n{rows}")).unwrap();
    let petstore = Petstore::with(&scene.shop.url(), "key-of-an-import");
    let petstore = petstore.home(scene.folder.path()).stderr_terminal();
    let line = format!("pets import {} --concurrency 1", file.display());
    let ran = petstore.width(80).run(&line).await;
    let mut rest = ran.stderr.as_str();
    // Each pause is twice as long as the one before. The first one is too short to be seen whole.
    for pause in [
        "0.7 s (10:00:01)",
        "2 s (10:00:02)",
        "4 s (10:00:04)",
        "8 s (10:00:08)",
    ] {
        let found = rest.split_once(&format!("paused (503): {pause}"));
        (_, rest) = found.unwrap_or_else(|| panic!("{pause}: {}", ran.stderr));
    }
    assert_eq!((ran.summary()[3], ran.code), (8, 8), "{}", ran.stderr);
    scene.follow_hints().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_stays_away_ends_the_import_after_retry_for() {
    let scene = Scene::new();
    scene.shop.state().fates = [Fate::Failed; 99].into();
    let names = ["x"; 40];
    let began = Instant::now();
    let ran = scene.import("a.csv", &names, "").await;
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let said = "without success (`--retry-for`)\n";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert!(ran.stderr.contains("` continues\n"), "{}", ran.stderr);
    let took = began.elapsed().as_secs();
    assert!((120..130).contains(&took), "{took}");
    let ran = scene.import("a.csv", &names, "--retry-for 0").await;
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(!ran.stderr.contains(said), "{}", ran.stderr);
    scene.follow_hints().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_comes_back_after_a_minute_gets_all_rows() {
    let names = names("pet", 30);
    // After five failures there are pauses of 1, 2, 4, 8 and 15 s. One row is sent after each.
    for (probes, away) in [(1, 1), (3, 7), (7, 60)] {
        for failure in [Fate::Failed, Fate::Lost] {
            let scene = Scene::new();
            let mut fates = vec![Fate::Created];
            fates.extend(vec![failure; 4 + probes]);
            scene.shop.state().fates = fates.into();
            let began = Instant::now();
            let ran = scene.import("a.csv", &names, "").await;
            let lost = 4 + probes;
            assert_eq!(
                (ran.summary(), ran.code),
                ([30, 30 - lost, 0, lost, 0], 8),
                "{}",
                ran.stderr
            );
            let took = began.elapsed().as_secs();
            assert!((away..away + 20).contains(&took), "{away}: {took}");
            let ran = scene.import("a.csv", &names, "--unknown check").await;
            assert_eq!((ran.summary()[1], ran.code), (30, 0), "{}", ran.stderr);
            assert_eq!(scene.shop.state().pets.len(), 30);
            scene.follow_hints().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_makes_no_more_rows_unknown_than_are_in_flight() {
    let names = names("pet", 60);
    for away in [8, 12, 14] {
        let scene = Scene::new();
        scene.shop.state().fates = [Fate::Created].into();
        scene.shop.state().away = away;
        let ran = scene.import("a.csv", &names, "--concurrency 8").await;
        let [_, created, _, unknown, _] = ran.summary();
        assert_eq!((created + unknown, ran.code), (60, 8), "{}", ran.stderr);
        assert!((5..=8).contains(&unknown), "{away}: {unknown}");
        let ran = scene.import("a.csv", &names, "--unknown check").await;
        assert_eq!((ran.summary()[1], ran.code), (60, 0), "{}", ran.stderr);
        assert_eq!(scene.shop.state().pets.len(), 60);
        scene.follow_hints().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_that_always_fails_is_set_aside_and_the_others_are_sent() {
    let scene = Scene::new();
    scene.shop.state().broken = "Bad";
    let names = ["One", "Bad", "Three", "Four"];
    for options in ["", "--unknown check", "--unknown check"] {
        let ran = scene.import("a.csv", &names, options).await;
        assert_eq!(
            (ran.summary(), ran.code),
            ([4, 3, 0, 1, 0], 8),
            "{options}: {}",
            ran.stderr
        );
        assert_eq!(scene.shop.state().pets.len(), 3);
    }
    scene.shop.state().broken = "";
    let ran = scene.import("a.csv", &names, "--unknown check").await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(scene.shop.count("Bad"), 1);
    scene.follow_hints().await;
}
