//! Tests of the speed of an import within quotas.

use petstore_mock::{Clock, Operation, Plan};
use tokio::time::{Duration, Instant};

use super::harness::{Petstore, noon};
use super::scene::{Scene, rows};

#[tokio::test(start_paused = true)]
async fn takes_no_longer_than_the_quota_asks_for() {
    let scene = Scene::at(Clock::runtime(noon()), Plan::Free).await;
    scene.write("pets.ndjson", &rows(290));
    let began = Instant::now();
    let ran = scene.run("pets import DIR/pets.ndjson").await;
    let took = began.elapsed();
    ran.sums_up([290, 290, 0, 0, 0], 0);
    // At 60 a minute, the last 50 rows can be sent after four minutes. The import must reach 99 %
    // of that speed.
    let ideal = Duration::from_secs(240);
    assert!(
        took >= ideal && took.as_secs_f64() <= ideal.as_secs_f64() / 0.99,
        "{took:?}"
    );
    assert_eq!(scene.sent(), 290);
    // A script sees one note for each wait.
    let notes = ran.stderr.matches("minute quota used up; continues in ");
    assert_eq!(notes.count(), 4, "{}", ran.stderr);
}

#[tokio::test(start_paused = true)]
async fn rows_that_wait_for_each_other_do_not_end_an_import() {
    for max_wait in [0, 5] {
        let scene = Scene::at(Clock::runtime(noon()), Plan::Free).await;
        scene.write("pets.ndjson", &rows(50));
        // Fewer rows may be in flight than the import would send.
        let faults = scene.server.faults().on(Operation::CreatePet);
        let _slow = faults.delay(Duration::from_secs(3));
        let line = format!(
            "pets import DIR/pets.ndjson --concurrency 32 --max-wait {max_wait} \
             --retry-for 0"
        );
        scene.expect(&line, [50, 50, 0, 0, 0], 0).await;
        assert_eq!(scene.sent(), 50);
    }
}

#[tokio::test(start_paused = true)]
async fn rows_that_are_refused_beside_a_stranger_are_sent_later() {
    let scene = Scene::at(Clock::runtime(noon()), Plan::enterprise(30, 1_000)).await;
    scene.write("pets.ndjson", &rows(40));
    let faults = scene.server.faults().on(Operation::CreatePet);
    let _slow = faults.delay(Duration::from_secs(1));
    let url = format!("{}/store/orders", scene.server.url());
    let stranger = async {
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        for _ in 0..22 {
            let request = reqwest::Client::new().get(&url);
            request.bearer_auth("import-key").send().await.unwrap();
        }
    };
    let (ran, ()) = tokio::join!(scene.run("pets import DIR/pets.ndjson"), stranger);
    ran.sums_up([40, 40, 0, 0, 0], 0);
    ran.says("quota used up; continues in 5");
    assert!(scene.sent() > 40, "no row was refused");
}

#[tokio::test(start_paused = true)]
async fn ctrl_c_sends_no_row_that_waits_for_others() {
    let scene = Scene::at(Clock::runtime(noon()), Plan::Free).await;
    scene.write("pets.ndjson", &rows(50));
    let faults = scene.server.faults().on(Operation::CreatePet);
    let slow = faults.after(1).delay(Duration::from_secs(99));
    let interrupted = |petstore: Petstore| petstore.interrupted_after(Duration::from_secs(5));
    let import = "pets import DIR/pets.ndjson --concurrency 32";
    let ran = scene.run_with(interrupted, import).await;
    let [_, created, _, unknown, left] = ran.summary();
    assert_eq!((created, left), (1, 49 - unknown), "{}", ran.stderr);
    // Only what was sent is unknown.
    assert_eq!((slow.hits(), ran.code), (unknown as u64, 130));
    drop(slow);
    scene.follow_hints().await;
}

#[tokio::test(start_paused = true)]
async fn ctrl_c_finds_no_row_in_line_for_the_next_window() {
    for store in ["off", "file"] {
        let scene = Scene::at(Clock::runtime(noon()), Plan::enterprise(5, 100)).await;
        scene.write("pets.ndjson", &rows(30));
        let interrupted = |petstore: Petstore| petstore.interrupted_after(Duration::from_secs(90));
        let line = format!("pets import DIR/pets.ndjson --limits-store {store}");
        let ran = scene.run_with(interrupted, &line).await;
        ran.sums_up([30, 10, 0, 0, 20], 130);
        ran.never_says("in flight");
        scene.follow_hints().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_days_quota_is_forecast_shown_and_kept() {
    // 20 a minute and 30 a day; it is 10:00.
    let plan = Plan::enterprise(20, 30);
    let scene = Scene::at(Clock::runtime(noon()), plan).await;
    scene.write("pets.ndjson", &rows(70));
    let ran = scene.run("pets import DIR/pets.ndjson --max-wait 2m").await;
    ran.says("error: stopped after 30 of 70 rows: day quota used up, resets in 13 h 59 min");
    ran.says(" --max-wait 2m` continues then; `--max-wait ");
    ran.ended(7);
    let ran = scene.run("pets import DIR/pets.ndjson --dry-run").await;
    ran.shows("40 rows to send; the day quota lets the last go in 37 h 59 min");
    let began = Instant::now();
    let ran = scene
        .run("pets import DIR/pets.ndjson --max-wait 25h")
        .await;
    ran.sums_up([70, 70, 0, 0, 0], 0);
    // 30 rows from midnight on, and the last ten from the next one on.
    assert_eq!(began.elapsed().as_secs() / 3_600, 37);
    let posts = scene.server.requests(Operation::CreatePet);
    let refused = posts.iter().filter(|post| post.status == Some(429));
    assert_eq!((posts.len(), refused.count()), (70, 0));
    scene.follow_hints().await;
}
