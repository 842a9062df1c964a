//! `petstore doctor`.

use std::time::Duration;

use insta::assert_snapshot;
use petstore_mock::{Clock, MockServer, Plan};

use super::harness::{Petstore, noon};

#[tokio::test]
async fn finds_nothing_wrong_where_nothing_is() {
    let clock = Clock::frozen(noon());
    let server = MockServer::builder().key("k", Plan::Free).clock(clock).start().await.unwrap();
    let home = tempfile::tempdir().unwrap();
    let ran = Petstore::at(&server, "k").home(home.path()).run("doctor").await;
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    ok       configuration  no file HOME/config/config.toml
    ok       base URL       http://127.0.0.1:PORT/v1, from PETSTORE_BASE_URL
    ok       API key        from PETSTORE_API_KEY
    ok       service        http://127.0.0.1:PORT/v1 answers 200 OK
    ok       clock          0 s ahead of the service's
    ok       rate limit     59 of 60 requests left, whole again in 60 s
    ok       shared limits  HOME/state/limits, used by this process
    --- exit 0
    ");
}

#[tokio::test]
async fn says_what_is_missing_and_what_to_do() {
    let ran = Petstore::bare().run("doctor").await;
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    warning  configuration  there is no folder for it
                            → set HOME or XDG_CONFIG_HOME, if profiles or keys are to be kept
    failed   base URL       no base URL is set
                            → set PETSTORE_BASE_URL, or pass `--base-url https://HOST/v1`; `petstore config set base_url https://HOST/v1` keeps it; `petstore --mock …` runs any command without a service
    failed   API key        no API key is set
                            → set PETSTORE_API_KEY; there is no flag, since others can read arguments; `petstore auth login` keeps one; `petstore --mock …` runs any command without a key
    --- stderr
    error: base URL is not right
    --- exit 3
    ");
}

#[tokio::test]
async fn tells_of_a_key_that_is_refused_a_clock_that_is_wrong_and_a_limit() {
    let clock = Clock::frozen(noon() - Duration::from_secs(3600));
    let server =
        MockServer::builder().key("k", Plan::enterprise(1, 9)).clock(clock).start().await.unwrap();
    let ran = Petstore::at(&server, "bad").run("doctor -o ndjson").await;
    assert_snapshot!(ran.transcript(), @r#"
    --- stdout
    {"check":"configuration","result":"warning","found":"there is no folder for it","advice":"set HOME or XDG_CONFIG_HOME, if profiles or keys are to be kept"}
    {"check":"base URL","result":"ok","found":"http://127.0.0.1:PORT/v1, from PETSTORE_BASE_URL"}
    {"check":"API key","result":"ok","found":"from PETSTORE_API_KEY"}
    {"check":"service","result":"failed","found":"listPets failed: the service answered 401 Unauthorized (unauthorized): the API key is not known: check it for a typing error, or give it to the mock with --key KEY=PLAN","advice":"set PETSTORE_API_KEY to a key that this service accepts, or keep one: `petstore auth login`"}
    {"check":"clock","result":"warning","found":"3600 s ahead of the service's","advice":"set this machine's clock; waits are right all the same"}
    {"check":"rate limit","result":"ok","found":"60 of 60 requests left, whole again in 60 s"}
    --- stderr
    error: service is not right
    --- exit 3
    "#);
    // Another program uses the quota up.
    let orders = format!("{}/store/orders", server.url());
    assert!(reqwest::Client::new().get(orders).bearer_auth("k").send().await.is_ok());
    let line = "doctor -o tsv --fields check,result";
    let ran = Petstore::at(&server, "k").run(line).await;
    assert!(
        ran.stdout.contains("service\twarning\nclock\twarning\nrate limit\twarning\n"),
        "{}",
        ran.stdout
    );
    assert_eq!(ran.code, 0);
    // Now it is known, and nothing is sent.
    let ran = Petstore::at(&server, "k").run(line).await;
    assert!(ran.stdout.contains("service\twarning\nrate limit\twarning\n"), "{}", ran.stdout);
    assert_eq!((ran.code, server.requests(..).len()), (0, 3));
}

#[tokio::test]
async fn tells_of_a_service_that_cannot_be_reached() {
    let petstore = Petstore::bare().var("PETSTORE_API_KEY", "k");
    let ran =
        petstore.run("doctor --base-url http://127.0.0.1:1/v1 -o tsv --fields check,result").await;
    assert_eq!(ran.stdout.lines().last(), Some("service\tfailed"));
    assert_eq!(ran.code, 6);
}

#[tokio::test]
async fn tells_of_a_broken_configuration_in_place_of_failing_on_it() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("config")).unwrap();
    std::fs::write(home.path().join("config/config.toml"), "nonsense").unwrap();
    let ran = Petstore::bare().home(home.path()).run("doctor -o csv").await;
    assert!(
        ran.stdout.contains("\nconfiguration,failed,\"HOME/config/config.toml:1:"),
        "{}",
        ran.stdout
    );
    assert_eq!(ran.code, 3);
}
