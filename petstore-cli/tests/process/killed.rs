//! Tests of an import that is killed repeatedly, against a mock that counts requests.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Stdio};

use petstore_mock::{MockServer, Operation, Plan, Seed};

use super::support::{KEY, petstore, rows};

const ROWS: usize = 120;

/// Starts or continues the import.
fn import(server: &MockServer, file: &Path, more: &[&str]) -> Child {
    let mut command = petstore();
    command
        .env("PETSTORE_BASE_URL", server.url())
        .args(["pets", "import"])
        .arg(file);
    // The check waits for the longest `--timeout`, which is 30 s by default.
    command.args(["--concurrency", "4", "--timeout", "2"]);
    command.args(more);
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Returns how many times each name was sent. Ignores requests whose body was not read because the
/// sender was killed: they had no effect.
fn sent(server: &MockServer) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for request in server.requests(Operation::CreatePet) {
        if request.body.is_empty() && request.status.is_none() {
            continue;
        }
        let pet: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        *names
            .entry(pet["name"].as_str().unwrap().to_owned())
            .or_default() += 1;
    }
    names
}

/// Kills an import `kills` times, each time after some more requests, and then lets it end.
async fn killed_and_resumed(seed: usize, kills: usize) {
    let plan = Plan::enterprise(100_000, 1_000_000);
    let builder = MockServer::builder().key(KEY, plan).seed(Seed::none());
    let server = builder.start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pets.ndjson");
    std::fs::write(&file, rows(ROWS)).unwrap();

    for kill in 0..kills {
        // A different number of requests each time, sometimes none.
        let some = (seed * 7 + kill * 5) % 19;
        let enough = server.requests(Operation::CreatePet).len() + some;
        let mut child = import(&server, &file, &[]);
        while server.requests(Operation::CreatePet).len() < enough
            && child.try_wait().unwrap().is_none()
        {
            tokio::task::yield_now().await;
        }
        // This sends SIGKILL. It fails if the process has just ended.
        let _ = child.kill();
        child.wait().unwrap();
    }
    let ended = import(&server, &file, &[]).wait().unwrap();
    assert!(matches!(ended.code(), Some(0 | 8)), "{ended}");
    let before = sent(&server);
    assert!(before.values().all(|times| *times == 1), "{before:?}");

    // Only rows in flight at a kill are missing: at most four each time.
    assert!(
        before.len() >= ROWS - 4 * kills,
        "{} of {ROWS}",
        before.len()
    );
    // The import finds out which rows were created, and sends only the others.
    let checked = import(&server, &file, &["--unknown", "check"]);
    assert_eq!(checked.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(
        server.pets().len(),
        ROWS,
        "no pet is missing, and none exists twice"
    );
    let again = import(&server, &file, &[]).wait().unwrap();
    assert_eq!((again.code(), server.pets().len()), (Some(0), ROWS));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_row_is_sent_twice_however_often_it_is_killed() {
    for seed in 0..3 {
        killed_and_resumed(seed, 5).await;
    }
}

/// The same with more than a hundred kills: `cargo test -p petstore-cli --test process killed --
/// --ignored`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while"]
async fn no_row_is_sent_twice_in_a_hundred_kills() {
    for seed in 3..23 {
        killed_and_resumed(seed, 6).await;
    }
}
