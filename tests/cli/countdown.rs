//! What is seen of a wait for a rate limit.

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
async fn a_terminal_sees_the_seconds_counted_down_and_then_nothing_of_it() {
    let server = used_up().await;
    let ran = Petstore::at(&server, "k").stderr_terminal().run("pets list --limit 9 --all").await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let shown: Vec<_> = ran.stderr.split("\r\u{1b}[K").collect();
    assert!(shown.len() > 50, "{}", ran.stderr);
    assert_eq!(shown[1], "waiting 60 s: the minute's quota, until 2026-11-21T10:01:00Z");
    assert!(shown[2].starts_with("waiting 59 s: "), "{}", shown[2]);
}

#[tokio::test(start_paused = true)]
async fn a_script_is_told_once_and_who_wants_quiet_not_at_all() {
    let server = used_up().await;
    let ran = Petstore::at(&server, "k").run("store orders").await;
    assert_eq!(ran.stderr, "note: the minute's quota: waiting 60 s, until 2026-11-21T10:01:00Z\n");
    let ran = Petstore::at(&server, "k").stderr_terminal().run("store orders -q").await;
    assert_eq!((ran.stderr.as_str(), ran.code), ("", 0));
}
