//! Tests of the data file in process: it keeps every change, and is closed when the server is
//! dropped.

use std::time::Duration;

use petstore_mock::{MockServer, PetStatus, Plan, SeedPet};
use serde_json::json;
use tempfile::TempDir;

/// Opens the data file in a folder.
async fn open(folder: &TempDir) -> MockServer {
    let builder = MockServer::builder().data(folder.path().join("data"));
    builder.start().await.unwrap()
}

#[tokio::test]
async fn every_change_is_kept() {
    let folder = TempDir::new().unwrap();
    let server = open(&folder).await;
    let far = SeedPet::new("小春", -7).with_id(-3);
    server
        .pets()
        .insert(far.with_status(PetStatus::Sold))
        .unwrap();
    server.pets().insert(SeedPet::new("Rex", 7)).unwrap();
    server.pets().remove(26).unwrap();
    server
        .orders()
        .insert(json!({"id": 1, "any": ["thing"]}))
        .unwrap();
    let before = server.snapshot();
    let key = server.key(Plan::Free);
    drop(server);
    assert!(key.pets().clear().is_err(), "the file is closed");
    let server = open(&folder).await;
    assert_eq!(server.snapshot(), before);
    let next = server.pets().insert(SeedPet::new("next", 1)).unwrap();
    assert_eq!(next.id, 27);
    server.reset().unwrap();
    server.stop().await;
    let server = open(&folder).await;
    assert_eq!(server.pets().len(), 25);
    server.restore(&before).unwrap();
    drop(server);
    assert_eq!(open(&folder).await.snapshot(), before);
}

#[tokio::test]
async fn a_file_that_cannot_be_compacted_is_used_as_it_is() {
    let folder = TempDir::new().unwrap();
    let server = open(&folder).await;
    server.pets().insert(SeedPet::new("Rex", 7)).unwrap();
    drop(server);
    // This name is so long that a longer name for the new file would exceed the file system's
    // limit.
    let path = folder.path().join("x".repeat(250));
    std::fs::rename(folder.path().join("data"), &path).unwrap();
    for id in 27..29 {
        let server = MockServer::builder().data(&path).start().await.unwrap();
        assert_eq!(server.pets().insert(SeedPet::new("Tom", 7)).unwrap().id, id);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Simulates a child process that briefly holds a copy of the lock of a server that has ended.
#[tokio::test]
async fn a_lock_that_is_about_to_be_released_is_waited_for() {
    let folder = TempDir::new().unwrap();
    drop(open(&folder).await);
    let file = std::fs::File::open(folder.path().join("data")).unwrap();
    file.lock().unwrap();
    let releases = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(30)).await;
        drop(file);
    });
    assert_eq!(open(&folder).await.pets().len(), 25);
    releases.await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_stays_a_link_to_the_file() {
    let folder = TempDir::new().unwrap();
    drop(open(&folder).await);
    let (file, link) = (folder.path().join("data"), folder.path().join("link"));
    std::os::unix::fs::symlink("data", &link).unwrap();
    for path in [&link, &link, &file] {
        let server = MockServer::builder().data(path).start().await.unwrap();
        server.pets().insert(SeedPet::new("Rex", 7)).unwrap();
    }
    assert_eq!(open(&folder).await.pets().len(), 28);
    assert!(link.is_symlink());
}

#[cfg(unix)]
#[tokio::test]
async fn a_pipe_or_a_device_is_no_data_file() {
    let folder = TempDir::new().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let error = MockServer::builder().data(&pipe).start().await.unwrap_err();
    let says = "it is not a data file";
    assert!(error.to_string().contains(says), "{error}");
}
