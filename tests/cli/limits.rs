//! Rate limits: `petstore limits`, waits and their display, and consecutive runs with one key.

use std::time::Duration;

use insta::assert_snapshot;
use petstore_mock::{Effect, MockServer, Operation, Plan, RateFault, RetryAfter};

use super::harness::{Petstore, answering, serve, serve_over_time};

/// Starts a service whose minute quota is used up, in paused time.
async fn with_a_wait() -> MockServer {
    let server = serve_over_time(Plan::enterprise(1, 10)).await;
    let orders = Petstore::at(&server, "k").run("store orders").await;
    orders.ended(0);
    server
}

/// Refuses with this `Retry-After`.
fn refusal(seconds: u64) -> Effect {
    Effect::All(vec![
        Effect::Status(429),
        Effect::RetryAfter(RetryAfter::Seconds(seconds)),
        // Otherwise the client believes that the minute is used up.
        Effect::RateHeaders(RateFault::Missing),
    ])
}

#[tokio::test(start_paused = true)]
async fn a_terminal_shows_a_countdown_and_then_clears_it() {
    let server = with_a_wait().await;
    let ran = Petstore::at(&server, "k")
        .stderr_terminal()
        .run("pets list --limit 9 --all")
        .await;
    ran.ended(0);
    let shown: Vec<_> = ran.stderr.split("\r\u{1b}[K").collect();
    // The line is redrawn ten times a second. The wait ends a second after the reset.
    assert!(shown.len() > 500, "{}", ran.stderr);
    let waiting = "minute quota used up; continues in 1 min 1 s (10:01:01)";
    assert!(shown[1].ends_with(waiting), "{}", shown[1]);
    ran.says("; continues in 59 s (");
    assert_eq!(shown.last(), Some(&""));
}

