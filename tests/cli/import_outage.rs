//! Tests of imports whose service fails: for one row, for a while, or for good.

use tokio::time::{Duration, Instant};

use super::import_company::names;
use super::scene::Scene;
use super::shop::Fate;

#[tokio::test(start_paused = true)]
async fn an_outage_pauses_the_import_and_obeys_retry_after() {
    let mut fates = vec![Fate::Created];
    fates.extend([Fate::Failed; 5]);
    fates.push(Fate::Status(503, "40"));
    let scene = Scene::of(fates);
    let names = names("pet", 20);
    let began = Instant::now();
    let ran = scene.import("a.csv", &names, "").await;
    ran.sums_up([20, 14, 0, 6, 0], 8);
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(41), "{took:?}");
    ran.says("note: 1 of 20 rows done; paused (503); continues in 40 s");
    let ran = scene.import("a.csv", &names, "--unknown check").await;
    ran.sums_up([20, 20, 0, 0, 0], 0);
    assert_eq!(scene.names().len(), 20);
    scene.follow_hints().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_stays_away_ends_the_import_after_retry_for() {
    let scene = Scene::of([Fate::Failed; 99]);
    let names = ["x"; 40];
    let began = Instant::now();
    let ran = scene.import("a.csv", &names, "").await;
    let said = "without success (`--retry-for`)\n";
    ran.says(said);
    ran.says("` continues\n");
    ran.ended(5);
    let took = began.elapsed().as_secs();
    assert!((120..130).contains(&took), "{took}");
    let ran = scene.import("a.csv", &names, "--retry-for 0").await;
    ran.never_says(said);
    ran.ended(5);
    scene.follow_hints().await;
    // A `Retry-After` beyond that time ends the import at once.
    let scene = Scene::of([Fate::Status(503, "121")]);
    let began = Instant::now();
    scene.import("a.csv", &names, "").await.ended(5);
    assert_eq!(began.elapsed().as_secs(), 0);
    scene.follow_hints().await;
    // A 408 may have been processed, too.
    let scene = Scene::of([Fate::Status(408, ""); 99]);
    let ran = scene.import("a.csv", &names, "--retry-for 9").await;
    ran.says("rows: the service answered 408 Request Timeout: {}\n");
    ran.says("` continues\n");
    ran.ended(5);
    scene.follow_hints().await;
}

#[tokio::test(start_paused = true)]
async fn rows_that_fail_together_begin_one_pause() {
    let mut fates = vec![Fate::Created];
    fates.extend([Fate::Status(503, "1"); 8]);
    let scene = Scene::of(fates);
    let began = Instant::now();
    let options = "--concurrency 8";
    let ran = scene.import("a.csv", &names("pet", 20), options).await;
    ran.sums_up([20, 12, 0, 8, 0], 8);
    let took = began.elapsed();
    assert!((1.0..3.0).contains(&took.as_secs_f64()), "{took:?}");
    scene.follow_hints().await;
}

