//! Tests that consecutive runs keep within the limits together.

use petstore_mock::{Clock, MockServer, Plan};
use tempfile::TempDir;

use super::harness::{Petstore, noon};

#[tokio::test]
async fn the_61st_run_on_a_free_key_waits_and_is_not_refused() {
    let builder = MockServer::builder().key("free-key", Plan::Free).clock(Clock::frozen(noon()));
    let (server, home) = (builder.start().await.unwrap(), TempDir::new().unwrap());
    let run = async || {
        let petstore = Petstore::at(&server, "free-key").home(home.path());
        petstore.run("pets list --max-wait 0").await
    };
    for _ in 0..60 {
        let ran = run().await;
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let ran = run().await;
    assert_eq!(ran.code, 7, "{}", ran.stderr);
    assert_eq!(server.requests(..).len(), 60, "the last one was not even sent");
}

#[tokio::test]
async fn the_limits_are_shown_without_a_request_while_they_are_known() {
    let builder = MockServer::builder().key("free-key", Plan::Free).clock(Clock::frozen(noon()));
    let (server, home) = (builder.start().await.unwrap(), TempDir::new().unwrap());
    let run = async |words: &str| {
        Petstore::at(&server, "free-key").home(home.path()).run(words).await.stdout
    };
    let left = "limits --jq .[].remaining";
    assert_eq!(run(left).await, "", "nothing is known yet");
    run("pets list").await;
    assert_eq!(run(left).await, "59\n");
    assert_eq!(run("limits --refresh --jq .[].remaining").await, "58\n");
    assert_eq!(run("limits -o csv").await.lines().count(), 2);
    assert_eq!(server.requests(..).len(), 2);
}
