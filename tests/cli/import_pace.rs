//! Tests of the speed of an import, its behaviour in an outage, and its messages.

use insta::assert_snapshot;
use petstore_mock::{Clock, MockServer, Operation, Plan, Seed};
use tempfile::TempDir;
use tokio::time::{Duration, Instant};

use super::harness::{Petstore, noon};
use super::import::{Scene, rows};

#[tokio::test(start_paused = true)]
async fn takes_no_longer_than_the_quota_asks_for() {
    let scene = Scene::at(Clock::runtime(noon()), Plan::Free).await;
    scene.write("pets.ndjson", &rows(290));
    let began = Instant::now();
    let ran = scene
        .run("pets import DIR/pets.ndjson --journal DIR/j")
        .await;
    let took = began.elapsed();
    assert_eq!(
        (ran.summary(), ran.code),
        ([290, 290, 0, 0, 0], 0),
        "{}",
        ran.stderr
    );
    // At 60 a minute, the last 50 rows can be sent after four minutes. The import must reach 99 %
    // of that speed.
    let ideal = Duration::from_secs(240);
    assert!(
        took >= ideal && took.as_secs_f64() <= ideal.as_secs_f64() / 0.99,
        "{took:?}"
    );
    assert_eq!(scene.sent(), 290);
    // A script sees one note for each wait.
    assert_eq!(
        ran.stderr
            .matches("minute quota used up; continues in ")
            .count(),
        4,
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn a_lone_import_is_as_fast_with_shared_limits_as_without() {
    for (count, plan) in [(16, Plan::Free), (50, Plan::Free), (900, Plan::Business)] {
        let took = async |store: &str| {
            let scene = Scene::at(Clock::frozen(noon()), plan).await;
            scene.write("pets.ndjson", &rows(count));
            let began = Instant::now();
            let line = format!("pets import DIR/pets.ndjson --limits-store {store}");
            scene.expect(&line, [count, count, 0, 0, 0], 0).await;
            began.elapsed()
        };
        let without = took("off").await;
        let shared = took("file").await;
        let most = 2 * without + Duration::from_millis(1_500);
        assert!(
            shared < most,
            "{count} rows: {shared:?}, without: {without:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn rows_that_wait_for_each_other_do_not_end_an_import() {
    for max_wait in [0, 5] {
        let scene = Scene::at(Clock::runtime(noon()), Plan::Free).await;
        scene.write("pets.ndjson", &rows(50));
        // Fewer rows may be in flight than the import would send.
        let _slow = scene
            .server
            .faults()
            .on(Operation::CreatePet)
            .delay(Duration::from_secs(3));
        let line = format!(
            "pets import DIR/pets.ndjson --concurrency 32 --max-wait {max_wait} \
             --retry-for 0"
        );
        scene.expect(&line, [50, 50, 0, 0, 0], 0).await;
        assert_eq!(scene.sent(), 50);
    }
}

#[tokio::test(start_paused = true)]
async fn imports_wait_through_more_windows_than_one_row_may() {
    let scene = Scene::at(Clock::runtime(noon()), Plan::enterprise(10, 1_000)).await;
    let import = async |number: usize| {
        // Another name of the home folder makes it the import of another process.
        let other = scene.path(&number.to_string());
        std::fs::create_dir(&other).unwrap();
        let home = std::path::Path::new(&other).join("..");
        let name = format!("pets{number}.ndjson");
        scene.write(&name, &rows(12));
        let line = format!("pets import DIR/{name} --concurrency 8");
        let ran = scene.run_with(|petstore| petstore.home(&home), &line).await;
        assert_eq!(
            (ran.summary(), ran.code),
            ([12, 12, 0, 0, 0], 0),
            "{}",
            ran.stderr
        );
    };
    futures_util::future::join_all((0..6).map(import)).await;
    assert_eq!(scene.sent(), 72);
    let posts = scene.server.requests(Operation::CreatePet);
    assert!(posts.iter().all(|post| post.status == Some(201)));
}

#[tokio::test(start_paused = true)]
async fn ctrl_c_finds_no_row_in_line_for_the_next_window() {
    for store in ["off", "file"] {
        let scene = Scene::at(Clock::runtime(noon()), Plan::enterprise(5, 100)).await;
        scene.write("pets.ndjson", &rows(30));
        let interrupted = |petstore: Petstore| petstore.interrupted_after(90);
        let line = format!("pets import DIR/pets.ndjson --limits-store {store}");
        let ran = scene.run_with(interrupted, &line).await;
        assert_eq!(
            (ran.summary(), ran.code),
            ([30, 10, 0, 0, 20], 130),
            "{store}: {}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("in flight"), "{}", ran.stderr);
        scene.follow_hints().await;
    }
}

#[tokio::test]
async fn goes_on_at_the_same_address_after_an_outage() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("pets.ndjson");
    std::fs::write(&file, rows(30)).unwrap();
    let start = async |port| {
        let builder = MockServer::builder()
            .key("k", Plan::Business)
            .seed(Seed::none());
        builder.port(port).start().await.unwrap()
    };
    let server = start(0).await;
    let (url, port) = (server.url().to_owned(), server.addr().port());
    let import = async || {
        let petstore = Petstore::with(&url, "k");
        petstore
            .run(&format!(
                "pets import {} --concurrency 2 --retry-for 0",
                file.display()
            ))
            .await
    };
    // The service accepts ten rows, fails, and stops.
    let failing = server
        .faults()
        .on(Operation::CreatePet)
        .after(10)
        .status(503);
    let ran = import().await;
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let created = server.pets().len();
    assert_eq!(created, 10);
    drop(failing);
    server.stop().await;
    let ran = import().await;
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    let server = start(port).await;
    let ran = import().await;
    let unknown: usize = ran.summary()[3];
    assert_eq!(
        created + unknown + server.pets().len(),
        30,
        "{} {}",
        ran.stdout,
        ran.stderr
    );
}

#[tokio::test]
async fn says_how_long_it_waited_for_the_service() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(60));
    let _failing = scene.server.faults().on(Operation::CreatePet).status(503);
    let ran = scene
        .run("pets import DIR/pets.ndjson --retry-for 1 --retries 0")
        .await;
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let said = "without success (`--retry-for`)";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    let ran = scene
        .run("pets import DIR/pets.ndjson --retry-for 0 --retries 0")
        .await;
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(!ran.stderr.contains(said), "{}", ran.stderr);
    scene.follow_hints().await;
}

#[tokio::test]
#[cfg(unix)]
async fn replaces_the_file_of_rejects_in_one_step() {
    use std::io::Read as _;

    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\na,1\n");
    let _refusing = scene.server.faults().on(Operation::CreatePet).status(400);
    let import = "pets import DIR/pets.csv --rejects DIR/no.csv";
    scene.write("no.csv", "another file");
    let ran = scene.run(import).await;
    assert!(
        ran.stderr
            .contains("no.csv exists and is not from this import"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        (ran.code, scene.sent(), scene.read("no.csv").as_str()),
        (2, 0, "another file")
    );
    std::fs::remove_file(scene.path("no.csv")).unwrap();
    assert_eq!(scene.run(import).await.code, 8);
    let first = scene.read("no.csv");
    assert!(first.starts_with("name,categoryId,reason\na,1,"), "{first}");
    let mut before = std::fs::File::open(scene.path("no.csv")).unwrap();
    assert_eq!(scene.run(import).await.code, 8);
    let mut text = String::new();
    before.read_to_string(&mut text).unwrap();
    assert_eq!(text, first, "a reader sees the old file or the new one");
    scene.follow_hints().await;
}

#[tokio::test(start_paused = true)]
async fn an_hours_quota_is_forecast_shown_and_kept() {
    // 20 a minute and 30 an hour; the last hour began at 10:00.
    let plan = Plan::enterprise(20, 10_000).with_per_hour(30);
    let scene = Scene::at(Clock::runtime(noon()), plan).await;
    scene.write("pets.ndjson", &rows(70));
    let ran = scene.run("pets import DIR/pets.ndjson --max-wait 2m").await;
    let (_, error) = ran.stderr.split_once("error: ").unwrap();
    assert_snapshot!(error, @"
    stopped after 30 of 70 rows: hour quota used up, resets in 59 min (2026-11-21T11:00:01Z)
    hint: `petstore pets import HOME/pets.ndjson --max-wait 2m` continues then; `--max-wait 59m` waits for it
    ");
    assert_eq!(ran.code, 7);
    let ran = scene.run("pets import DIR/pets.ndjson --dry-run").await;
    // The clocks of these tests stand still, so the times count from 10:00.
    let plan = "HOME/pets.ndjson has 40 rows to send; the hour quota lets the last go in 1 h 59 min, 11:58\n";
    assert_eq!(ran.stdout, plan);
    let began = Instant::now();
    let ran = scene.run("pets import DIR/pets.ndjson --max-wait 1h").await;
    assert_eq!(
        (ran.summary(), ran.code),
        ([70, 70, 0, 0, 0], 0),
        "{}",
        ran.stderr
    );
    let took = began.elapsed().as_secs();
    // 30 rows from 11:00 on, and the last ten from 12:00 on.
    assert!((118 * 60..120 * 60).contains(&took), "{took}");
    let posts = scene.server.requests(Operation::CreatePet);
    let refused = posts.iter().filter(|post| post.status == Some(429));
    assert_eq!((posts.len(), refused.count()), (70, 0));
    scene.follow_hints().await;
}
