//! Tests of the display of a rate-limit wait.

use petstore_mock::{Clock, MockServer, Plan};

use super::harness::{Petstore, noon};

async fn used_up() -> MockServer {
    let builder =
        MockServer::builder().key("k", Plan::enterprise(1, 10)).clock(Clock::runtime(noon()));
    let server = builder.start().await.unwrap();
    assert_eq!(Petstore::at(&server, "k").run("store orders").await.code, 0);
    server
}

#[tokio::test(start_paused = true)]
async fn a_terminal_shows_a_countdown_and_then_clears_it() {
    let server = used_up().await;
    let ran = Petstore::at(&server, "k").stderr_terminal().run("pets list --limit 9 --all").await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let shown: Vec<_> = ran.stderr.split("\r\u{1b}[K").collect();
    // Ten times a second, after the first moment.
    assert!(shown.len() > 500, "{}", ran.stderr);
    let waiting = "minute quota used up; continues in 1 min (10:01:00)";
    assert!(shown[1].ends_with(waiting), "{}", shown[1]);
    assert!(shown[20].contains("; continues in 58 s ("), "{}", shown[20]);
    assert_eq!(shown.last(), Some(&""), "{}", ran.stderr);
}

#[tokio::test(start_paused = true)]
async fn a_script_gets_one_note_and_quiet_none() {
    let server = used_up().await;
    let ran = Petstore::at(&server, "k").run("api /store/orders").await;
    assert_eq!(
        ran.stderr,
        "note: minute quota used up; continues in 1 min (2026-11-21T10:01:00Z)\n"
    );
    let ran = Petstore::at(&server, "k").stderr_terminal().run("store orders -q").await;
    assert_eq!((ran.stderr.as_str(), ran.code), ("", 0));
}
