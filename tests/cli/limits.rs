//! Rate limits: `petstore limits`, waits and their display, and consecutive runs with one key.

use std::time::Duration;

use insta::assert_snapshot;
use petstore_mock::{Clock, Effect, MockServer, Operation, Plan, RateFault, RetryAfter};

use super::harness::{Petstore, noon};

async fn serve(plan: Plan, clock: Clock) -> MockServer {
    MockServer::builder()
        .key("k", plan)
        .clock(clock)
        .start()
        .await
        .unwrap()
}

/// Starts a service whose minute quota is used up, in paused time.
async fn with_a_wait() -> MockServer {
    let server = serve(Plan::enterprise(1, 10), Clock::runtime(noon())).await;
    assert_eq!(Petstore::at(&server, "k").run("store orders").await.code, 0);
    server
}

#[tokio::test(start_paused = true)]
async fn a_terminal_shows_a_countdown_and_then_clears_it() {
    let server = with_a_wait().await;
    let ran = Petstore::at(&server, "k")
        .stderr_terminal()
        .run("pets list --limit 9 --all")
        .await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let shown: Vec<_> = ran.stderr.split("\r\u{1b}[K").collect();
    // The line is redrawn ten times a second. The wait ends a second after the reset.
    assert!(shown.len() > 500, "{}", ran.stderr);
    let waiting = "minute quota used up; continues in 1 min 1 s (10:01:01)";
    assert!(shown[1].ends_with(waiting), "{}", shown[1]);
    let second = "; continues in 59 s (";
    assert!(
        shown.iter().any(|line| line.contains(second)),
        "{}",
        ran.stderr
    );
    assert_eq!(shown.last(), Some(&""), "{}", ran.stderr);
}

