//! Tests of `--unknown check` while other programs use the service too: it never creates a row
//! twice, and never takes another program's pet for its own.

use insta::assert_snapshot;
use tempfile::TempDir;
use tokio::time::{Duration, Instant};

use super::harness::{Petstore, Ran};
use super::shop::{Fate, Paging, Shop};

/// A service, and a folder with files to import.
struct Scene {
    shop: Shop,
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        Self {
            shop: Shop::start(),
            folder: TempDir::new().unwrap(),
        }
    }

    /// Writes rows with these names, and imports them one at a time.
    async fn import(&self, file: &str, names: &[&str], options: &str) -> Ran {
        let path = self.folder.path().join(file);
        let rows = names.iter().map(|name| format!("{name},7\n"));
        std::fs::write(
            &path,
            format!("name,categoryId\n{}", rows.collect::<String>()),
        )
        .unwrap();
        let line = format!("pets import {} --concurrency 1 {options}", path.display());
        let petstore = Petstore::with(&self.shop.url(), "key-of-an-import");
        let petstore = petstore.var("PETSTORE_TIMEOUT", "1");
        petstore.home(self.folder.path()).run(&line).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_without_links_proves_nothing() {
    let scene = Scene::new();
    scene.shop.state().paging = Paging::Unlinked;
    let names: Vec<_> = (0..99).map(|pet| format!("other {pet}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    scene.shop.add(&names);
    scene.shop.state().fates = [Fate::Created, Fate::Unanswered].into();
    let first = scene.import("a.csv", &["One", "Two", "Three"], "").await;
    assert_eq!((first.summary(), first.code), ([3, 2, 0, 1, 0], 8));
    let ran = scene
        .import("a.csv", &["One", "Two", "Three"], "--unknown check")
        .await;
    assert_eq!(scene.shop.count("Two"), 1, "{}", ran.stderr);
    assert_eq!(
        (ran.summary(), ran.code),
        ([3, 2, 0, 1, 0], 8),
        "{}",
        ran.stderr
    );
}

#[tokio::test(start_paused = true)]
async fn ids_that_fall_create_no_row_twice() {
    let scene = Scene::new();
    scene.shop.state().ids = [999, 998, 997].into();
    scene.shop.state().fates = [Fate::Created, Fate::Unanswered].into();
    scene.import("a.csv", &["One", "Two", "Three"], "").await;
    let ran = scene
        .import("a.csv", &["One", "Two", "Three"], "--unknown check")
        .await;
    assert_eq!(scene.shop.count("Two"), 1, "{}", ran.stderr);
}

#[tokio::test(start_paused = true)]
async fn the_pet_of_another_import_is_not_claimed() {
    let scene = Scene::new();
    scene.shop.state().fates = [Fate::Created, Fate::Lost].into();
    scene.import("a.csv", &["A1", "Same", "A3"], "").await;
    scene.import("b.csv", &["B1", "Same", "B3"], "").await;
    let ran = scene
        .import("a.csv", &["A1", "Same", "A3"], "--unknown check")
        .await;
    let is_complete = ran.code == 0;
    let pets = scene.shop.count("Same");
    assert!(pets == 2 || !is_complete, "{pets}: {}", ran.stderr);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_arrives_late_creates_no_row_twice() {
    let scene = Scene::new();
    scene.shop.state().fates = [Fate::Created, Fate::Late(1)].into();
    let names = ["One", "Two", "Three", "Four"];
    scene.import("a.csv", &names, "").await;
    let ran = scene.import("a.csv", &names, "--unknown check").await;
    assert_eq!(
        (ran.summary(), ran.code),
        ([4, 4, 0, 0, 0], 0),
        "{}",
        ran.stderr
    );
    assert_eq!(scene.shop.count("Two"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_row_that_may_be_anothers_is_named_and_can_be_accepted() {
    let scene = Scene::new();
    scene.shop.state().fates = [Fate::Created, Fate::Lost].into();
    scene.import("a.csv", &["A1", "Same", "A3"], "").await;
    scene.import("b.csv", &["B1", "Same", "B3"], "").await;
    let names = ["A1", "Same", "A3"];
    let ran = scene.import("a.csv", &names, "--unknown check").await;
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    3	2	0	1	0	0	0	0	0	false	1
    --- stderr
    note: checking 1 unknown row: listing all pets, about 1 request
    note: the unknown row is uncertain
    note: nothing to send
    note: 2 of 3 rows created, 1 uncertain
    error: 1 row is uncertain
      line 3: may be pet 4
    hint: look at these pets; `petstore pets import HOME/a.csv --concurrency 1 --accept-uncertain` takes them as created
    --- exit 8
    ");
    let ran = scene
        .import("a.csv", &names, "--accept-uncertain -o json")
        .await;
    let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&summary["complete"], ran.code), (&true.into(), 0));
    assert_eq!(summary["run"]["found"], 1);
    assert_eq!(scene.shop.count("Same"), 1);
}

#[tokio::test(start_paused = true)]
async fn programs_and_people_get_the_pets_of_an_uncertain_row() {
    let scene = Scene::new();
    scene.shop.state().fates = [Fate::Created, Fate::Lost].into();
    let names = ["A1", "Same", "A3"];
    scene.import("a.csv", &names, "").await;
    scene
        .import("b.csv", &["B1", "Same", "B2", "Same", "B3"], "")
        .await;
    let ran = scene
        .import("a.csv", &names, "--unknown check -o json")
        .await;
    let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let pets = serde_json::json!([{ "line": 3, "pets": [4, 6] }]);
    assert_eq!(summary["uncertain"], pets, "{}", ran.stdout);
    assert_eq!(summary["total"]["uncertain"], 1);
    assert_eq!(summary["complete"], false);
    let note = "note: 2 of 3 rows created, 1 uncertain\n";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    let ran = scene
        .import("a.csv", &names, "--unknown check -o table")
        .await;
    assert!(
        ran.stdout
            .contains("\nunknown           0      0\nuncertain                1\n"),
        "{}",
        ran.stdout
    );
    let line = "\n  line 3: may be pet 4 or 6\n";
    assert!(ran.stderr.contains(line), "{}", ran.stderr);
}

/// Loses responses of an import, and then checks it with this kind of list, after `others` pets of
/// other programs.
async fn checked(paging: Paging, others: usize) -> (Scene, Ran) {
    let scene = Scene::new();
    let others: Vec<_> = (0..others).map(|pet| format!("other {pet}")).collect();
    let others: Vec<_> = others.iter().map(String::as_str).collect();
    scene.shop.add(&others);
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
async fn a_list_in_another_order_or_with_a_pet_twice_finds_out_all() {
    for paging in [Paging::Linked, Paging::Reversed, Paging::Overlapping] {
        let (scene, ran) = checked(paging, 230).await;
        let what = format!("{paging:?}: {}", ran.stderr);
        assert_eq!((ran.summary(), ran.code), ([5, 5, 0, 0, 0], 0), "{what}");
        assert_eq!(scene.shop.state().pets.len(), 235, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_never_ends_or_ends_too_early_proves_nothing() {
    for (paging, why) in [
        (
            Paging::Repeated,
            "the service sends the same page again under another URL",
        ),
        (Paging::Empty, "the service sends empty pages without end"),
        (
            Paging::Cut(232),
            "pet 233 of this import is not in the list",
        ),
    ] {
        let (scene, ran) = checked(paging, 230).await;
        let what = format!("{paging:?}: {}", ran.stderr);
        assert_eq!(ran.code, 8, "{what}");
        assert!(ran.stderr.contains(why), "{what}");
        assert_eq!(scene.shop.count("Three"), 0, "{what}");
        // Once the list is complete, the same command settles every row.
        scene.shop.state().paging = Paging::Linked;
        let names = ["One", "Two", "Three", "Four", "Five"];
        let ran = scene.import("a.csv", &names, "--unknown check").await;
        assert_eq!((ran.summary(), ran.code), ([5, 5, 0, 0, 0], 0), "{what}");
    }
}

/// Loses the response to the last of two rows, whose pets follow on `others` pets of other programs.
async fn last_row_lost(others: usize) -> Scene {
    let scene = Scene::new();
    let others: Vec<_> = (0..others).map(|pet| format!("other {pet}")).collect();
    let others: Vec<_> = others.iter().map(String::as_str).collect();
    scene.shop.add(&others);
    scene.shop.state().fates = [Fate::Created, Fate::Unanswered].into();
    let first = scene.import("a.csv", &["One", "Two"], "").await;
    assert_eq!((first.summary(), first.code), ([2, 1, 0, 1, 0], 8));
    scene
}

#[tokio::test(start_paused = true)]
async fn a_list_that_stops_after_two_pages_proves_nothing() {
    let scene = last_row_lost(199).await;
    scene.shop.state().paging = Paging::Pages(2);
    let ran = scene
        .import("a.csv", &["One", "Two"], "--unknown check")
        .await;
    let why = "the list ends with a full page of 200 pets, without a link to the next";
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
    assert_eq!((ran.code, scene.shop.count("Two")), (8, 1));
}

#[tokio::test(start_paused = true)]
async fn a_list_of_two_full_pages_finds_out_all() {
    let scene = last_row_lost(198).await;
    let ran = scene
        .import("a.csv", &["One", "Two"], "--unknown check")
        .await;
    assert_eq!((ran.summary(), ran.code), ([2, 2, 0, 0, 0], 0));
    assert_eq!(scene.shop.count("Two"), 1, "{}", ran.stderr);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_lacks_a_pet_proves_nothing() {
    // The second row's pet is the last one of the second page.
    let (scene, ran) = checked(Paging::Incomplete, 198).await;
    let why = "page 2 of the list has 99 pets, but earlier pages have 100";
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
    assert_eq!((ran.code, scene.shop.count("Three")), (8, 0));
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
                assert!(ran.code == 8 || lost != Fate::Lost || pets == 6, "{what}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_pauses_the_import_and_obeys_retry_after() {
    let scene = Scene::new();
    let mut fates = vec![Fate::Created];
    fates.extend([Fate::Failed("0"); 5]);
    fates.push(Fate::Failed("40"));
    scene.shop.state().fates = fates.into();
    let names: Vec<_> = (0..20).map(|row| format!("pet {row}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
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
    let note = "of 20 rows done; the service fails (503); continues in 1 s";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    let ran = scene.import("a.csv", &names, "--unknown check").await;
    assert_eq!(
        (ran.summary(), ran.code),
        ([20, 20, 0, 0, 0], 0),
        "{}",
        ran.stderr
    );
    assert_eq!(scene.shop.state().pets.len(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_terminal_shows_each_pause_with_its_reason_and_its_end() {
    let scene = Scene::new();
    let mut fates = vec![Fate::Created];
    fates.extend([Fate::Failed("0"); 8]);
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
        let found = rest.split_once(&format!("503, paused: {pause}"));
        (_, rest) = found.unwrap_or_else(|| panic!("{pause}: {}", ran.stderr));
    }
    assert_eq!((ran.summary()[3], ran.code), (8, 8), "{}", ran.stderr);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_stays_away_ends_the_import_after_retry_for() {
    let scene = Scene::new();
    scene.shop.state().fates = [Fate::Failed("0"); 99].into();
    let names = ["x"; 40];
    let began = Instant::now();
    let ran = scene.import("a.csv", &names, "").await;
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stderr.contains("` continues\n"), "{}", ran.stderr);
    let took = began.elapsed().as_secs();
    assert!((120..130).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_comes_back_after_a_minute_gets_all_rows() {
    let names: Vec<_> = (0..30).map(|row| format!("pet {row}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    // After five failures there are pauses of 1, 2, 4, 8 and 15 s. One row is sent after each.
    for (probes, away) in [(3, 7), (7, 60)] {
        for failure in [Fate::Failed("0"), Fate::Lost] {
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
        }
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
}