#[tokio::test(start_paused = true)]
async fn a_429_is_waited_out_unless_it_lasts_too_long() {
    let names = names("pet", 20);
    let scene = Scene::of([Fate::Created, Fate::Created, Fate::Status(429, "2")]);
    let began = Instant::now();
    let ran = scene.import("a.csv", &names, "--concurrency 8").await;
    ran.sums_up([20, 20, 0, 0, 0], 0);
    let took = began.elapsed().as_secs();
    assert!((2..9).contains(&took), "{took}");
    let scene = Scene::of([Fate::Status(429, "600")]);
    let ran = scene.import("a.csv", &names, "").await;
    ran.says("` continues then; `--max-wait 10m` waits for it\n");
    ran.sums_up([20, 0, 0, 0, 20], 7);
    scene.follow_hints().await;
    // A service that refuses row after row fails.
    let scene = Scene::of([Fate::Status(429, "1"); 300]);
    let began = Instant::now();
    let ran = scene.import("a.csv", &names, "--concurrency 8").await;
    ran.says("note: gave up after 2 min without success (`--retry-for`)\n");
    ran.says("` continues\n");
    ran.sums_up([20, 0, 0, 0, 20], 7);
    let took = began.elapsed().as_secs();
    assert!((120..130).contains(&took), "{took}");
    scene.server.state().fates.clear();
    scene.follow_hints().await;
    assert_eq!(scene.names().len(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_row_that_came_too_early_is_sent_again() {
    let scene = Scene::of([Fate::Created, Fate::Status(425, "")]);
    let ran = scene.import("a.csv", &names("pet", 9), "").await;
    ran.sums_up([9, 9, 0, 0, 0], 0);
    assert_eq!(scene.names().len(), 9);
}

#[tokio::test(start_paused = true)]
async fn a_redirect_ends_the_import_and_binds_it_to_no_service() {
    let elsewhere = Scene::of([Fate::Status(301, ""); 9]);
    let scene = Scene::of([]);
    let names = names("pet", 9);
    let options = format!("--concurrency 8 --base-url {}", elsewhere.server.url());
    let ran = scene.import("a.csv", &names, &options).await;
    ran.says("hint: redirects are not followed; ");
    ran.sums_up([9, 0, 0, 0, 9], 4);
    assert_eq!(elsewhere.server.state().fates.len(), 8);
    let ran = scene.import("a.csv", &names, "").await;
    ran.sums_up([9, 9, 0, 0, 0], 0);
    scene.follow_hints().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_comes_back_after_a_minute_gets_all_rows() {
    let names = names("pet", 30);
    // After five failures there are pauses of 1, 2, 4, 8 and 15 s. One row is sent after each.
    for (lost, away) in [(5, 1), (7, 7), (11, 60)] {
        for failure in [Fate::Failed, Fate::Lost] {
            let fates = std::iter::once(Fate::Created).chain(vec![failure; lost]);
            let scene = Scene::of(fates);
            let began = Instant::now();
            let ran = scene.import("a.csv", &names, "").await;
            ran.sums_up([30, 30 - lost, 0, lost, 0], 8);
            let took = began.elapsed().as_secs();
            assert!((away..away + 20).contains(&took), "{away}: {took}");
            let ran = scene.import("a.csv", &names, "--unknown check").await;
            ran.sums_up([30, 30, 0, 0, 0], 0);
            assert_eq!(scene.names().len(), 30);
            scene.follow_hints().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_makes_no_more_rows_unknown_than_are_in_flight() {
    let names = names("pet", 60);
    for away in [8, 12, 14] {
        let scene = Scene::of([Fate::Created]);
        scene.server.state().away = away;
        let ran = scene.import("a.csv", &names, "--concurrency 8").await;
        let [_, created, _, unknown, _] = ran.summary();
        assert_eq!((created + unknown, ran.code), (60, 8), "{}", ran.stderr);
        assert!((5..=8).contains(&unknown), "{away}: {unknown}");
        let ran = scene.import("a.csv", &names, "--unknown check").await;
        ran.sums_up([60, 60, 0, 0, 0], 0);
        assert_eq!(scene.names().len(), 60);
        scene.follow_hints().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_that_always_fails_is_set_aside_and_the_others_are_sent() {
    let scene = Scene::of([]);
    scene.server.state().broken = Some("Bad");
    let names = ["One", "Bad", "Three", "Four"];
    for options in ["", "--unknown check", "--unknown check"] {
        let ran = scene.import("a.csv", &names, options).await;
        ran.sums_up([4, 3, 0, 1, 0], 8);
        assert_eq!(scene.names().len(), 3);
    }
    scene.server.state().broken = None;
    let ran = scene.import("a.csv", &names, "--unknown check").await;
    ran.ended(0);
    assert_eq!(scene.count("Bad"), 1);
    scene.follow_hints().await;
    // What is no pet says why the row is unknown.
    let scene = Scene::of([Fate::Created, Fate::Status(200, "")]);
    let ran = scene.import("a.csv", &names, "").await;
    ran.says("\n  line 3: the response 200 could not be read: ");
    ran.sums_up([4, 3, 0, 1, 0], 8);
    scene.follow_hints().await;
}