#[tokio::test(start_paused = true)]
async fn a_script_gets_one_note_and_quiet_none() {
    let server = with_a_wait().await;
    let ran = Petstore::at(&server, "k")
        .run("pets create Rex --category-id 7")
        .await;
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    26	Rex	7
    --- stderr
    note: minute quota used up; continues in 1 min 1 s (2026-11-21T10:01:01Z)
    --- exit 0
    ");
    let ran = Petstore::at(&server, "k")
        .stderr_terminal()
        .run("store orders -q")
        .await;
    assert_eq!((ran.stderr.as_str(), ran.code), ("", 0));
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_the_first_response_with_a_key_is_announced() {
    let server = serve(Plan::Free, Clock::runtime(noon())).await;
    let _slow = server
        .faults()
        .on(Operation::ListPets)
        .delay(Duration::from_secs(5));
    // After a second without a response, the second command goes, too.
    let run = || Petstore::at(&server, "k").run("pets list --all");
    let (first, second, third) = tokio::join!(run(), run(), run());
    assert_eq!([first.code, second.code, third.code], [0; 3]);
    let told = "note: waiting for the limits of this key\n";
    assert_eq!(first.stderr + &second.stderr + &third.stderr, told);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_may_not_wait_says_what_it_would_wait_for() {
    let server = serve(Plan::Free, Clock::runtime(noon())).await;
    let _slow = server
        .faults()
        .on(Operation::ListPets)
        .delay(Duration::from_secs(5));
    let run = async |line: &str| Petstore::at(&server, "k").run(line).await;
    let (slow, other) = tokio::join!(run("pets list"), run("store orders --max-wait 0"));
    assert_eq!(slow.code, 0, "{}", slow.stderr);
    assert_snapshot!(other.transcript(), @"
    --- stderr
    error: waited 0 s for a first response that says how many requests may follow, and may wait no longer
    hint: `--max-wait 1m` waits longer
    --- exit 7
    ");
}

#[tokio::test]
async fn the_limits_are_shown_when_they_are_used_up_too() {
    let server = serve(Plan::enterprise(1, 10), Clock::frozen(noon())).await;
    assert_eq!(Petstore::at(&server, "k").run("store orders").await.code, 0);
    let ran = Petstore::at(&server, "k").terminal().run("limits").await;
    let shown = ran.transcript();
    let (before, rest) = shown.split_once("From a response ").unwrap();
    let (age, after) = rest.split_once(" ago.").unwrap();
    assert!(age.ends_with(" s"), "{age}");
    assert_snapshot!(format!("{before}From a response … ago.{after}"), @"
    --- stdout
    ␛[1mQUOTA   LEFT  LIMIT                        RESETS␛[0m
    minute     ␛[33m0␛[0m      1  ░░░░░░░░░░░░░░░░░░░░  in 1 min (10:01:00)
    day        ␛[2m–␛[0m      ␛[2m–␛[0m                        not reported yet
    Requests wait for the minute quota, in 1 min 1 s (10:01:01). From a response … ago.
    --- exit 0
    ");
}

#[tokio::test]
async fn the_limits_are_asked_for_even_where_the_service_said_to_wait() {
    let server = serve(Plan::Free, Clock::frozen(noon())).await;
    let effects = [
        Effect::status(429),
        Effect::RetryAfter(RetryAfter::Seconds(30)),
        // Otherwise the client believes that the minute is used up.
        Effect::RateHeaders(RateFault::Missing),
    ];
    let busy = server
        .faults()
        .on(Operation::ListPets)
        .first(1)
        .apply(Effect::All(effects.into()));
    let run = async |line: &str| Petstore::at(&server, "k").run(line).await;
    assert_eq!(
        (run("pets list --max-wait 0").await.code, busy.hits()),
        (7, 1)
    );
    assert_snapshot!(run("limits").await.transcript(), @"
    --- stderr
    note: requests wait for the rate limit, in 30 s (2026-11-21T10:00:30Z)
    --- exit 0
    ");
    assert_eq!(server.requests(..).len(), 1);
    assert_snapshot!(run("limits --refresh").await.transcript(), @"
    --- stdout
    minute	60	58	2026-11-21T10:01:00Z	60
    --- exit 0
    ");
    assert_eq!(server.requests(..).len(), 2);
}

#[tokio::test]
async fn a_later_command_says_that_the_key_is_banned() {
    let server = serve(Plan::Free, Clock::frozen(noon())).await;
    let body = r#"{"code":"key_banned","message":"banned","status":429}"#;
    let ban = Effect::All(vec![
        Effect::status(429),
        Effect::RetryAfter(RetryAfter::Seconds(299)),
        Effect::Body {
            text: body.to_owned(),
        },
    ]);
    let _ban = server.faults().on(Operation::ListPets).first(1).apply(ban);
    let home = tempfile::tempdir().unwrap();
    let petstore = || Petstore::at(&server, "k").home(home.path());
    assert_eq!(petstore().run("pets list").await.code, 7);
    assert_snapshot!(petstore().run("pets list --error-format json").await.transcript(), @r#"
    --- stderr
    {"level":"error","exit":7,"kind":"banned","message":"the service banned this key for 4 min 59 s (until 2026-11-21T10:04:59Z)","hint":"`--max-wait 5m` waits for it","retryAt":"2026-11-21T10:04:59Z","retryAfterSeconds":299,"attempts":0,"mayHaveBeenProcessed":false}
    --- exit 7
    "#);
    assert_snapshot!(petstore().run("limits").await.transcript(), @"
    --- stdout
    minute	60	0	2026-11-21T10:01:00Z	60
    --- stderr
    note: requests wait for the end of the ban, in 4 min 59 s (2026-11-21T10:04:59Z)
    --- exit 0
    ");
    let ran = petstore().terminal().run("limits --color never").await;
    let end = "Requests wait for the end of the ban, in 4 min 59 s (10:04:59).";
    assert!(ran.stdout.contains(end), "{}", ran.stdout);
    assert_eq!(server.requests(..).len(), 1);
}

#[tokio::test]
async fn a_retry_after_of_more_than_25_hours_is_shown_as_25_hours() {
    let server = serve(Plan::Free, Clock::frozen(noon())).await;
    let busy = Effect::All(vec![
        Effect::status(429),
        Effect::RetryAfter(RetryAfter::Seconds(30 * 3_600)),
    ]);
    let _busy = server.faults().on(Operation::ListPets).apply(busy);
    let home = tempfile::tempdir().unwrap();
    let petstore = || Petstore::at(&server, "k").home(home.path());
    // The first command learns it from the service, and the second one from the first.
    assert_snapshot!(petstore().run("pets list").await.transcript(), @"
    --- stderr
    error: rate limit used up, resets in 25 h (2026-11-22T11:00:00Z)
    hint: run the command again then, or add `--max-wait 25h`
    --- exit 7
    ");
    assert_snapshot!(petstore().run("pets list --error-format json").await.transcript(), @r#"
    --- stderr
    {"level":"error","exit":7,"kind":"rate_limited","message":"rate limit used up, resets in 25 h (2026-11-22T11:00:00Z)","hint":"run the command again then, or add `--max-wait 25h`","retryAt":"2026-11-22T11:00:00Z","retryAfterSeconds":90000,"attempts":0,"mayHaveBeenProcessed":false}
    --- exit 7
    "#);
    let ran = petstore().terminal().run("limits --color never").await;
    let end = "Requests wait for the rate limit, in 25 h (Sun 11:00).";
    assert!(ran.stdout.contains(end), "{}", ran.stdout);
}

#[tokio::test]
async fn the_limits_are_shown_without_a_request_while_they_are_known() {
    let server = serve(Plan::Free, Clock::frozen(noon())).await;
    let home = tempfile::tempdir().unwrap();
    let run = async |line: &str| Petstore::at(&server, "k").home(home.path()).run(line).await;
    assert_snapshot!(run("limits").await.transcript(), @"
    --- stderr
    note: no response yet with this key
    hint: `petstore limits --refresh` sends a request
    --- exit 0
    ");
    run("pets list").await;
    let left = "limits --jq .[].remaining";
    assert_eq!(run(left).await.stdout, "59\n");
    assert_snapshot!(run("limits --refresh -o json").await.transcript(), @r#"
    --- stdout
    [
      {
        "quota": "minute",
        "limit": 60,
        "remaining": 58,
        "reset": "2026-11-21T10:01:00Z",
        "secondsToReset": 60
      }
    ]
    --- exit 0
    "#);
    assert_eq!(run("limits -o csv").await.stdout.lines().count(), 2);
    assert_eq!(server.requests(..).len(), 2);
}

#[tokio::test]
async fn a_service_that_does_not_describe_its_limits_is_told_apart() {
    let service = wiremock::MockServer::start().await;
    wiremock::Mock::given(wiremock::matchers::any())
        .respond_with(wiremock::ResponseTemplate::new(200).set_body_string("[]"))
        .mount(&service)
        .await;
    let home = tempfile::tempdir().unwrap();
    let run = async |line: &str| {
        let petstore = Petstore::with(&service.uri(), "no-limits");
        petstore.home(home.path()).run(line).await.transcript()
    };
    assert_snapshot!(run("limits").await, @"
    --- stderr
    note: no response yet with this key
    hint: `petstore limits --refresh` sends a request
    --- exit 0
    ");
    run("store orders").await;
    assert_snapshot!(run("limits").await, @"
    --- stderr
    note: the service does not describe its rate limits
    --- exit 0
    ");
    assert_snapshot!(run("limits --refresh").await, @"
    --- stderr
    error: the service does not describe its rate limits
    --- exit 5
    ");
}

#[tokio::test]
async fn the_61st_run_on_a_free_key_waits_and_is_not_refused() {
    let server = serve(Plan::Free, Clock::frozen(noon())).await;
    let home = tempfile::tempdir().unwrap();
    for (number, code) in (1..=61).map(|number| (number, if number > 60 { 7 } else { 0 })) {
        let petstore = Petstore::at(&server, "k").home(home.path());
        let ran = petstore.run("pets list --max-wait 0").await;
        assert_eq!(ran.code, code, "{number}: {}", ran.stderr);
    }
    assert_eq!(
        server.requests(..).len(),
        60,
        "the last one was not even sent"
    );
}

#[tokio::test(start_paused = true)]
async fn a_window_that_has_ended_is_shown_full() {
    let server = serve(Plan::Free, Clock::runtime(noon())).await;
    let home = tempfile::tempdir().unwrap();
    let petstore = || Petstore::at(&server, "k").home(home.path());
    assert_eq!(petstore().run("pets list -q").await.code, 0);
    tokio::time::advance(Duration::from_secs(90)).await;
    let ran = petstore().terminal().run("limits --color never").await;
    assert!(
        ran.stdout
            .contains("minute    60     60  ████████████████████  has reset\n"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    assert_eq!((ran.stderr.as_str(), ran.code), ("", 0));
}

#[tokio::test]
async fn all_windows_of_a_quota_are_shown() {
    let service = wiremock::MockServer::start().await;
    let now = unix_now();
    for (path, limit, reset) in [("/a", 5, 20), ("/b", 60, 40), ("/c", 1_000, 7_200)] {
        let answer = wiremock::ResponseTemplate::new(200)
            .set_body_string("[]")
            .insert_header("x-ratelimit-limit", limit.to_string())
            .insert_header("x-ratelimit-remaining", (limit - 1).to_string())
            .insert_header("x-ratelimit-reset", (now + reset).to_string());
        wiremock::Mock::given(wiremock::matchers::path(path))
            .respond_with(answer)
            .mount(&service)
            .await;
    }
    let petstore = || Petstore::with(&service.uri(), "three-windows");
    for path in ["/a", "/b", "/c"] {
        let ran = petstore().run(&format!("api {path}")).await;
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let ran = petstore().terminal().run("limits --color never").await;
    let rows: Vec<_> = ran.stdout.lines().map(|line| &line[..6]).collect();
    assert_eq!(
        &rows[..4],
        ["QUOTA ", "minute", "minute", "day   "],
        "{}",
        ran.stdout
    );
}

#[tokio::test]
async fn an_hours_quota_has_its_name_everywhere() {
    // 2027-01-15, 07:20:00 and 08:00:00 UTC.
    let headers = [
        ("Date", "Fri, 15 Jan 2027 07:20:00 GMT"),
        ("X-RateLimit-Limit", "300"),
        ("X-RateLimit-Remaining", "0"),
        ("X-RateLimit-Reset", "1800000000"),
    ];
    let server = crate::client::Wire::reading(move |_| crate::client::answer(200, &headers, "[]"));
    let home = tempfile::tempdir().unwrap();
    let petstore = || Petstore::with(&server.base(), "hour-key").home(home.path());
    assert_eq!(petstore().run("pets list").await.code, 0);
    let ran = petstore().terminal().run("limits --color never").await;
    let row = "hour       0    300  ░░░░░░░░░░░░░░░░░░░░  in 40 min";
    assert!(ran.stdout.contains(row), "{}", ran.stdout);
    let ran = petstore().run("limits --jq .[].quota").await;
    assert_eq!(ran.stdout, "hour\n");
    let ran = petstore().run("pets list").await;
    let error = "error: hour quota used up, resets in 40 min";
    assert!(ran.stderr.starts_with(error), "{}", ran.stderr);
    let pets = home.path().join("pets.csv");
    std::fs::write(&pets, "name,categoryId\nRex,7\n").unwrap();
    let line = format!("pets import {} --dry-run", pets.display());
    let ran = petstore().run(&line).await;
    let plan = "pets.csv has 1 row to send; the hour quota lets the last go in 40 min, ";
    assert!(ran.stdout.contains(plan), "{}", ran.stdout);
}

#[expect(
    clippy::disallowed_methods,
    reason = "the server of the test sends the machine's time"
)]
fn unix_now() -> u64 {
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_after_a_reset_counts_with_a_full_quota() {
    let server = serve(Plan::Free, Clock::runtime(noon())).await;
    let home = tempfile::tempdir().unwrap();
    let petstore = || Petstore::at(&server, "k").home(home.path());
    assert_eq!(petstore().run("pets list -q").await.code, 0);
    tokio::time::advance(Duration::from_secs(90)).await;
    let pets = home.path().join("pets.ndjson");
    std::fs::write(&pets, super::scene::rows(70)).unwrap();
    let line = format!("pets import {} --dry-run", pets.display());
    let ran = petstore().run(&line).await;
    let plan =
        "HOME/pets.ndjson has 70 rows to send; the minute quota lets the last go in 1 min, 10:01\n";
    assert_eq!((&*ran.stdout, &*ran.stderr, ran.code), (plan, "", 0));
}
