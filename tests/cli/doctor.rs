//! `petstore doctor`.

use std::time::Duration;

use insta::assert_snapshot;
use petstore_mock::{MockServer, Plan};

use super::harness::{Petstore, home_with, serve};

#[tokio::test]
async fn finds_no_problem_in_a_valid_setup() {
    let server = serve("k", Plan::Free).await;
    let home = tempfile::tempdir().unwrap();
    let petstore = Petstore::at(&server, "k").home(home.path());
    let ran = petstore.run("doctor").await;
    let (before, after) = ran.stdout.split_once("200 in ").unwrap();
    let (_, after) = after.split_once(" ms").unwrap();
    ran.said("", 0);
    let text = format!("{before}200 in N ms{after}").replace(server.url(), "URL");
    assert_snapshot!(text, @"
    ✓ config        no file HOME/config/config.toml
    ✓ base URL      URL (from PETSTORE_BASE_URL)
    ✓ API key       PETSTORE_API_KEY
    ✓ service       200 in N ms, key accepted
    ✓ clock         agrees with the service
    ✓ rate limits   59 of 60 left this minute, resets in 1 min (2026-11-21T10:01:00Z)
    ✓ limits store  HOME/state/limits
    ");
}

#[tokio::test]
async fn a_mistake_in_the_file_is_the_only_finding() {
    let home = home_with("[profiles.default]\nbase_ulr = \"https://petstore.example/v1\"\n");
    let ran = Petstore::bare().home(home.path()).run("doctor").await;
    ran.shows("✗ config    HOME/config/config.toml line 2: unknown field `base_ulr`");
    ran.shows("\n– service   not checked\n1 problem: config\n");
    ran.ended(3);
}

#[tokio::test]
async fn reports_a_refused_key_a_wrong_clock_and_a_limit() {
    let server = serve("k", Plan::enterprise(1, 9)).await;
    server.clock().advance(Duration::from_secs(3_601));
    let ran = Petstore::at(&server, "bad").run("doctor -o ndjson").await;
    assert_snapshot!(ran.transcript(), @r#"
    --- stdout
    {"check":"config","result":"warning","found":"no configuration folder","hint":"set HOME or XDG_CONFIG_HOME to keep profiles and keys"}
    {"check":"base URL","result":"ok","found":"http://127.0.0.1:PORT/v1 (from PETSTORE_BASE_URL)"}
    {"check":"API key","result":"ok","found":"PETSTORE_API_KEY"}
    {"check":"service","result":"failed","found":"the service answered 401 Unauthorized (unauthorized): the API key is not known: check it for a typing error, or give it to the mock with --key KEY=PLAN","hint":"set PETSTORE_API_KEY to a valid key"}
    {"check":"clock","result":"warning","found":"1 h behind the service; times shown may be off","hint":"set this machine's clock"}
    {"check":"rate limits","result":"ok","found":"60 of 60 left this minute, resets in 59 s (2026-11-21T11:01:00Z)"}
    --- exit 3
    "#);
    // Another program exhausts the quota.
    let orders = format!("{}/store/orders", server.url());
    let other = reqwest::Client::new().get(orders).bearer_auth("k");
    other.send().await.unwrap();
    let line = "doctor -o tsv --fields check,result";
    let ran = Petstore::at(&server, "k").run(line).await;
    ran.shows("service\twarning\nclock\twarning\nrate limits\twarning\n");
    ran.ended(0);
    // Now the limit is known, so nothing is sent.
    let ran = Petstore::at(&server, "k").run(line).await;
    ran.shows("service\twarning\nrate limits\twarning\n");
    assert_eq!((ran.code, server.requests(..).len()), (0, 3));
}

#[tokio::test]
async fn reports_a_service_that_cannot_be_reached() {
    let petstore = Petstore::with("http://127.0.0.1:1/v1", "k");
    let ran = petstore.run("doctor --fields check,result").await;
    assert_eq!(ran.stdout.lines().last(), Some("service\tfailed"));
    ran.ended(6);
}

#[tokio::test]
async fn speaks_of_the_store_that_is_used() {
    let server = MockServer::start().await;
    let ran = Petstore::at(&server, "pro-key")
        .var("PETSTORE_LIMITS_STORE", "redis://me:sentinel@127.0.0.1:1")
        .run("doctor")
        .await;
    let (_, store) = ran.stdout.split_once("limits store").unwrap();
    assert!(store.contains("redis://127.0.0.1:1"), "{store}");
    let hint = "hint: make the store usable, or choose another one with `--limits-store`\n";
    assert!(store.ends_with(hint), "{store}");
    assert!(!ran.stdout.contains("sentinel"), "{}", ran.stdout);
}