#[tokio::test(start_paused = true)]
async fn a_script_gets_one_note_and_quiet_none() {
    let server = with_a_wait().await;
    let create = "pets create Rex --category-id 7";
    let ran = Petstore::at(&server, "k").run(create).await;
    let said = "note: minute quota used up; continues in 1 min 1 s (2026-11-21T10:01:01Z)\n";
    ran.said(said, 0);
    let terminal = Petstore::at(&server, "k").stderr_terminal();
    terminal.run("store orders -q").await.said("", 0);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_the_first_response_with_a_key_is_announced() {
    let server = serve_over_time(Plan::Free).await;
    let lists = server.faults().on(Operation::ListPets);
    let _slow = lists.delay(Duration::from_secs(5));
    // After a second without a response, the second command goes, too.
    let run = || Petstore::at(&server, "k").run("pets list --all");
    let (first, second, third) = tokio::join!(run(), run(), run());
    assert_eq!([first.code, second.code, third.code], [0; 3]);
    let told = "note: waiting for the limits of this key\n";
    assert_eq!(first.stderr + &second.stderr + &third.stderr, told);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_may_not_wait_says_what_it_would_wait_for() {
    let server = serve_over_time(Plan::Free).await;
    let lists = server.faults().on(Operation::ListPets);
    let _slow = lists.delay(Duration::from_secs(5));
    let run = async |line: &str| Petstore::at(&server, "k").run(line).await;
    let (slow, other) = tokio::join!(run("pets list"), run("store orders --max-wait 0"));
    slow.ended(0);
    other.says("error: waited 0 s for a first response that says how many requests may follow");
    other.says("\nhint: `--max-wait 1m` waits longer\n");
    other.ended(7);
}

#[tokio::test]
async fn the_limits_are_shown_when_they_are_used_up_too() {
    let server = serve("k", Plan::enterprise(1, 10)).await;
    let orders = Petstore::at(&server, "k").run("store orders").await;
    orders.ended(0);
    let ran = Petstore::at(&server, "k").terminal().run("limits").await;
    let shown = ran.transcript();
    let (before, rest) = shown.split_once("from a response ").unwrap();
    let (age, after) = rest.split_once(" ago").unwrap();
    assert!(age.ends_with(" s"), "{age}");
    assert_snapshot!(format!("{before}from a response … ago{after}"), @"
    --- stdout
    ␛[1mQUOTA   LEFT  LIMIT  RESETS␛[0m
    minute  ␛[33m0␛[0m     1      in 1 min (10:01:00)
    --- stderr
    note: requests wait for the minute quota, in 1 min 1 s (2026-11-21T10:01:01Z)
    note: from a response … ago
    --- exit 0
    ");
}

#[tokio::test]
async fn the_limits_are_asked_for_even_where_the_service_said_to_wait() {
    let server = serve("k", Plan::Free).await;
    let lists = server.faults().on(Operation::ListPets);
    let busy = lists.first(1).apply(refusal(30));
    let run = async |line: &str| Petstore::at(&server, "k").run(line).await;
    run("pets list --max-wait 0").await.ended(7);
    assert_eq!(busy.hits(), 1);
    let said = "note: requests wait for the rate limit, in 30 s (2026-11-21T10:00:30Z)\n";
    run("limits").await.said(said, 0);
    assert_eq!(server.requests(..).len(), 1);
    let shown = "minute\t60\t58\t2026-11-21T10:01:00Z\t60\n";
    run("limits --refresh").await.printed(shown);
    assert_eq!(server.requests(..).len(), 2);
}

#[tokio::test]
async fn a_later_command_says_that_the_key_is_banned() {
    let server = serve("k", Plan::Free).await;
    let text = r#"{"code":"key_banned","message":"banned","status":429}"#.to_owned();
    let lists = server.faults().on(Operation::ListPets).first(1);
    let _ban = lists.apply(Effect::All(vec![refusal(299), Effect::Body { text }]));
    let home = tempfile::tempdir().unwrap();
    let petstore = || Petstore::at(&server, "k").home(home.path());
    petstore().run("pets list").await.ended(7);
    let ran = petstore().run("pets list --error-format json").await;
    let error: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    // The time left is real, and the machine may be slow.
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with("the service banned this key for 4 min "),
        "{message}"
    );
    let shown = ["kind", "hint"].map(|field| error[field].as_str().unwrap());
    assert_eq!(
        (shown, ran.code),
        (["banned", "`--max-wait 5m` waits for it"], 7)
    );
    assert!(
        error["retryAt"]
            .as_str()
            .unwrap()
            .starts_with("2026-11-21T10:0")
    );
    let ran = petstore().run("limits").await;
    ran.says("note: requests wait for the end of the ban, in 4 min ");
    assert_eq!(server.requests(..).len(), 1);
}

#[tokio::test]
async fn a_retry_after_of_more_than_25_hours_is_shown_as_25_hours() {
    let server = serve("k", Plan::Free).await;
    let lists = server.faults().on(Operation::ListPets);
    let _busy = lists.apply(refusal(30 * 3_600));
    let home = tempfile::tempdir().unwrap();
    let petstore = || Petstore::at(&server, "k").home(home.path());
    // The first command learns it from the service, and the second one from the first.
    for _ in 0..2 {
        let said = "error: rate limit used up, resets in 25 h (2026-11-22T11:00:00Z)\n\
                    hint: run the command again then, or add `--max-wait 25h`\n";
        petstore().run("pets list").await.said(said, 7);
    }
    let ran = petstore().terminal().run("limits --color never").await;
    assert_eq!(ran.stdout, "", "no table without a quota");
    ran.says("note: requests wait for the rate limit, in 25 h (2026-11-22T11:00:00Z)\n");
}

#[tokio::test]
async fn the_limits_are_shown_without_a_request_while_they_are_known() {
    let server = serve("k", Plan::Free).await;
    let home = tempfile::tempdir().unwrap();
    let run = async |line: &str| Petstore::at(&server, "k").home(home.path()).run(line).await;
    let said = "note: no response yet with this key\n\
                hint: `petstore limits --refresh` sends a request\n";
    run("limits").await.said(said, 0);
    run("pets list").await;
    run("limits --jq .[].remaining").await.printed("59\n");
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
    let service = answering(wiremock::ResponseTemplate::new(200).set_body_string("[]")).await;
    let home = tempfile::tempdir().unwrap();
    let missing = "the service does not describe its rate limits\n";
    for (line, said, code) in [
        ("store orders", String::new(), 0),
        ("limits", format!("note: {missing}"), 0),
        ("limits --refresh", format!("error: {missing}"), 5),
    ] {
        let petstore = Petstore::with(&service.uri(), "no-limits").home(home.path());
        petstore.run(line).await.said(&said, code);
    }
}

#[tokio::test]
async fn the_61st_run_on_a_free_key_waits_and_is_not_refused() {
    let server = serve("k", Plan::Free).await;
    let home = tempfile::tempdir().unwrap();
    for number in 1..=61 {
        let petstore = Petstore::at(&server, "k").home(home.path());
        let ran = petstore.run("pets list --max-wait 0").await;
        ran.ended(if number > 60 { 7 } else { 0 });
    }
    let sent = server.requests(..).len();
    assert_eq!(sent, 60, "the last one was not even sent");
}

#[tokio::test(start_paused = true)]
async fn a_window_that_has_ended_is_shown_full() {
    let server = serve_over_time(Plan::Free).await;
    let home = tempfile::tempdir().unwrap();
    let petstore = || Petstore::at(&server, "k").home(home.path());
    petstore().run("pets list -q").await.ended(0);
    tokio::time::advance(Duration::from_secs(90)).await;
    let ran = petstore().terminal().run("limits --color never").await;
    ran.printed("QUOTA   LEFT  LIMIT  RESETS\nminute  60    60     has reset\n");
    ran.said("note: from a response 1 min 30 s ago\n", 0);
    let pets = super::scene::rows(70);
    let ran = petstore().stdin(&pets).run("pets import --dry-run").await;
    ran.shows("70 rows to send; the minute quota lets the last go in 1 min (10:01:00)\n");
}

#[tokio::test]
async fn without_a_folder_for_the_limits_there_is_a_warning() {
    let server = serve("k", Plan::Free).await;
    let ran = Petstore::bare()
        .var("PETSTORE_BASE_URL", server.url())
        .var("PETSTORE_API_KEY", "k")
        .run("pets list --limit 1")
        .await;
    ran.says("warning: rate limits are not shared: there is no folder for them; ");
    ran.says("hint: set HOME or XDG_STATE_HOME\n");
    ran.ended(0);
}
