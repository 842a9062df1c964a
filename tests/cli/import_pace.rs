//! Tests of the speed of an import, its behaviour in an outage, and its messages.

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

#[tokio::test(start_paused = true)]
async fn ctrl_c_finds_no_row_in_line_for_the_next_window() {
    let scene = Scene::at(Clock::runtime(noon()), Plan::enterprise(5, 100)).await;
    scene.write("pets.ndjson", &rows(30));
    let interrupted = |petstore: Petstore| petstore.interrupted_after(90);
    let ran = scene
        .run_with(interrupted, "pets import DIR/pets.ndjson")
        .await;
    assert_eq!(
        (ran.summary(), ran.code),
        ([30, 10, 0, 0, 20], 130),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("in flight"), "{}", ran.stderr);
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
}
